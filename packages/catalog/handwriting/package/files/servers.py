"""All parameter servers as a worker sees them: one vector, and a connection that comes back."""

import random
import time
from array import array

import model
import wire
from say import note, say

# Seconds.
ANSWER = 30
FIRST_DELAY = 0.05
LONGEST_DELAY = 2


class Gone(Exception):
    """A server stayed away for longer than the worker's patience, or refuses it."""


class Servers:
    """Connections to all parameter servers.

    A server that goes away is waited for, up to patience seconds. Its step and its
    part of the parameters are then what it has restored; a gradient that was on
    its way to it is dropped, which asynchronous training does not mind.
    """

    def __init__(self, addresses, worker, patience):
        self._addresses = addresses
        self._worker = worker
        self._patience = patience
        self._socks = [None] * len(addresses)

    def open(self):
        """Connects to all. (step, whether this worker had joined before)."""
        answers = [self._return(index) for index in range(len(self._addresses))]
        return answers[0]["step"], answers[0]["known"]

    def pull(self):
        """(step, parameters)."""
        return self._vector([({"verb": "pull"}, b"")] * len(self._addresses))

    def push(self, gradient, rate, step):
        """Sends the gradient that was computed at step. (step, parameters) afterwards."""
        header = {"verb": "push", "rate": rate, "step": step}
        return self._vector([(header, wire.pack(gradient[slice(*self._bounds(index))]))
                             for index in range(len(self._addresses))])

    def finish(self):
        """Waits for the last checkpoint. (step, whether it is on the disk)."""
        while True:
            try:
                answer, _ = self._ask(0, {"verb": "finish"})
                return answer["step"], answer["saved"]
            except (OSError, wire.Malformed) as err:
                self._regain(0, err)

    def _vector(self, requests):
        for index, (header, body) in enumerate(requests):
            try:
                wire.send(self._socks[index], header, body)
            except OSError as err:
                self._regain(index, err)
                requests[index] = None
        step, params = 0, array("d")
        for index, request in enumerate(requests):
            answer, part = self._part(index, request)
            params.extend(part)
            if index == 0:
                step = answer["step"]
        return step, params

    def _part(self, index, request):
        first, end = self._bounds(index)
        while True:
            try:
                if request is None:
                    wire.send(self._socks[index], {"verb": "pull"})
                answer, body = wire.receive(self._socks[index])
                return answer, wire.unpack(body, end - first)
            except (OSError, wire.Malformed) as err:
                self._regain(index, err)
                request = None

    def _regain(self, index, reason):
        note("lost ps {}: {}".format(index, reason))
        answer = self._return(index)
        say("reconnected to ps {} at step {}".format(index, answer["step"]))

    def _return(self, index):
        """Connects to a server, again and again until it is there; its greeting."""
        if self._socks[index]:
            self._socks[index].close()
        deadline = time.monotonic() + self._patience
        delay = FIRST_DELAY
        while True:
            try:
                self._socks[index] = wire.connect(self._addresses[index], ANSWER)
                answer, _ = self._ask(index, {"verb": "hello", "worker": self._worker, "size": model.SIZE,
                                              "server": index, "servers": len(self._addresses)})
                break
            except (OSError, wire.Malformed) as err:
                if time.monotonic() + delay > deadline:
                    raise Gone("ps {} at {}:{} has been away for {:g} s: {}".format(
                        index, *self._addresses[index], self._patience, err))
            time.sleep(delay * random.uniform(0.5, 1))
            delay = min(2 * delay, LONGEST_DELAY)
        if "error" in answer:
            raise Gone("ps {} refuses worker {}: {}".format(index, self._worker, answer["error"]))
        return answer

    def _ask(self, index, header):
        wire.send(self._socks[index], header)
        return wire.receive(self._socks[index])

    def _bounds(self, index):
        return model.bounds(index, len(self._addresses))
