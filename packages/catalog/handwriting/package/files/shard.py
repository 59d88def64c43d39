"""The part of the parameters that one server holds, safe to use from many threads."""

import threading

import model


class Shard:
    """A slice of the parameters and, at server 0, the global step.

    At server 0 every push is one step; the others only note the step that the worker
    names. Server 0 refuses to go beyond the last step and sets a copy aside each time
    a checkpoint is due; take() hands it to whoever writes it.
    """

    def __init__(self, params, step, workers, steps, every, counts):
        self._changed = threading.Condition()
        self._params = params
        self._step = step
        self._workers = set(workers)
        self._steps = steps
        self._every = every
        self._counts = counts
        self._due = None
        self._saved = step
        self._fresh = False  # pushed to since the last copy was taken
        self._closing = False

    @property
    def step(self):
        with self._changed:
            return self._step

    def greet(self, worker):
        """(step, whether this worker had joined before)."""
        with self._changed:
            known = worker in self._workers
            self._workers.add(worker)
            return self._step, known

    def pull(self):
        """(step, copy of the parameters)."""
        with self._changed:
            return self._step, self._params[:]

    def push(self, gradient, rate, step):
        """Moves down the gradient; returns what pull does. step: the worker's."""
        with self._changed:
            if not self._counts:
                self._step = step
            elif self._step < self._steps:
                self._step += 1
            else:
                return self._step, self._params[:]
            model.descend(self._params, gradient, rate)
            self._fresh = True
            if self._counts and (self._step % self._every == 0 or self._step == self._steps):
                self._set_aside()
            return self._step, self._params[:]

    def copy(self):
        """(step, copy of the parameters) for a checkpoint that server 0 puts together."""
        with self._changed:
            self._fresh = False
            self._changed.notify_all()
            return self._step, self._params[:]

    def take(self):
        """Waits until a checkpoint is due: (step, parameters, workers), or None when closing."""
        with self._changed:
            self._changed.wait_for(lambda: self._due or self._closing)
            due, self._due = self._due, None
            return due

    def saved(self, step):
        """The checkpoint of step is on the disk."""
        with self._changed:
            self._saved = step
            self._changed.notify_all()

    def finish(self, seconds):
        """Waits until the last step's checkpoint is on the disk. (step, whether it is)."""
        with self._changed:
            done = self._changed.wait_for(
                lambda: self._saved >= self._steps or self._step < self._steps, seconds)
            return self._step, done and self._saved >= self._steps

    def close(self):
        """No checkpoint falls due any more but a last one, of what is unsaved."""
        with self._changed:
            if self._counts and self._step > self._saved:
                self._set_aside()
            self._closing = True
            self._changed.notify_all()

    def wait_copied(self, seconds):
        """Gives server 0 the time to copy what was pushed here."""
        with self._changed:
            self._changed.wait_for(lambda: not self._fresh, seconds)

    def _set_aside(self):
        self._due = (self._step, self._params[:], set(self._workers))
        self._changed.notify_all()
