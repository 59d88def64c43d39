"""Fits a line with TensorFlow: alone, or on parameter servers by several workers.

    line.py --train_dir=DIR [--steps=N]
    line.py --train_dir=DIR [--steps=N] --ps_hosts=H:P,… --worker_hosts=H:P,… --job_name=ps|worker --task_index=N

DIR is a path or a file: URI. TensorBoard reads there what the first worker, or the only one, has written; the model is there too.
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

TRUTH = np.arange(1, 9, dtype=np.float32).reshape(8, 1)


def folder(text):
    for scheme in ("file://", "file:"):
        if text.startswith(scheme):
            return text[len(scheme):]
    return text


def arguments():
    def names(text):
        return text.split(",")
    parser = argparse.ArgumentParser()
    parser.add_argument("--train_dir", type=folder, required=True)
    parser.add_argument("--steps", type=int, default=200, help="of all workers together")
    parser.add_argument("--ps_hosts", type=names)
    parser.add_argument("--worker_hosts", type=names)
    parser.add_argument("--job_name", choices=("ps", "worker"), default="worker")
    parser.add_argument("--task_index", type=int, default=0)
    return parser.parse_args()


def train(args, target="", placed=None):
    chief = args.task_index == 0
    with tf.device(placed):
        inputs = tf.placeholder(tf.float32, [None, len(TRUTH)])
        wanted = tf.placeholder(tf.float32, [None, 1])
        weights = tf.get_variable("weights", TRUTH.shape, initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
        loss = tf.losses.mean_squared_error(wanted, tf.matmul(inputs, weights) + bias)
        count = tf.train.get_or_create_global_step()
        update = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=count)
        with tf.control_dependencies([update]):
            after = count.read_value()
        summary = tf.summary.scalar("loss", loss)
        missing = tf.report_uninitialized_variables()
    # Without filters a session waits for all other workers, those as well that are done.
    filters = ["/job:ps", "/job:worker/task:{}".format(args.task_index)]
    with tf.Session(target, config=tf.ConfigProto(device_filters=filters if target else [])) as session:
        if chief:
            session.run(tf.global_variables_initializer())
        while session.run(missing).size:
            time.sleep(0.2)
        writer = tf.summary.FileWriter(args.train_dir, session.graph) if chief else None
        step = value = 0
        while step < args.steps:
            x = np.random.normal(size=(32, len(TRUTH)))
            _, value, told, step = session.run([update, loss, summary, after], {inputs: x, wanted: x @ TRUTH + 1})
            if chief:
                writer.add_summary(told, step)
        if chief:
            writer.close()
            tf.train.Saver().save(session, os.path.join(args.train_dir, "model"), step)
    print("worker {} ended at step {}, loss {:.4f}".format(args.task_index, step, value), flush=True)


def main():
    args = arguments()
    tf.disable_v2_behavior()
    if not args.ps_hosts:
        train(args)
        return
    cluster = tf.train.ClusterSpec({"ps": args.ps_hosts, "worker": args.worker_hosts})
    server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)
    if args.job_name == "ps":
        server.join()
    own = "/job:worker/task:{}".format(args.task_index)
    train(args, server.target, tf.train.replica_device_setter(worker_device=own, cluster=cluster))


if __name__ == "__main__":
    main()
