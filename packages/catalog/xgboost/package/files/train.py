"""Handwritten digits by boosted trees: every worker has a share of the images, and XGBoost's collective sums what each
of them counts, so that all grow the same trees.

DMLC_TRACKER_URI and DMLC_TRACKER_PORT say where the tracker is, that tells them of one another; DMLC_TASK_ID who we are.
Worker 0 writes model-ROUNDS.ubj to MUSTER_CHECKPOINT_DIR; --resume PATH goes on from such a file.
"""

import argparse
import glob
import gzip
import hashlib
import os
import re
import socket
import sys
import time

try:
    import numpy as np
    import xgboost
    from xgboost import collective
except ImportError as missing:
    sys.exit("train.py: {}: {}; name a Python that has XGBoost 2.1 or later by --set muster.python=PATH".format(
        sys.executable, missing))

PIXELS, CLASSES = 64, 10
HELD_BACK = 5  # every fifth image
TELL = 5  # a line each so many rounds
KEEP = 3  # checkpoints
PATIENCE = 120  # seconds in which the tracker is to be there
LOOK = 0.2
PARAMETERS = {"objective": "multi:softmax", "num_class": CLASSES, "max_depth": 4, "eta": 0.3, "tree_method": "hist", "nthread": 1}


def main():
    options = parse()
    task = os.environ["DMLC_TASK_ID"]
    await_tracker(os.environ["DMLC_TRACKER_URI"], int(os.environ["DMLC_TRACKER_PORT"]))
    with collective.CommunicatorContext(
            dmlc_tracker_uri=os.environ["DMLC_TRACKER_URI"], dmlc_tracker_port=int(os.environ["DMLC_TRACKER_PORT"]),
            dmlc_task_id=task):
        rank, world = collective.get_rank(), collective.get_world_size()
        before = xgboost.Booster(model_file=options.resume) if options.resume else None
        done = before.num_boosted_rounds() if before else 0
        say("worker {} is rank {} of {}: {}".format(
            task, rank, world, "resuming after round {}".format(done) if done else "starting at round 0"))
        training, held_back = load()
        images, labels = (part[rank::world] for part in training)
        booster = xgboost.train(
            PARAMETERS, xgboost.DMatrix(images, labels), max(0, options.rounds - done), xgb_model=before,
            callbacks=[Round(options, rank)])
        say("finished after round {} with model {}".format(
            booster.num_boosted_rounds(), hashlib.sha256(booster.save_raw("ubj")).hexdigest()[:16]))
    if rank == 0:  # alone: what is made of data within the collective is made by all at once
        images, labels = held_back
        say("accuracy {:.4f}".format(np.mean(booster.predict(xgboost.DMatrix(images)) == labels)))


def await_tracker(host, port):
    """XGBoost asks three times and gives up; a tracker that was started again may wait a minute for its port."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection((host, port), timeout=5).close()
            return
        except OSError as err:
            if time.monotonic() > end:
                sys.exit("train.py: no tracker at {}:{}: {}".format(host, port, err))
            time.sleep(LOOK)


class Round(xgboost.callback.TrainingCallback):
    """What is done after each round."""

    def __init__(self, options, rank):
        super().__init__()
        self._options = options
        self._rank = rank
        self._began = time.monotonic()

    def after_iteration(self, model, epoch, evals_log):
        done, options = model.num_boosted_rounds(), self._options
        if done % TELL == 0 or done == options.rounds:
            say("round {}".format(done))
            print("reporter progress:{:.2f}".format(done / options.rounds), file=sys.stderr, flush=True)
        if self._rank == 0 and (done % options.checkpoint_every == 0 or done == options.rounds):
            save(model, done, os.environ["MUSTER_CHECKPOINT_DIR"])
        time.sleep(max(0, self._began + options.pace - time.monotonic()))
        self._began = time.monotonic()
        return False


def save(model, done, folder):
    """Under another name first: a checkpoint is there as a whole or not at all."""
    os.makedirs(folder, exist_ok=True)
    new = os.path.join(folder, "new-checkpoint")
    with open(new, "wb") as file:
        file.write(model.save_raw("ubj"))
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, os.path.join(folder, "model-{}.ubj".format(done)))
    found = ((re.search(r"model-(\d+)\.ubj$", path), path) for path in glob.glob(os.path.join(glob.escape(folder), "model-*.ubj")))
    for _, old in sorted((int(match.group(1)), path) for match, path in found if match)[:-KEEP]:
        os.unlink(old)
    say("checkpoint round {}".format(done))


def load():
    """(training, held back), each (images, labels)."""
    with gzip.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits.csv.gz"), "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    images, labels = table[:, :PIXELS], table[:, PIXELS]
    kept = np.arange(len(table)) % HELD_BACK == HELD_BACK - 1
    return (images[~kept], labels[~kept]), (images[kept], labels[kept])


def say(text):
    print(text, flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, required=True, help="of trees, in all")
    parser.add_argument("--pace", type=float, default=0, help="seconds that a round takes at least")
    parser.add_argument("--checkpoint-every", type=int, default=5, help="rounds from one checkpoint to the next")
    parser.add_argument("--resume", default="", help="model to go on from")
    return parser.parse_args()


if __name__ == "__main__":
    main()
