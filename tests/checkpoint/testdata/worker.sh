# A worker that saves what it is told to: a number in the file $CONTROL/$HOST.save is a step. It ends when $CONTROL/end is there,
# and fails when it finds $CONTROL/$HOST.fail.
echo "host $HOST generation $MUSTER_GENERATION from ${MUSTER_CHECKPOINT##*/}"
mkdir -p "$MUSTER_CHECKPOINT_DIR"
while [ ! -e "$CONTROL/end" ]; do
	if [ -s "$CONTROL/$HOST.save" ]; then
		step=$(cat "$CONTROL/$HOST.save")
		rm "$CONTROL/$HOST.save"
		echo "of $HOST, generation $MUSTER_GENERATION" > "$MUSTER_CHECKPOINT_DIR/.new"
		mv "$MUSTER_CHECKPOINT_DIR/.new" "$MUSTER_CHECKPOINT_DIR/ckpt-$step"
		echo "saved $step"
	fi
	if [ -e "$CONTROL/$HOST.fail" ]; then
		rm "$CONTROL/$HOST.fail"
		exit 3
	fi
	sleep 0.05
done
