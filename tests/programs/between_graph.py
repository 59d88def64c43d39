"""TensorFlow between-graph replication, as users wrote it for Slider: a line is fitted by
parameter servers and workers.

    between_graph.py --ps_hosts=H:P,… --worker_hosts=H:P,… --job_name=ps|worker --task_index=N
                     --ckp_dir=DIR --work_dir=DIR [--data_dir=DIR]

PROGRAM_STEPS and PROGRAM_PACE (seconds for each step of all workers together) set how long it lasts;
as long as the file PROGRAM_HOLD exists it goes on beyond its last step.
Lines that tests wait for, on stdout:

    ps N serving            before it serves for ever; TERM ends it
    starting at step 0      worker 0 has made the variables anew
    restored step N         worker 0 has put its newest checkpoint back onto the servers
    joined at step N        another worker found the variables at step N, 0 or more
    step N loss X           every 10 steps or so
    finished at step N      the last line of a worker, then exit 0
"""

import argparse
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

STEPS = int(os.environ.get("PROGRAM_STEPS", 1000))
PACE = float(os.environ.get("PROGRAM_PACE", 0.04))
HOLD = os.environ.get("PROGRAM_HOLD", "")
EVERY = 10
TRUTH = np.arange(1, 9, dtype=np.float32).reshape(8, 1)


def say(text):
    print(text, flush=True)


class Tell(tf.train.SessionRunHook):
    def __init__(self, chief, new):
        self.chief = chief
        self.new = new  # no checkpoint yet: the chief makes the variables
        self.last = 0

    def begin(self):
        self.step = tf.train.get_global_step()

    def after_create_session(self, session, coord):
        self.last = int(session.run(self.step))
        if not self.chief:
            say("joined at step {}".format(self.last))
        elif self.new:
            say("starting at step 0")
        else:
            say("restored step {}".format(self.last))
        self.new = False

    def tell(self, step, loss):
        if step // EVERY != self.last // EVERY:
            say("step {} loss {:.6f}".format(step, loss))
            print("reporter progress:{:.2f}".format(min(1, step / STEPS)), file=sys.stderr, flush=True)
        self.last = int(step)


class Follower(tf.train.SessionCreator):
    """A worker's session that looks each second, not each 30, whether the chief is ready."""

    def __init__(self, target, config):
        self.target, self.config, self.scaffold = target, config, tf.train.Scaffold()

    def create_session(self):
        self.scaffold.finalize()
        manager = tf.train.SessionManager(
            local_init_op=self.scaffold.local_init_op, ready_op=self.scaffold.ready_op,
            ready_for_local_init_op=self.scaffold.ready_for_local_init_op,
            graph=tf.get_default_graph(), recovery_wait_secs=1)
        return manager.wait_for_session(self.target, config=self.config, max_wait_secs=600)


def session(args, target, hooks):
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:{}".format(args.task_index)])
    if args.task_index != 0:
        return tf.train.MonitoredSession(Follower(target, config), hooks)
    return tf.train.MonitoredTrainingSession(
        target, is_chief=True, checkpoint_dir=args.ckp_dir, hooks=hooks, config=config,
        save_checkpoint_steps=50, save_checkpoint_secs=None,
        save_summaries_steps=10, save_summaries_secs=None)


def work(args, cluster, target):
    device = tf.train.replica_device_setter(
        worker_device="/job:worker/task:{}".format(args.task_index), cluster=cluster)
    with tf.device(device):
        inputs = tf.placeholder(tf.float32, [None, len(TRUTH)])
        wanted = tf.placeholder(tf.float32, [None, 1])
        weights = tf.get_variable("weights", TRUTH.shape, initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
        loss = tf.losses.mean_squared_error(wanted, tf.matmul(inputs, weights) + bias)
        global_step = tf.train.get_or_create_global_step()
        update = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=global_step)
        with tf.control_dependencies([update]):
            step_after = global_step.read_value()
        tf.summary.scalar("loss", loss)
    tell = Tell(args.task_index == 0, new=tf.train.latest_checkpoint(args.ckp_dir) is None)
    step = 0
    with session(args, target, [tell]) as running:
        while step < STEPS or os.path.exists(HOLD):
            began = time.monotonic()
            x = np.random.normal(size=(32, len(TRUTH)))
            _, value, step = running.run([update, loss, step_after], {inputs: x, wanted: x @ TRUTH + 1})
            tell.tell(step, value)
            time.sleep(max(0, began + PACE * len(args.worker_hosts) - time.monotonic()))
    say("finished at step {}".format(tell.last))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ps_hosts", type=lambda text: text.split(","), required=True)
    parser.add_argument("--worker_hosts", type=lambda text: text.split(","), required=True)
    parser.add_argument("--job_name", choices=("ps", "worker"), required=True)
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--ckp_dir", required=True)
    parser.add_argument("--work_dir", default="")
    parser.add_argument("--data_dir", default="")
    args = parser.parse_args()
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    cluster = tf.train.ClusterSpec({"ps": args.ps_hosts, "worker": args.worker_hosts})
    server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)
    if args.job_name == "ps":
        say("ps {} serving".format(args.task_index))
        server.join()
    work(args, cluster, server.target)


if __name__ == "__main__":
    main()
