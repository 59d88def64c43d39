"""The command's configuration: read-only, with Python's types, and silent about a missing key until it is used."""

import re

from resource_management.core.exceptions import Fail

__all__ = ["ConfigDictionary", "UnknownConfiguration"]

# What int() and float() of Python 2 took; those of Python 3 take 1_000 as well.
INTEGER = re.compile(r"\s*[-+]?[0-9]+\s*\Z")
REAL = re.compile(r"\s*[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|nan|inf|infinity)\s*\Z", re.IGNORECASE)


def typed(value):
    """A configured string as bool, int or float where it reads as one."""
    if not isinstance(value, str):
        return value
    if value in ("true", "false"):
        return value == "true"
    if INTEGER.match(value):
        return int(value)
    if REAL.match(value):
        return float(value)
    return value


class ConfigDictionary(dict):
    """A dictionary that refuses `d[key] = value`; update(), pop() and their like work, as they do in Slider.

    `d[key]` converts; items(), values() and get() give the text as it was written.
    """

    def __init__(self, dictionary, path=""):
        super().__init__()
        self._path = path
        for key, value in dictionary.items():
            if isinstance(value, dict):
                value = ConfigDictionary(value, self._below(key))
            super().__setitem__(key, value)

    def _below(self, key):
        return "{}/{}".format(self._path, key)

    def __getitem__(self, key):
        try:
            return typed(super().__getitem__(key))
        except KeyError:
            return UnknownConfiguration(self._below(key))

    def __setitem__(self, key, _value):
        raise Fail("configuration {} cannot be assigned: copy the dictionary first".format(self._below(key)))

    # The methods that dictionaries had in Python 2: scripts use them, and templates, which 2to3 does not read.
    iteritems, iterkeys, itervalues, has_key = dict.items, dict.keys, dict.values, dict.__contains__

    def __reduce__(self):  # copied and pickled as the plain dictionary that it holds
        return ConfigDictionary, (dict(self.items()), self._path)

    def with_attributes(self):
        """A copy whose keys are attributes too."""
        return ConfigAttributes(self, self._path)


class ConfigAttributes(ConfigDictionary):
    """A configuration among the parameters. A missing attribute fails when it is used, as a missing key does."""

    def __getitem__(self, key):
        value = super().__getitem__(key)
        return value.with_attributes() if isinstance(value, ConfigDictionary) else value

    def __getattr__(self, name):
        if name.startswith("__"):  # probes of Python's own machinery
            raise AttributeError(name)
        return self[name]


class UnknownConfiguration:
    """Stands for a missing key. Whatever uses it as a value fails and says which key."""

    def __init__(self, path):
        self.__dict__["_path"] = path

    def __repr__(self):
        return "UnknownConfiguration({!r})".format(self._path)

    @property
    def name(self):
        """The key that is missing, without the dictionaries that it was looked for in."""
        return self._path.rpartition("/")[2]

    def __getitem__(self, key):
        return UnknownConfiguration("{}/{}".format(self._path, key))

    def __getattr__(self, name):
        if name.startswith("__"):  # probes of Python's own machinery, not uses
            raise AttributeError(name)
        self.fail()

    def __setattr__(self, name, value):
        self.fail()

    def fail(self, *_args, **_kwargs):
        """Says which key is missing."""
        raise Fail("configuration {} is not set".format(self._path))

    __hash__ = object.__hash__

    __str__ = __format__ = __bool__ = __int__ = __float__ = __index__ = __bytes__ = __fspath__ = fail
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = fail
    __len__ = __iter__ = __contains__ = fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = fail
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __neg__ = __pos__ = __abs__ = fail
