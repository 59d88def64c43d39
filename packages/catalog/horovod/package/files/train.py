"""Clouds of points by distributed data parallelism: every rank computes on its share of the points, and Horovod averages
the gradients over Gloo, so that all have the same model at every step.

HOROVOD_RANK, HOROVOD_SIZE and HOROVOD_GLOO_RENDEZVOUS_* say who is there. Rank 0 writes ckpt-STEP.pt to
MUSTER_CHECKPOINT_DIR: under another name first, so that a checkpoint is there as a whole or not at all. Every rank resumes
from rank 0's newest.
"""

import argparse
import glob
import hashlib
import os
import re
import sys
import time

try:
    import horovod.torch as hvd
    import torch
    from torch import nn
except ImportError as missing:
    sys.exit("train.py: {}: {}; name a Python that has Horovod by --set muster.python=PATH".format(
        sys.executable, missing))

DIMENSIONS, CLASSES = 16, 10
POINTS, SPREAD = 2000, 0.5  # of all clouds, around their centres
HELD_BACK = 5  # every fifth point
HIDDEN = 32
BATCH = 16  # points of each rank in one step
RATE = 0.3
TELL = 25  # a line of loss each so many steps
KEEP = 3  # checkpoints


def main():
    options = parse()
    torch.set_num_threads(1)
    hvd.init()
    rank, world = hvd.rank(), hvd.size()
    torch.manual_seed(options.seed)
    net = nn.Sequential(nn.Linear(DIMENSIONS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, CLASSES))
    begin = restore(net, os.environ["MUSTER_CHECKPOINT_DIR"])
    say("rank {} of {}: {}".format(rank, world, "restored step {}".format(begin) if begin else "starting at step 0"))
    training, held_back = load()
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    train(net, [part[rank::world] for part in training], begin, options)
    say("finished at step {} with model {}".format(options.steps, digest(net)))
    if rank == 0:
        say("accuracy {:.4f}".format(accuracy(net, *held_back)))
    hvd.shutdown()


def train(net, mine, begin, options):
    points, labels = mine
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), RATE), net.named_parameters())
    chance = torch.Generator()
    for step in range(begin + 1, options.steps + 1):
        began = time.monotonic()
        rows = torch.randint(len(labels), (BATCH,), generator=chance.manual_seed(step * 1000 + hvd.rank()))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(points[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        if step % TELL == 0 or step == options.steps:
            say("step {} loss {:.4f}".format(step, loss.item()))
            print("reporter progress:{:.2f}".format(step / options.steps), file=sys.stderr, flush=True)
        if hvd.rank() == 0 and (step % options.checkpoint_every == 0 or step == options.steps):
            save(net, step, os.environ["MUSTER_CHECKPOINT_DIR"])
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
    if hvd.rank() == 0 and there:
        saved = torch.load(there[-1][1])
        net.load_state_dict(saved["model"])
        step[0] = saved["step"]
    return int(hvd.broadcast(step, root_rank=0))


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


def accuracy(net, points, labels):
    with torch.no_grad():
        return (net(points).argmax(1) == labels).float().mean().item()


def load():
    """(training, held back), each (points, labels): the same on every rank."""
    chance = torch.Generator().manual_seed(1)
    labels = torch.randint(CLASSES, (POINTS,), generator=chance)
    centres = torch.randn(CLASSES, DIMENSIONS, generator=chance)
    points = centres[labels] + SPREAD * torch.randn(POINTS, DIMENSIONS, generator=chance)
    kept = torch.arange(POINTS) % HELD_BACK == HELD_BACK - 1
    return (points[~kept], labels[~kept]), (points[kept], labels[kept])


def say(text):
    print(text + "\n", end="", flush=True)  # in one piece: several processes of a container write to one pipe


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--pace", type=float, default=0, help="seconds that a step takes at least")
    parser.add_argument("--checkpoint-every", type=int, default=50, help="steps from one checkpoint to the next")
    parser.add_argument("--seed", type=int, default=1, help="decides the model before the first step")
    return parser.parse_args()


if __name__ == "__main__":
    main()
