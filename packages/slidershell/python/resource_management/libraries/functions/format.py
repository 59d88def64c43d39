"""Strings with the values of variables in them."""

import string
import sys

from resource_management.core.configuration import UnknownConfiguration
from resource_management.core.environment import params_of
from resource_management.core.exceptions import Fail
from resource_management.core.logger import Logger
from resource_management.core.shell import quote_bash_args
from resource_management.core.utils import same

__all__ = ["format"]

HIDDEN = "[PROTECTED]"


class Names:
    """The caller's variables, then the environment's parameters. A name of both must mean the same in both."""

    def __init__(self, near, far):
        self.near, self.far = near, far

    def __getitem__(self, name):
        if name not in self.near and name not in self.far:
            where = "neither here nor among the parameters" if self.far else (
                "and no parameters are set: call env.set_params(params) first")
            raise Fail("format: no variable {!r}, {}".format(name, where))
        value = self.near[name] if name in self.near else self.far[name]
        if name in self.near and name in self.far and not same(value, self.far[name]):
            raise Fail("format: {!r} is one value here and another among the parameters".format(name))
        return value


class Formatter(string.Formatter):
    """Knows !e, escaped for bash; !h, hidden in the log; !p, a password: both."""

    def __init__(self, hide):
        super().__init__()
        self.hide = hide

    def convert_field(self, value, conversion):
        if isinstance(value, UnknownConfiguration):
            value.fail()
        if conversion in ("h", "p") and self.hide:
            return HIDDEN
        if conversion in ("e", "p"):
            return quote_bash_args(str(value))
        return value if conversion == "h" else super().convert_field(value, conversion)


def format(format_string, *args, **kwargs):
    """format_string with each {name} replaced; {name.attribute} and {name[key]} as in str.format."""
    near = {**sys._getframe(1).f_locals, **kwargs}
    names = Names(near, params_of())
    text = Formatter(hide=False).vformat(format_string, args, names)
    hidden = Formatter(hide=True).vformat(format_string, args, names)
    if text != hidden:
        Logger.sensitive_strings[text] = hidden
    return text
