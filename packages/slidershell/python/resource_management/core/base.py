"""Resource: something that is made so, at once, when it is named."""

import difflib
import time

from resource_management.core import process
from resource_management.core.environment import Environment
from resource_management.core.exceptions import Fail, InvalidArgument, refusal, refused
from resource_management.core.logger import Logger

__all__ = ["Fail", "Resource"]


class Resource:
    """`File(path, mode=0o644)` acts where it stands. A list of names acts on each, in order.

    A subclass lists its arguments with their defaults in `arguments`, those that are True or False in `switches`, and
    has a method `action_NAME` for each action.
    """

    arguments = {}
    switches = ()
    default_action = "create"
    # what every resource takes; initial_wait in seconds
    common = {"ignore_failures": False, "not_if": None, "only_if": None, "initial_wait": None}

    def __init__(self, name, env=None, action=None, **given):
        if isinstance(name, list):
            for one in name[:-1]:
                type(self)(one, env, action, **given)
            name = name[-1] if name else None
            if name is None:
                return
        self.name = name
        self.env = env or Environment.get_instance()
        known = {**self.common, **self.arguments}
        for unknown in sorted(set(given) - set(known)):
            near = difflib.get_close_matches(unknown, known, 1)
            raise InvalidArgument("{} has no argument {!r}; {}".format(
                self, unknown, "did you mean {}?".format(near[0]) if near else "it takes " + ", ".join(sorted(known))))
        for key, value in {**known, **given}.items():
            if key in ("ignore_failures", *self.switches) and value not in (True, False):
                raise InvalidArgument("{}: {} is {!r}, want True or False".format(self, key, value))
            setattr(self, key, value)
        action = action or self.default_action
        self._run(action if isinstance(action, (list, tuple)) else [action])

    def _run(self, actions):
        if self.initial_wait:
            time.sleep(self.initial_wait)
        if self.not_if is not None and holds(self.not_if):
            Logger.info("skipping {}: not_if holds".format(self))
            return
        if self.only_if is not None and not holds(self.only_if):
            Logger.info("skipping {}: only_if does not hold".format(self))
            return
        for action in actions:
            try:
                self._act(action)
            except Exception as err:  # whatever it is, the script said that it does not matter
                if not self.ignore_failures:
                    raise
                Logger.info("{}: failure ignored: {}".format(self, err))

    def _act(self, action):
        if action == "nothing":
            return
        method = getattr(self, "action_{}".format(action), None)
        if method is None:
            raise Fail("{} has no action {!r}".format(self, action))
        Logger.debug("{}: {}".format(self, action))
        try:
            method()
        except OSError as err:
            why = refusal(err, str(self.name))
            if not why:
                raise
            raise refused("{}: {}".format(self, why), err) from err

    def __repr__(self):
        return "{}[{!r}]".format(type(self).__name__, self.name)


def holds(condition):
    """A condition is a callable, or a command line that ends with 0."""
    if callable(condition):
        return condition()
    return process.test(condition) == 0
