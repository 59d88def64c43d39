"""A TensorFlow 1 program that knows of no folder to look in: what it goes on from, it is told by argument.

    restore_argument.py [--restore PREFIX]

It saves itself to MUSTER_CHECKPOINT_DIR after every tenth step. As long as the file PROGRAM_HOLD exists it waits behind its
first save. Lines that tests wait for, on stdout:

    starting at step 0
    restored step N from PREFIX
    saved step N
    finished at step N value X      the value is that of N steps, whoever made them
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow.compat.v1 as tf  # noqa: E402

STEPS = 50


def main():
    tf.disable_v2_behavior()
    parser = argparse.ArgumentParser()
    parser.add_argument("--restore")
    restore = parser.parse_args().restore
    folder = os.environ["MUSTER_CHECKPOINT_DIR"]
    step = tf.train.get_or_create_global_step()
    value = tf.get_variable("value", [], initializer=tf.zeros_initializer())
    with tf.control_dependencies([tf.assign_add(value, 0.5)]):
        advance = tf.assign_add(step, 1)
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        if restore:
            saver.restore(session, restore)
            print("restored step {} from {}".format(session.run(step), restore), flush=True)
        else:
            print("starting at step 0", flush=True)
        while session.run(step) < STEPS:
            now = session.run(advance)
            if now % 10 == 0:
                saver.save(session, os.path.join(folder, "model"), global_step=step)
                print("saved step {}".format(now), flush=True)
                while os.path.exists(os.environ["PROGRAM_HOLD"]):
                    time.sleep(0.05)
        print("finished at step {} value {:.1f}".format(*session.run([step, value])), flush=True)


if __name__ == "__main__":
    main()
