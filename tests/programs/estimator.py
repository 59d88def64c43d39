"""A TensorFlow Estimator on parameter servers, workers and an evaluator, as HBox's users wrote it: TF_CONFIG is made of
TF_CLUSTER_DEF, TF_ROLE and TF_INDEX, with worker 0 as the chief. A line is fitted.

As long as the file PROGRAM_HOLD exists the training goes on beyond PROGRAM_STEPS. Lines that tests wait for, on stdout:

    ROLE INDEX              who TF_CONFIG says we are
    evaluated step N loss X the evaluator, of each checkpoint that it sees
    finished                a worker's last line, then exit 0
"""

import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

cluster, role, index = json.loads(os.environ["TF_CLUSTER_DEF"]), os.environ["TF_ROLE"], int(os.environ["TF_INDEX"])
cluster["chief"], cluster["worker"] = cluster["worker"][:1], cluster["worker"][1:]
if role == "worker":
    role, index = ("chief", 0) if index == 0 else ("worker", index - 1)
os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})
print(role, index, flush=True)

import tensorflow as tf  # noqa: E402

STEPS = int(os.environ["PROGRAM_STEPS"])
HOLD = os.environ["PROGRAM_HOLD"]


class Until(tf.estimator.SessionRunHook):
    """Ends a training that is far enough and held no more."""

    def begin(self):
        self.step = tf.compat.v1.train.get_global_step()

    def before_run(self, run_context):
        return tf.estimator.SessionRunArgs(self.step)

    def after_run(self, run_context, run_values):
        if run_values.results < STEPS:
            return
        if os.path.exists(HOLD):
            time.sleep(0.1)  # the evaluator wants the processor
        else:
            run_context.request_stop()


class Tell(tf.estimator.Exporter):
    """Is called after each evaluation."""

    name = "tell"

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        print("evaluated step {global_step} loss {loss:.6f}".format(**eval_result), flush=True)


def lines():
    x = tf.random.uniform([16, 1], seed=7)
    return tf.data.Dataset.from_tensors(({"x": x}, 3 * x + 1)).repeat()


def main():
    learner = tf.estimator.LinearRegressor(
        [tf.feature_column.numeric_column("x")], optimizer=lambda: tf.keras.optimizers.legacy.SGD(0.1),
        config=tf.estimator.RunConfig(model_dir=os.environ["MUSTER_CHECKPOINT_DIR"], save_checkpoints_steps=50, keep_checkpoint_max=None))
    tf.estimator.train_and_evaluate(
        learner, tf.estimator.TrainSpec(lines, hooks=[Until()]),
        tf.estimator.EvalSpec(lines, steps=1, start_delay_secs=0, throttle_secs=1, exporters=Tell()))
    print("finished", flush=True)


if __name__ == "__main__":
    main()
