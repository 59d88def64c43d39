"""A worker: computes gradients on its share of the images until the last step is made."""

import random
import time

import model
import source
from legacy import Legacy
from say import note, say
from servers import Servers

BATCH = 16
# The step length falls in a straight line from the first to the last step.
FIRST_RATE = 0.5
LAST_RATE = 0.1
# A line of loss each time this many steps have gone by.
TELL = 25


class Unsaved(Exception):
    """The last step is made but its checkpoint is not on the disk."""


class Worker:
    """step is the newest global step that it has heard of."""

    def __init__(self, cluster, options):
        self._images = source.read(options.data, options.reader, cluster.index, len(cluster.workers))
        self._legacy = Legacy(options.model)
        self._leads = cluster.index == 0
        self._servers = Servers(cluster.ps, cluster.index, options.patience)
        self._steps = options.steps
        self._pace = options.pace * len(cluster.workers)
        self._chance = random.Random()
        self._told = ""
        self.step = 0

    def run(self):
        """Trains to the end. Worker 0 then measures what was learnt on the images held back."""
        self.step, known = self._servers.open()
        say(_beginning(self.step, known))
        if not self._images.training:
            say("no images")  # fewer files than workers
            return
        self._train()
        self._legacy.report(self._images, self.step)
        if not self._leads:
            return
        while not self._finished():
            # A server has come back with an older step: the way is to be gone once more.
            self._train()
        step, params = self._servers.pull()
        accuracy = model.Net(params).accuracy(self._images.held_back or self._images.training)
        self._legacy.model(params, accuracy, step)
        say("accuracy {:.4f}".format(accuracy))

    def _train(self):
        self.step, params = self._servers.pull()
        while self.step < self._steps:
            began, before = time.monotonic(), self.step
            batch = self._chance.sample(self._images.training, min(BATCH, len(self._images.training)))
            loss, gradient = model.Net(params).gradient(batch)
            self.step, params = self._servers.push(gradient, self._rate(), self.step)
            self._tell(before, loss)
            time.sleep(max(0, began + self._pace - time.monotonic()))
        self._tell_progress()

    def _finished(self):
        self.step, saved = self._servers.finish()
        if saved:
            return True
        if self.step >= self._steps:
            raise Unsaved("the checkpoint of step {} is not on the disk: see the log of ps 0".format(self.step))
        return False

    def _rate(self):
        return FIRST_RATE + (LAST_RATE - FIRST_RATE) * self.step / self._steps

    def _tell(self, before, loss):
        if before // TELL != self.step // TELL:
            say("step {} loss {:.4f}".format(self.step, loss))
            self._legacy.tell(self.step, loss)
            self._tell_progress()

    def _tell_progress(self):
        line = "reporter progress:{:.2f}".format(min(1, self.step / self._steps))
        if line != self._told:
            note(line)
            self._told = line


def _beginning(step, known):
    if known:
        return "resuming at step {}".format(step)
    return "starting at step 0" if step == 0 else "joining at step {}".format(step)
