#!/bin/sh
# What scripts/worker.py starts: STEPS steps, then it ends.
#
#   work.sh CONFIG
set -eu

. "$1"
step=0
while [ "$step" -lt "$steps" ]; do
	sleep 0.5 # the work
	step=$((step + 1))
	echo "step $step of $steps, port $port"
done
