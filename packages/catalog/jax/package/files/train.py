"""Handwritten digits by data parallelism over processes: each process has one device, a mesh spans all of them, and the
mean of the loss over the whole batch makes XLA sum the gradients between the processes.

JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID say who is there. Process 0 writes ckpt-STEP.npz to
MUSTER_CHECKPOINT_DIR; whoever starts goes on from process 0's newest.
"""

import argparse
import glob
import gzip
import hashlib
import os
import re
import sys
import time

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import multihost_utils
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
except ImportError as missing:
    sys.exit("train.py: {}: {}; name a Python that has JAX by --set muster.python=PATH".format(
        sys.executable, missing))

PIXELS, CLASSES, DARKEST = 64, 10, 16
HELD_BACK = 5  # every fifth image
HIDDEN = 32
BATCH = 16  # images of each process in one step
RATE = 0.3
TELL = 25  # a line of loss each so many steps
KEEP = 3  # checkpoints
PATIENCE = 120  # seconds that the others may take to come


def main():
    options = parse()
    jax.distributed.initialize(
        os.environ["JAX_COORDINATOR_ADDRESS"], int(os.environ["JAX_NUM_PROCESSES"]), int(os.environ["JAX_PROCESS_ID"]),
        initialization_timeout=PATIENCE)
    me, count = jax.process_index(), jax.process_count()
    folder = os.environ["MUSTER_CHECKPOINT_DIR"]
    begin, net = multihost_utils.broadcast_one_to_all(newest(folder, options.seed))
    begin = int(begin)
    say("process {} of {}: {}".format(me, count, "restored step {}".format(begin) if begin else "starting at step 0"))
    training, held_back = load()
    net = train(net, [part[me::count] for part in training], begin, options, folder)
    say("finished at step {} with model {}".format(options.steps, digest(net)))
    if me == 0:
        images, labels = held_back
        say("accuracy {:.4f}".format(np.mean(np.argmax(forward(net, images), 1) == labels)))
    jax.distributed.shutdown()  # waits for all, so that nobody loses the coordinator


def train(net, mine, begin, options, folder):
    mesh = Mesh(jax.devices(), ("batch",))
    everywhere, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("batch"))
    net = {name: jax.make_array_from_process_local_data(everywhere, np.asarray(part)) for name, part in net.items()}
    me = jax.process_index()
    images, labels = mine
    for step in range(begin + 1, options.steps + 1):
        began = time.monotonic()
        rows = np.random.RandomState(step * 1000 + me).randint(len(labels), size=BATCH)
        batch = [jax.make_array_from_process_local_data(split, part[rows]) for part in (images, labels)]
        net, loss = update(net, *batch)
        if step % TELL == 0 or step == options.steps:
            say("step {} loss {:.4f}".format(step, float(loss)))
            print("reporter progress:{:.2f}".format(step / options.steps), file=sys.stderr, flush=True)
        if me == 0 and (step % options.checkpoint_every == 0 or step == options.steps):
            save(net, step, folder)
        time.sleep(max(0, began + options.pace - time.monotonic()))
    return {name: np.asarray(part.addressable_data(0)) for name, part in net.items()}


@jax.jit
def update(net, images, labels):
    loss, gradient = jax.value_and_grad(mean_loss)(net, images, labels)
    return jax.tree.map(lambda part, g: part - RATE * g, net, gradient), loss


def mean_loss(net, images, labels):
    chances = jax.nn.log_softmax(forward(net, images))
    return -jnp.mean(jnp.take_along_axis(chances, labels[:, None], 1))


def forward(net, images):
    return jnp.tanh(images @ net["w1"] + net["b1"]) @ net["w2"] + net["b2"]


def newest(folder, seed):
    """(step, net) of the newest checkpoint, or what all begin with."""
    for step, path in reversed(checkpoints(folder)):
        with np.load(path) as saved:
            return np.int64(step), {name: saved[name] for name in saved.files}
    chance = np.random.RandomState(seed)
    net = {"w1": chance.normal(0, PIXELS ** -0.5, (PIXELS, HIDDEN)), "b1": np.zeros(HIDDEN),
           "w2": chance.normal(0, HIDDEN ** -0.5, (HIDDEN, CLASSES)), "b2": np.zeros(CLASSES)}
    return np.int64(0), {name: part.astype(np.float32) for name, part in net.items()}


def save(net, step, folder):
    """Under another name first: a checkpoint is there as a whole or not at all."""
    os.makedirs(folder, exist_ok=True)
    new = os.path.join(folder, "new-checkpoint")
    with open(new, "wb") as file:
        np.savez(file, **{name: np.asarray(part.addressable_data(0)) for name, part in net.items()})
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, os.path.join(folder, "ckpt-{}.npz".format(step)))
    for _, old in checkpoints(folder)[:-KEEP]:
        os.unlink(old)
    say("checkpoint step {}".format(step))


def checkpoints(folder):
    """(step, path) of each, the newest last."""
    found = ((re.search(r"ckpt-(\d+)\.npz$", path), path) for path in glob.glob(os.path.join(glob.escape(folder), "ckpt-*.npz")))
    return sorted((int(match.group(1)), path) for match, path in found if match)


def digest(net):
    """The same for two models only if they are the same to the last bit."""
    return hashlib.sha256(b"".join(net[name].tobytes() for name in sorted(net))).hexdigest()[:16]


def load():
    """(training, held back), each (images, labels)."""
    with gzip.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits.csv.gz"), "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    images, labels = (table[:, :PIXELS] / DARKEST).astype(np.float32), table[:, PIXELS].astype(np.int32)
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
    return parser.parse_args()


if __name__ == "__main__":
    main()
