"""Handwritten digits by distributed data parallelism: every rank computes on its share of the images, and
DistributedDataParallel averages the gradients over gloo, so that all have the same model at every step.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say who is there. Rank 0 writes ckpt-STEP.pt to MUSTER_CHECKPOINT_DIR: under
another name first, so that a checkpoint is there as a whole or not at all. Whoever starts goes on from rank 0's newest.
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
    import numpy as np
    import torch
    from torch import distributed, nn
except ImportError as missing:
    sys.exit("train.py: {}: {}; name a Python that has PyTorch by --set muster.python=PATH".format(
        sys.executable, missing))

PIXELS, CLASSES, DARKEST = 64, 10, 16
HELD_BACK = 5  # every fifth image
HIDDEN = 32
BATCH = 16  # images of each rank in one step
RATE = 0.3
TELL = 25  # a line of loss each so many steps
KEEP = 3  # checkpoints


def main():
    options = parse()
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    torch.manual_seed(options.seed)
    net = nn.Sequential(nn.Linear(PIXELS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, CLASSES))
    begin = restore(net, os.environ["MUSTER_CHECKPOINT_DIR"])
    say("rank {} of {}: {}".format(rank, world, "restored step {}".format(begin) if begin else "starting at step 0"))
    training, held_back = load()
    model = nn.parallel.DistributedDataParallel(net)  # takes rank 0's parameters
    train(model, [part[rank::world] for part in training], begin, options)
    say("finished at step {} with model {}".format(options.steps, digest(net)))
    if rank == 0:
        say("accuracy {:.4f}".format(accuracy(net, *held_back)))
    distributed.destroy_process_group()


def train(model, mine, begin, options):
    images, labels = mine
    rank = distributed.get_rank()
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    chance = torch.Generator()
    for step in range(begin + 1, options.steps + 1):
        began = time.monotonic()
        rows = torch.randint(len(labels), (BATCH,), generator=chance.manual_seed(step * 1000 + rank))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        if step % TELL == 0 or step == options.steps:
            say("step {} loss {:.4f}".format(step, loss.item()))
            print("reporter progress:{:.2f}".format(step / options.steps), file=sys.stderr, flush=True)
        if rank == 0 and (step % options.checkpoint_every == 0 or step == options.steps):
            save(model.module, step, os.environ["MUSTER_CHECKPOINT_DIR"])
        time.sleep(max(0, began + options.pace - time.monotonic()))


def save(net, step, folder):
    os.makedirs(folder, exist_ok=True)
    new = os.path.join(folder, "new-checkpoint")
    with open(new, "wb") as file:
        torch.save({"step": step, "model": net.state_dict()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, os.path.join(folder, "ckpt-{}.pt".format(step)))
    for _, old in checkpoints(folder)[:-KEEP]:
        os.unlink(old)
    say("checkpoint step {}".format(step))


def restore(net, folder):
    """The step after which to go on: rank 0's, whatever the others see in the folder."""
    step = torch.zeros(1, dtype=torch.int64)
    there = checkpoints(folder)
    if distributed.get_rank() == 0 and there:
        saved = torch.load(there[-1][1])
        net.load_state_dict(saved["model"])
        step[0] = saved["step"]
    distributed.broadcast(step, 0)
    return int(step)


def checkpoints(folder):
    """(step, path) of each, the newest last."""
    found = ((re.search(r"ckpt-(\d+)\.pt$", path), path) for path in glob.glob(os.path.join(glob.escape(folder), "ckpt-*.pt")))
    return sorted((int(match.group(1)), path) for match, path in found if match)


def digest(net):
    """The same for two models only if they are the same to the last bit."""
    whole = hashlib.sha256()
    for parameter in net.parameters():
        whole.update(parameter.detach().numpy().tobytes())
    return whole.hexdigest()[:16]


def accuracy(net, images, labels):
    with torch.no_grad():
        return (net(images).argmax(1) == labels).float().mean().item()


def load():
    """(training, held back), each (images, labels)."""
    with gzip.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits.csv.gz"), "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    images = torch.tensor(table[:, :PIXELS] / DARKEST, dtype=torch.float32)
    labels = torch.tensor(table[:, PIXELS], dtype=torch.int64)
    kept = torch.arange(len(table)) % HELD_BACK == HELD_BACK - 1
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
