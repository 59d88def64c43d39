"""TensorFlow in-graph replication, as users wrote it: one client builds one graph, with the variables on the parameter
servers and a copy of the model on each worker, and averages what the copies computed. Nobody else runs this script.

    in_graph.py --ps_hosts=H:P,… --worker_hosts=H:P,… --job_name=worker --task_index=0 --ckp_dir=DIR --work_dir=DIR

Lines that tests wait for, on stdout:

    tower N on DEVICE       where a copy computed, as TensorFlow itself says of a step
    variable on DEVICE      where the variable was read
    finished at step N loss X
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

STEPS = 100
TRUTH = np.arange(1, 9, dtype=np.float32).reshape(8, 1)


def main():
    tf.disable_v2_behavior()
    options = parse()
    cluster = tf.train.ClusterSpec({"ps": options.ps_hosts, "worker": options.worker_hosts})
    server = tf.train.Server(cluster, job_name=options.job_name, task_index=options.task_index)
    with tf.device("/job:ps/task:0"):
        weights = tf.get_variable("weights", [8, 1], initializer=tf.zeros_initializer(), use_resource=False)
    losses = []
    for task in range(len(options.worker_hosts)):
        with tf.device("/job:worker/task:{}/device:CPU:0".format(task)), tf.name_scope("tower_{}".format(task)):
            x = tf.random_uniform([16, 8], seed=task)
            losses.append(tf.reduce_mean(tf.square(tf.matmul(x, weights - TRUTH))))
    loss = tf.add_n(losses) / len(losses)
    update = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session(server.target) as session:
        session.run(tf.global_variables_initializer())
        trace = tf.RunMetadata()
        session.run([update, loss], options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=trace)
        tell(trace)
        for _ in range(STEPS - 1):
            _, last = session.run([update, loss])
    print("finished at step {} loss {:.6f}".format(STEPS, last), flush=True)


def tell(trace):
    """Who computed what in one step."""
    for device in trace.step_stats.dev_stats:
        scopes = {node.node_name.split("/")[0] for node in device.node_stats}
        for scope in sorted(scopes):
            if scope.startswith("tower_"):
                print("tower {} on {}".format(scope[len("tower_"):], device.device), flush=True)
        if "weights" in scopes:
            print("variable on {}".format(device.device), flush=True)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ps_hosts", type=lambda text: text.split(","), required=True)
    parser.add_argument("--worker_hosts", type=lambda text: text.split(","), required=True)
    parser.add_argument("--job_name", required=True)
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--ckp_dir")
    parser.add_argument("--work_dir")
    return parser.parse_args()


if __name__ == "__main__":
    main()
