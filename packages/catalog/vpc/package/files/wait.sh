#!/bin/sh
# Keeps the container for DURATION, as sleep(1) takes it: 90m, 1.5h, 1d.
#
#   wait.sh DURATION
echo "enter by: muster exec $MUSTER_APP_ID/$MUSTER_INSTANCE -- bash"
exec sleep "$1"
