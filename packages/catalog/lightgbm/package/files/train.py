"""Handwritten digits by boosted trees: every worker has a share of the images, and LightGBM's data-parallel learner
sums what each of them counts, so that all grow the same trees.

lightGBMlist.txt in the work folder has a line `ADDRESS PORT` for each worker; LIGHTGBM_LOCAL_LISTEN_PORT says which of them
we are. Worker 0 writes model-ROUNDS.txt to MUSTER_CHECKPOINT_DIR; --resume PATH goes on from such a file.
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
    import lightgbm
    import numpy as np
except ImportError as missing:
    sys.exit("train.py: {}: {}; name a Python that has LightGBM by --set muster.python=PATH".format(
        sys.executable, missing))

PIXELS, CLASSES = 64, 10
HELD_BACK = 5  # every fifth image
TELL = 5  # a line each so many rounds
KEEP = 3  # checkpoints
PATIENCE = 2  # minutes that the others may take to listen
LOOK = 0.5
PARAMETERS = {
    "objective": "multiclass", "num_class": CLASSES, "num_leaves": 15, "learning_rate": 0.2, "min_data_in_leaf": 5,
    "num_threads": 1, "verbosity": -1, "deterministic": True, "force_row_wise": True,
}


def main():
    options = parse()
    machines = listed("lightGBMlist.txt")
    count, me = int(os.environ["LIGHTGBM_NUM_MACHINE"]), int(os.environ["MUSTER_RANK"])
    port = int(os.environ["LIGHTGBM_LOCAL_LISTEN_PORT"])
    parameters = dict(
        PARAMETERS, tree_learner="data", pre_partition=True, machines=",".join(machines), num_machines=count,
        local_listen_port=port, time_out=PATIENCE)
    await_port(port)
    before = lightgbm.Booster(model_file=options.resume) if options.resume else None
    done = before.current_iteration() if before else 0
    say("worker {} of {}: {}".format(me, count, "resuming after round {}".format(done) if done else "starting at round 0"))
    training, held_back = load()
    images, labels = (part[me::count] for part in training)
    # free_raw_data: a model to go on from says first what it makes of the images
    booster = lightgbm.train(
        parameters, lightgbm.Dataset(images, labels, free_raw_data=False), max(0, options.rounds - done),
        init_model=before, keep_training_booster=True, callbacks=[Round(options, me, done)])
    say("finished after round {} with model {}".format(
        booster.current_iteration(), hashlib.sha256(trees(booster).encode()).hexdigest()[:16]))
    if me == 0:
        images, labels = held_back
        say("accuracy {:.4f}".format(np.mean(booster.predict(images).argmax(1) == labels)))


def listed(path):
    """HOST:PORT of each worker."""
    with open(path, encoding="ascii") as lines:
        return [":".join(line.split()) for line in lines if line.strip()]


def await_port(port):
    """The kernel keeps the port of connections that have ended for a minute from whoever asks for it as LightGBM does."""
    end = time.monotonic() + 60 * PATIENCE
    while True:
        with socket.socket() as ours:
            try:
                ours.bind(("", port))
                return
            except OSError as err:
                if time.monotonic() > end:
                    sys.exit("train.py: port {}: {}".format(port, err))
        time.sleep(LOOK)


def trees(booster):
    """The model without the parameters after it, which name the port of each worker."""
    return booster.model_to_string().partition("end of trees")[0]


class Round:
    """What is done after each round; LightGBM calls it."""

    order = 10

    def __init__(self, options, me, before):
        self._options = options
        self._me = me
        self._before = before
        self._began = time.monotonic()

    def __call__(self, env):
        done, options = env.iteration + 1, self._options
        if done % TELL == 0 or done == options.rounds:
            say("round {}".format(done))
            print("reporter progress:{:.2f}".format(done / options.rounds), file=sys.stderr, flush=True)
        if self._me == 0 and (done % options.checkpoint_every == 0 or done == options.rounds):
            save(env.model, done, os.environ["MUSTER_CHECKPOINT_DIR"])
        time.sleep(max(0, self._began + options.pace - time.monotonic()))
        self._began = time.monotonic()


def save(model, done, folder):
    """Under another name first: a checkpoint is there as a whole or not at all."""
    os.makedirs(folder, exist_ok=True)
    new = os.path.join(folder, "new-checkpoint")
    with open(new, "w", encoding="utf-8") as file:
        file.write(model.model_to_string())
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, os.path.join(folder, "model-{}.txt".format(done)))
    found = ((re.search(r"model-(\d+)\.txt$", path), path) for path in glob.glob(os.path.join(glob.escape(folder), "model-*.txt")))
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
