#!/bin/sh
# What every instance of the component worker runs: STEPS steps, each saved, so that a restart goes on after the last.
#
#   work.sh STEPS
#
# muster tells it who it is by variables: MUSTER_INSTANCE, MUSTER_INDEX, MUSTER_WORLD_SIZE, MUSTER_PORT (its own port),
# MUSTER_ROSTER_FILE (everybody's addresses), MUSTER_CHECKPOINT_DIR.
set -eu

steps=$1
saved=$MUSTER_CHECKPOINT_DIR/step-$MUSTER_INDEX
step=0
if [ -f "$saved" ]; then step=$(cat "$saved"); fi

echo "$MUSTER_INSTANCE of $MUSTER_WORLD_SIZE on port $MUSTER_PORT, from step $step"
while [ "$step" -lt "$steps" ]; do
	sleep 0.2 # the work
	step=$((step + 1))
	echo "$step" >"$saved.new"
	mv "$saved.new" "$saved"
	# muster shows the progress of the instance by this line on stderr
	printf 'reporter progress:%d.%02d\n' $((step / steps)) $((step * 100 / steps % 100)) >&2
done
echo "$MUSTER_INSTANCE is done after $steps steps"
