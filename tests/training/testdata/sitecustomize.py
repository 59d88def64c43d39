"""Python imports this by itself, by PYTHONPATH. As long as the file PROGRAM_HOLD exists no training goes on beyond its
first checkpoint: the trainers of the catalog sleep after each step, be it for no time at all.

A checkpoint that is being written is none yet. MXNet opens its file before it has the parameters, which are there when all
workers have pushed that step: one that was held before would be waited for without end."""

import os
import time

HOLD = os.environ["PROGRAM_HOLD"]
CHECKPOINTS = os.environ["MUSTER_CHECKPOINT_DIR"]
BEGUN = "new-"
really = time.sleep


def held():
    return os.path.exists(HOLD) and os.path.isdir(CHECKPOINTS) and any(not name.startswith(BEGUN) for name in os.listdir(CHECKPOINTS))


def sleep(seconds):
    really(seconds)
    while held():
        really(0.05)


time.sleep = sleep
