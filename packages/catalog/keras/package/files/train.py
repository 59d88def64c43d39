"""Clouds of points by Keras: model.fit in one process, and a checkpoint of the weights each few epochs.

A callback writes ckpt-EPOCH.weights.h5 to MUSTER_CHECKPOINT_DIR: under another name first, so that a checkpoint is there as a
whole or not at all. --resume PATH goes on from such a file.
"""

import argparse
import glob
import hashlib
import os
import re
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

try:
    import numpy as np
    from tensorflow import keras
except ImportError as missing:
    sys.exit("train.py: {}: {}; name a Python that has TensorFlow with Keras by --set muster.python=PATH".format(
        sys.executable, missing))

DIMENSIONS, CLASSES = 16, 10
POINTS, SPREAD = 2000, 0.5  # of all clouds, around their centres
HELD_BACK = 5  # every fifth point
HIDDEN = 32
BATCH = 32
RATE = 0.3
KEEP = 3  # checkpoints


def main():
    options = parse()
    begin = epoch_of(options.resume) if options.resume else 0
    keras.utils.set_random_seed(options.seed)
    model = keras.Sequential([
        keras.Input((DIMENSIONS,)), keras.layers.Dense(HIDDEN, activation="tanh"), keras.layers.Dense(CLASSES)])
    model.compile(keras.optimizers.SGD(RATE), keras.losses.SparseCategoricalCrossentropy(from_logits=True), ["accuracy"])
    if options.resume:
        model.load_weights(options.resume)
    print("resuming after epoch {}".format(begin) if begin else "starting at epoch 0", flush=True)
    training, held_back = load()
    model.fit(*training, batch_size=BATCH, initial_epoch=begin, epochs=options.epochs, verbose=0, callbacks=[Saver(options)])
    print("finished after epoch {} with model {}".format(options.epochs, digest(model)))
    print("accuracy {:.4f}".format(model.evaluate(*held_back, verbose=0)[1]), flush=True)


class Saver(keras.callbacks.Callback):
    def __init__(self, options):
        super().__init__()
        self.options = options

    def on_epoch_end(self, epoch, logs=None):
        epoch += 1
        print("epoch {} loss {:.4f}".format(epoch, logs["loss"]), flush=True)
        print("reporter progress:{:.2f}".format(epoch / self.options.epochs), file=sys.stderr, flush=True)
        if epoch % self.options.checkpoint_every == 0 or epoch == self.options.epochs:
            save(self.model, epoch, os.environ["MUSTER_CHECKPOINT_DIR"])
        time.sleep(self.options.pace)


def save(model, epoch, folder):
    os.makedirs(folder, exist_ok=True)
    new = os.path.join(folder, "new.weights.h5")
    model.save_weights(new)
    with open(new, "rb") as file:
        os.fsync(file.fileno())
    os.replace(new, os.path.join(folder, "ckpt-{}.weights.h5".format(epoch)))
    there = glob.glob(os.path.join(glob.escape(folder), "ckpt-*.weights.h5"))
    for old in sorted(there, key=epoch_of)[:-KEEP]:
        os.unlink(old)
    print("checkpoint epoch {}".format(epoch), flush=True)


def epoch_of(path):
    return int(re.search(r"ckpt-(\d+)\.weights\.h5$", path).group(1))


def digest(model):
    """The same for two models only if they are the same to the last bit."""
    return hashlib.sha256(b"".join(weights.tobytes() for weights in model.get_weights())).hexdigest()[:16]


def load():
    """(training, held back), each (points, labels)."""
    chance = np.random.RandomState(1)
    labels = chance.randint(CLASSES, size=POINTS)
    points = chance.normal(size=(CLASSES, DIMENSIONS))[labels] + SPREAD * chance.normal(size=(POINTS, DIMENSIONS))
    kept = np.arange(POINTS) % HELD_BACK == HELD_BACK - 1
    return (points[~kept], labels[~kept]), (points[kept], labels[kept])


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--pace", type=float, default=0, help="seconds to wait after an epoch")
    parser.add_argument("--checkpoint-every", type=int, default=5, help="epochs from one checkpoint to the next")
    parser.add_argument("--seed", type=int, default=1, help="decides the model before the first step")
    parser.add_argument("--resume", help="a checkpoint")
    return parser.parse_args()


if __name__ == "__main__":
    main()
