#!/bin/sh
# What every instance of the component worker runs: STEPS steps, each saved, so that a restart resumes from the last.
#
#   work.sh STEPS
#
# muster tells it who it is by variables: MUSTER_INSTANCE, MUSTER_INDEX, MUSTER_WORLD_SIZE, MUSTER_PORT (its own port),
# MUSTER_ROSTER_FILE (everybody's addresses), MUSTER_CHECKPOINT_DIR, and MUSTER_CHECKPOINT (what to resume from).
set -eu

steps=$1
saves=$MUSTER_CHECKPOINT_DIR/$MUSTER_INSTANCE # this instance's own, of the folder that all of them see
mkdir -p "$saves"
step=0
if [ -n "${MUSTER_CHECKPOINT-}" ]; then step=$(cat "$MUSTER_CHECKPOINT"); fi

echo "$MUSTER_INSTANCE of $MUSTER_WORLD_SIZE on port $MUSTER_PORT, from step $step"
while [ "$step" -lt "$steps" ]; do
	sleep 0.2 # the work
	step=$((step + 1))
	# under another name until it is complete; the last number of the name is the step
	echo "$step" >"$saves/.new"
	mv "$saves/.new" "$saves/step-$step"
	rm -f "$saves/step-$((step - 2))" # keep more with muster.restart=gang: all resume from a step that each of them has
	# muster shows the progress of the instance by this line on stderr
	printf 'reporter progress:%d.%02d\n' $((step / steps)) $((step * 100 / steps % 100)) >&2
done
echo "$MUSTER_INSTANCE is done after $steps steps"
