"""Handwritten digits through MXNet's parameter servers: the workers push gradients to the store dist_sync, which sums
those of all workers, moves the parameters and hands them back.

DMLC_ROLE says who this is. A server and the scheduler live in the import of mxnet and end when the workers are done.
Worker 0 writes net-STEP.params to MUSTER_CHECKPOINT_DIR; --resume PATH goes on from such a file.
"""

import argparse
import glob
import gzip
import hashlib
import os
import re
import sys
import time

# The address that the others are told. ps-lite would look for a network card, and not every host has the one that it takes.
os.environ.setdefault("DMLC_NODE_HOST", os.environ["MUSTER_HOST"])
print("{} of {} servers and {} workers".format(*(os.environ["DMLC_" + name] for name in ("ROLE", "NUM_SERVER", "NUM_WORKER"))), flush=True)

try:
    import mxnet as mx
    import numpy as np
    from mxnet import autograd, gluon
except ImportError as missing:
    sys.exit("train.py: {}: {}; name a Python that has MXNet by --set muster.python=PATH".format(
        sys.executable, missing))

PIXELS, CLASSES, DARKEST = 64, 10, 16
HELD_BACK = 5  # every fifth image
HIDDEN = 32
BATCH = 16  # images of each worker in one step
RATE = 0.3
TELL = 25  # a line of loss each so many steps
KEEP = 3  # checkpoints


def main():
    options = parse()
    store = mx.kv.create("dist_sync")
    begin = step_of(options.resume) if options.resume else 0
    say("worker {} of {}: {}".format(
        store.rank, store.num_workers, "resuming at step {}".format(begin) if begin else "starting at step 0"))
    mx.random.seed(options.seed)
    net = gluon.nn.Sequential()
    net.add(gluon.nn.Dense(HIDDEN, activation="tanh", in_units=PIXELS), gluon.nn.Dense(CLASSES, in_units=HIDDEN))
    net.initialize(mx.init.Xavier())
    if options.resume:
        net.load_parameters(options.resume)
    training, held_back = load()
    train(net, store, [part[store.rank::store.num_workers] for part in training], begin, options)
    say("finished at step {} with model {}".format(options.steps, digest(net)))
    if store.rank == 0:
        images, labels = held_back
        say("accuracy {:.4f}".format(np.mean(net(mx.nd.array(images)).asnumpy().argmax(1) == labels)))


def train(net, store, mine, begin, options):
    images, labels = mine
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": RATE}, kvstore=store)
    measure = gluon.loss.SoftmaxCrossEntropyLoss()
    for step in range(begin + 1, options.steps + 1):
        began = time.monotonic()
        rows = np.random.RandomState(step * 1000 + store.rank).randint(len(labels), size=BATCH)
        with autograd.record():
            loss = measure(net(mx.nd.array(images[rows])), mx.nd.array(labels[rows]))
        loss.backward()
        trainer.step(BATCH * store.num_workers)  # the servers sum over the workers
        if step % TELL == 0 or step == options.steps:
            say("step {} loss {:.4f}".format(step, loss.mean().asscalar()))
            print("reporter progress:{:.2f}".format(step / options.steps), file=sys.stderr, flush=True)
        if store.rank == 0 and (step % options.checkpoint_every == 0 or step == options.steps):
            save(net, step, os.environ["MUSTER_CHECKPOINT_DIR"])
        time.sleep(max(0, began + options.pace - time.monotonic()))


def save(net, step, folder):
    """Under another name first: a checkpoint is there as a whole or not at all."""
    os.makedirs(folder, exist_ok=True)
    new = os.path.join(folder, "new-checkpoint")
    net.save_parameters(new)
    with open(new, "rb") as file:
        os.fsync(file.fileno())
    os.replace(new, os.path.join(folder, "net-{}.params".format(step)))
    found = glob.glob(os.path.join(glob.escape(folder), "net-*.params"))
    for old in sorted(filter(step_of, found), key=step_of)[:-KEEP]:
        os.unlink(old)
    say("checkpoint step {}".format(step))


def step_of(path):
    match = re.search(r"net-(\d+)\.params$", path)
    return int(match.group(1)) if match else 0


def digest(net):
    """The same for two models only if they are the same to the last bit."""
    parts = (parameter.data().asnumpy().tobytes() for _, parameter in sorted(net._collect_params_with_prefix().items()))
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def load():
    """(training, held back), each (images, labels)."""
    with gzip.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits.csv.gz"), "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    images, labels = (table[:, :PIXELS] / DARKEST).astype(np.float32), table[:, PIXELS]
    kept = np.arange(len(table)) % HELD_BACK == HELD_BACK - 1
    return (images[~kept], labels[~kept]), (images[kept], labels[kept])


def say(text):
    print(text, flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--pace", type=float, default=0, help="seconds that a step takes at least")
    parser.add_argument("--checkpoint-every", type=int, default=50, help="steps from one checkpoint to the next")
    parser.add_argument("--seed", type=int, default=1, help="decides the model before the first step")
    parser.add_argument("--resume", default="", help="parameters to go on from")
    return parser.parse_args()


if __name__ == "__main__":
    main()
