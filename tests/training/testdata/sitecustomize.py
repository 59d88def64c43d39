"""Python imports this by itself, by PYTHONPATH. As long as the file PROGRAM_HOLD exists no training goes on beyond its
first checkpoint: the trainers of the catalog sleep after each step, be it for no time at all."""

import os
import time

HOLD = os.environ["PROGRAM_HOLD"]
CHECKPOINTS = os.environ["MUSTER_CHECKPOINT_DIR"]
really = time.sleep


def held():
    return os.path.exists(HOLD) and os.path.isdir(CHECKPOINTS) and bool(os.listdir(CHECKPOINTS))


def sleep(seconds):
    really(seconds)
    while held():
        really(0.05)


time.sleep = sleep
