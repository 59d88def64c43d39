"""Dictionaries with attributes, and the union of name spaces."""

from resource_management.core.configuration import UnknownConfiguration
from resource_management.core.exceptions import Fail

__all__ = ["AttributeDictionary", "checked_unite"]


class AttributeDictionary(dict):
    """A dictionary whose keys are attributes too, with the methods that dictionaries had in Python 2."""

    iteritems, iterkeys, itervalues, has_key = dict.items, dict.keys, dict.values, dict.__contains__

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError("no attribute {!r}".format(name)) from None

    def __setattr__(self, name, value):
        self[name] = value

    def copy(self):
        return AttributeDictionary(self)


def same(one, other):
    """Tells whether two values are one and the same, or equal."""
    if one is other:
        return True
    if isinstance(one, UnknownConfiguration) or isinstance(other, UnknownConfiguration):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return dict.__eq__(one, other)
    return type(one) is type(other) and bool(one == other)


def checked_unite(one, other):
    """The union of two name spaces. Fails if both define a name and mean different values by it."""
    for name in one:
        if name in other and not same(one[name], other[name]):
            raise Fail("variable {!r} is defined twice, with different values".format(name))
    return {**one, **other}
