"""The filters of the template subset; each does what jinja2's of that name does."""


from resource_management.core.exceptions import Fail


class Missing:
    """An undefined name or attribute: only `default` and `is defined` may touch it."""

    def __init__(self, what):
        self.what = what


class Empty(Missing):
    """An undefined name or attribute of a lenient template: it prints as nothing, is false, and has no items.

    It equals its like alone. Whatever needs a value, such as an attribute of it, a call or a sum, fails.
    """

    def __str__(self):
        return ""

    def __bool__(self):
        return False

    def __len__(self):
        return 0

    def __iter__(self):
        return iter(())

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))

    def __getattr__(self, name):
        if name.startswith("__"):  # probes of Python's own machinery, not uses
            raise AttributeError(name)
        self.fail()

    def fail(self, *_args):
        raise Fail(self.what)

    __call__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = __neg__ = fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = fail
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = fail


def default(value, other="", falsy=False):
    if isinstance(value, Missing) or (falsy and not value):
        return other
    return value


def escape(value):
    text = str(value)
    for char, entity in (("&", "&amp;"), (">", "&gt;"), ("<", "&lt;"), ("'", "&#39;"), ('"', "&#34;")):
        text = text.replace(char, entity)
    return text


def integer(value, other=0):
    try:
        return int(value)
    except (TypeError, ValueError):
        pass
    try:
        return int(float(value))
    except (TypeError, ValueError, OverflowError):
        return other


def first(value):
    for one in value:
        return one
    return Missing("No first item, sequence was empty.")


def last(value):
    for one in reversed(list(value)):
        return one
    return Missing("No last item, sequence was empty.")


def no_case(value):
    return value.lower() if isinstance(value, str) else value


FILTERS = {
    "default": default, "d": default, "escape": escape, "e": escape, "int": integer,
    "first": first, "last": last, "length": len, "count": len, "list": list, "string": str,
    "upper": lambda value: str(value).upper(), "lower": lambda value: str(value).lower(),
    "trim": lambda value: str(value).strip(),
    "replace": lambda value, old, new: str(value).replace(str(old), str(new)),
    "join": lambda value, between="": str(between).join(str(one) for one in value),
    "sort": lambda value: sorted(value, key=no_case),
    "dictsort": lambda value: sorted(value.items(), key=lambda pair: no_case(pair[0])),
}
