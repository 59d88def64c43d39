"""Handwritten digits by between-graph replication: TensorFlow parameter servers and workers.

Each worker builds the same graph and updates the variables, which live on the parameter
servers, at its own speed. Worker 0 is the chief: it initialises or restores them, writes
checkpoints and summaries to --ckp_dir, and measures the result on images held back. Asked to
end by SIGTERM it writes a last checkpoint, and its end is that of the signal.
"""

import argparse
import gzip
import os
import signal
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

try:
    import numpy as np
    import tensorflow.compat.v1 as tf
except ImportError as missing:
    sys.exit("mnist.py: {}: {}; name a Python that has TensorFlow by --set global:muster.python=PATH".format(
        sys.executable, missing))

PIXELS, CLASSES, DARKEST = 64, 10, 16
HELD_BACK = 5  # every fifth image
HIDDEN = 32
BATCH = 16
RATE = 0.3
TELL = 25  # a line of loss each time this many steps have gone by
STEPS_PER_CHECKPOINT = 50
STEPS_PER_SUMMARY = 10
# Seconds. A worker whose parameter servers are not ready looks again after RECOVERY;
# what TensorFlow takes by default, 30, would be most of a short run.
RECOVERY = 1
PATIENCE = 600
# Seconds for the last checkpoint. Who waits for a lost parameter server has nothing to save.
PARTING = 10


def main():
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    options = parse(sys.argv[1:])
    if options.ckp_dir.startswith("hdfs://"):
        know_hdfs()
    cluster = tf.train.ClusterSpec({"ps": options.ps_hosts, "worker": options.worker_hosts})
    server = tf.train.Server(cluster, job_name=options.job_name, task_index=options.task_index)
    if options.job_name == "ps":
        say("ps {} is serving".format(options.task_index))
        server.join()
    else:
        work(options, cluster, server)


def know_hdfs():
    """TensorFlow itself has no hdfs:// since 2.6; a plugin has, for each process that reads or writes there."""
    try:
        import tensorflow_io  # noqa: F401
    except ImportError as missing:
        sys.exit("mnist.py: {}: {}; install tensorflow-io, or have muster keep the checkpoints by "
                 "--set global:muster.checkpoint.reach=muster".format(sys.executable, missing))


def work(options, cluster, server):
    training, held_back = load(options.data_dir or options.work_dir)
    mine = [part[options.task_index::len(options.worker_hosts)] for part in training]
    device = tf.train.replica_device_setter(
        worker_device="/job:worker/task:{}".format(options.task_index), cluster=cluster)
    with tf.device(device):
        net = Net()
    chance = np.random.RandomState()
    pace = options.pace * len(options.worker_hosts)
    told = 0
    leave = Leave(options.task_index == 0)
    with open_session(options, server, net, held_back, leave) as session:
        while not session.should_stop():
            began = time.monotonic()
            rows = chance.randint(len(mine[1]), size=BATCH)
            feed = {net.images: mine[0][rows], net.labels: mine[1][rows]}
            _, loss, step = session.run([net.update, net.loss, net.step], feed)
            if step // TELL != told:
                told = step // TELL
                say("step {} loss {:.4f}".format(step, loss))
                progress(step, options.steps)
            time.sleep(max(0, began + pace - time.monotonic()))
    leave.go()
    progress(options.steps, options.steps)


class Net:
    """The graph: one hidden layer, its loss, and what moves the variables."""

    def __init__(self):
        self.images = tf.placeholder(tf.float32, [None, PIXELS])
        self.labels = tf.placeholder(tf.int64, [None])
        hidden = tf.tanh(layer("hidden", self.images, PIXELS, HIDDEN))
        logits = layer("output", hidden, HIDDEN, CLASSES)
        self.loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=self.labels, logits=logits))
        right = tf.equal(tf.argmax(logits, 1), self.labels)
        self.accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        global_step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(RATE)
        self.update = optimizer.minimize(self.loss, global_step=global_step)
        with tf.control_dependencies([self.update]):
            self.step = global_step.read_value()
        tf.summary.scalar("loss", self.loss)
        tf.summary.scalar("batch_accuracy", self.accuracy)


def layer(name, inputs, size, units):
    with tf.variable_scope(name):
        weights = tf.get_variable("weights", [size, units],
                                  initializer=tf.truncated_normal_initializer(stddev=size ** -0.5))
        return tf.matmul(inputs, weights) + tf.get_variable("bias", [units], initializer=tf.zeros_initializer())


class Leave(tf.train.SessionRunHook):
    """Ends the chief's training in good order when it is asked to: the session saves as it closes."""

    def __init__(self, chief):
        self._chief = chief
        self.asked = False

    def begin(self):
        self._step = tf.train.get_global_step()

    def after_create_session(self, session, coord):
        if self._chief:
            signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, number, frame):
        self.asked = True
        signal.alarm(PARTING)

    def after_run(self, run_context, run_values):
        if self.asked:
            run_context.request_stop()

    def end(self, session):
        if self.asked:
            say("stopped at step {}".format(session.run(self._step)))

    def go(self):
        """After the session: an end that was asked for is not that of a training that is done."""
        if self.asked:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)


class Tell(tf.train.SessionRunHook):
    """Says where a session begins, and at the chief how good the result is."""

    def __init__(self, chief, new, net, held_back, leave):
        self._chief = chief
        self._leave = leave
        self._new = new  # no checkpoint yet: the chief makes the variables
        self._net = net
        self._held_back = held_back

    def begin(self):
        self._step = tf.train.get_global_step()

    def after_create_session(self, session, coord):
        step = session.run(self._step)
        if not self._chief:
            say("joined at step {}".format(step))
        elif self._new:
            say("starting at step 0")
        else:
            say("restored step {}".format(step))
        self._new = False

    def end(self, session):
        if self._chief and not self._leave.asked:
            images, labels = self._held_back
            feed = {self._net.images: images, self._net.labels: labels}
            say("accuracy {:.4f}".format(session.run(self._net.accuracy, feed)))


def open_session(options, server, net, held_back, leave):
    """The chief restores or initialises the variables; the others wait until it has."""
    chief = options.task_index == 0
    new = tf.train.latest_checkpoint(options.ckp_dir) is None
    hooks = [tf.train.StopAtStepHook(last_step=options.steps), Tell(chief, new, net, held_back, leave), leave]
    # Without the filter a worker would wait for every other one to be up.
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:{}".format(options.task_index)])
    if not chief:
        return tf.train.MonitoredSession(Follower(server.target, config), hooks)
    return tf.train.MonitoredTrainingSession(
        server.target, is_chief=True, checkpoint_dir=options.ckp_dir, hooks=hooks, config=config,
        save_checkpoint_steps=STEPS_PER_CHECKPOINT, save_checkpoint_secs=None,
        save_summaries_steps=STEPS_PER_SUMMARY, save_summaries_secs=None)


class Follower(tf.train.SessionCreator):
    """Opens a session as soon as the chief has made the variables ready."""

    def __init__(self, target, config):
        self._target = target
        self._config = config
        self._scaffold = tf.train.Scaffold()

    def create_session(self):
        self._scaffold.finalize()
        manager = tf.train.SessionManager(
            local_init_op=self._scaffold.local_init_op, ready_op=self._scaffold.ready_op,
            ready_for_local_init_op=self._scaffold.ready_for_local_init_op,
            graph=tf.get_default_graph(), recovery_wait_secs=RECOVERY)
        return manager.wait_for_session(self._target, config=self._config, max_wait_secs=PATIENCE)


def load(folder):
    """(training, held back), each (images, labels), from digits.csv.gz in folder."""
    with gzip.open(os.path.join(folder, "digits.csv.gz"), "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    images, labels = (table[:, :PIXELS] / DARKEST).astype(np.float32), table[:, PIXELS].astype(np.int64)
    kept = np.arange(len(table)) % HELD_BACK == HELD_BACK - 1
    return (images[~kept], labels[~kept]), (images[kept], labels[kept])


def progress(step, steps):
    print("reporter progress:{:.2f}".format(min(1, step / steps)), file=sys.stderr, flush=True)


def say(text):
    print(text, flush=True)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ps_hosts", type=hosts, required=True)
    parser.add_argument("--worker_hosts", type=hosts, required=True)
    parser.add_argument("--job_name", choices=("ps", "worker"), required=True)
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--ckp_dir", required=True, help="folder of checkpoints and summaries")
    parser.add_argument("--work_dir", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--data_dir", default="", help="folder of digits.csv.gz; by default the work folder")
    parser.add_argument("--steps", type=int, default=int(os.environ.get("TRAIN_STEPS", 1500)))
    parser.add_argument("--pace", type=float, default=float(os.environ.get("TRAIN_PACE", 0.02)),
                        help="seconds that each step takes at least, all workers together")
    return parser.parse_args(arguments)


def hosts(text):
    return text.split(",")


if __name__ == "__main__":
    main()
