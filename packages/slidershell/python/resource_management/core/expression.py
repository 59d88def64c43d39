"""Expressions of the template subset: names, a.b, a[b], calls, literals, filters, arithmetic, comparisons, and/or/not,
x if y else z.

Parser makes a function of the variables. Values and errors are those of jinja2, with StrictUndefined where what is
undefined is Missing, with its default where it is Empty.
"""

import ast
import operator
import re

from resource_management.core.exceptions import Fail
from resource_management.core.filters import FILTERS, Empty, Missing

TOKEN = re.compile(r"""
    \s*(?:
      (?P<number>[0-9]+(?:\.[0-9]+)?(?![0-9A-Za-z_]))
    | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<sign>==|!=|<=|>=|//|[-+*/%~<>=|.,()\[\]{}:])
    )""", re.VERBOSE | re.DOTALL)
WORDS = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None}
RESERVED = frozenset({"and", "or", "not", "in", "is", "if", "else"})
SUM = {"+": operator.add, "-": operator.sub}
PRODUCT = {"*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod}
JOINED = {"~": lambda left, right: str(left) + str(right)}
COMPARE = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "in": lambda item, group: item in group, "not in": lambda item, group: item not in group,
}


class Beyond(Exception):
    """The template asks for what the subset does not have."""


def use(value):
    """The value, which must be one, or empty."""
    if isinstance(value, Missing) and not isinstance(value, Empty):
        raise Fail(value.what)
    return value


def tokens(text, start, end):
    """Splits from start up to the delimiter that the pattern end matches; returns the tokens and where it lies."""
    found, at = [], start
    while True:
        close = end.match(text, at)
        if close:
            return found, close
        token = TOKEN.match(text, at)
        if not token:
            raise Beyond("no end of {!r}".format(text[start:start + 40].strip()) if not text[at:].strip()
                         else "{!r} is not known".format(text[at:at + 20].strip()))
        found.append((token.lastgroup, token.group(token.lastgroup)))
        at = token.end()


class Parser:
    """Reads tokens one by one; each method returns a function of the variables. missing makes what is undefined."""

    def __init__(self, found, missing=Missing):
        self.left, self.missing = list(found), missing

    def peek(self, *words):
        """Tells whether the next token is one of these signs or words."""
        return bool(self.left) and self.left[0][0] in ("name", "sign") and self.left[0][1] in words

    def take(self, *words):
        """Takes the next token if it is one of these."""
        return self.left.pop(0)[1] if self.peek(*words) else None

    def want(self, word):
        if not self.take(word):
            raise Beyond("want {!r}, got {}".format(word, repr(self.left[0][1]) if self.left else "the end"))

    def name(self, free=frozenset()):
        """Takes a name that is no word of the language, or one of these."""
        if not self.left or self.left[0][0] != "name" or self.left[0][1] in RESERVED - free:
            raise Beyond("want a name, got {}".format(repr(self.left[0][1]) if self.left else "the end"))
        return self.left.pop(0)[1]

    def end(self):
        if self.left:
            raise Beyond("{!r} is not known there".format(self.left[0][1]))

    def expression(self):
        """x if y else z, and all below it."""
        value = self.either()
        if not self.take("if"):
            return value
        condition = self.either()
        nothing = self.missing("the value of an if without else is undefined")
        other = self.expression() if self.take("else") else lambda names: nothing
        return lambda names: value(names) if use(condition(names)) else other(names)

    def either(self):
        left = self.both()
        while self.take("or"):
            left = self._or(left, self.both())
        return left

    @staticmethod
    def _or(left, right):
        return lambda names: use(left(names)) or right(names)

    def both(self):
        left = self.negation()
        while self.take("and"):
            left = self._and(left, self.negation())
        return left

    @staticmethod
    def _and(left, right):
        return lambda names: use(left(names)) and right(names)

    def negation(self):
        if self.take("not"):
            value = self.negation()
            return lambda names: not use(value(names))
        return self.comparison()

    def comparison(self):
        first, rest = self.sum(), []
        while True:
            sign = self.take("==", "!=", "<", "<=", ">", ">=", "in")
            if not sign and self.peek("not"):
                self.want("not")
                self.want("in")
                sign = "not in"
            if not sign:
                return self._compare(first, rest) if rest else first
            rest.append((COMPARE[sign], self.sum()))

    @staticmethod
    def _compare(first, rest):
        def value(names):
            left = use(first(names))
            for compare, right in rest:  # a < b < c is a < b and b < c
                other = use(right(names))
                if not compare(left, other):
                    return False
                left = other
            return True
        return value

    def sum(self):
        return self._chain(SUM, self.joined)

    def joined(self):
        return self._chain(JOINED, self.product)

    def product(self):
        return self._chain(PRODUCT, self.postfix)

    def _chain(self, operators, operand):
        """Operands with operators of one rank between them, from the left."""
        value = operand()
        while True:
            sign = self.take(*operators)
            if not sign:
                return value
            value = self._both_of(operators[sign], value, operand())

    @staticmethod
    def _both_of(operate, left, right):
        return lambda names: operate(use(left(names)), use(right(names)))

    def postfix(self):
        value = self.primary()
        while True:
            if self.take("."):
                value = self._attribute(value, self.name(RESERVED))
            elif self.take("["):
                value = self._item(value, self.expression())
                self.want("]")
            elif self.take("("):
                value = self._call(value, self.arguments())
            elif self.take("|"):
                value = self._filter(value)
            elif self.take("is"):
                value = self._test(value)
            else:
                return value

    def arguments(self):
        """The values up to the closing bracket; keywords are not among them."""
        found = []
        while not self.take(")"):
            found.append(self.expression())
            if not self.peek(")"):
                self.want(",")
        return found

    def _attribute(self, value, name):
        return lambda names: attribute(use(value(names)), name, self.missing)

    def _item(self, value, key):
        return lambda names: item(use(value(names)), use(key(names)), self.missing)

    @staticmethod
    def _call(value, arguments):
        return lambda names: use(value(names))(*[use(one(names)) for one in arguments])

    def _filter(self, value):
        name = self.name()
        if name not in FILTERS:
            raise Beyond("no filter {!r}; there are {}".format(name, ", ".join(sorted(FILTERS))))
        arguments = self.arguments() if self.take("(") else []
        takes, look = FILTERS[name], (lambda one: one) if name in ("d", "default") else use

        def filtered(names):
            result = takes(look(value(names)), *[use(one(names)) for one in arguments])
            return self.missing(result.what) if isinstance(result, Missing) else result
        return filtered

    def _test(self, value):
        negated = bool(self.take("not"))
        name = self.left.pop(0)[1] if self.left else ""
        if name in ("defined", "undefined"):
            return lambda names: isinstance(value(names), Missing) == ((name == "undefined") != negated)
        if name in ("none", "None"):
            return lambda names: (use(value(names)) is None) != negated
        raise Beyond("no test {!r}; there are defined, undefined, none".format(name))

    def primary(self):
        if self.take("("):
            value = self.expression()
            self.want(")")
            return value
        if self.take("["):
            return self._list()
        if self.take("-"):
            value = self.primary()
            return lambda names: -use(value(names))
        kind, text = self.left[0] if self.left else ("", "")
        if kind in ("number", "string"):
            self.left.pop(0)
            constant = ast.literal_eval(text.replace("\n", "\\n") if kind == "string" else text)
            return lambda names: constant
        if kind == "name" and text in WORDS:
            self.left.pop(0)
            return lambda names: WORDS[text]
        name = self.name()
        undefined = self.missing("{!r} is undefined".format(name))
        return lambda names: names.get(name, undefined)

    def _list(self):
        found = []
        while not self.take("]"):
            found.append(self.expression())
            if not self.peek("]"):
                self.want(",")
        return lambda names: [use(one(names)) for one in found]


def attribute(value, name, missing):
    """a.b: an attribute, else an item."""
    if isinstance(value, Missing):
        raise Fail(value.what)
    try:
        return getattr(value, name)
    except AttributeError:
        pass
    try:
        return value[name]
    except (AttributeError, TypeError, LookupError):
        return missing("{} has no attribute {!r}".format(type(value).__name__, name))


def item(value, key, missing):
    """a[b]: an item, else an attribute."""
    if isinstance(value, Missing):
        raise Fail(value.what)
    try:
        return value[key]
    except (AttributeError, TypeError, LookupError):
        pass
    if isinstance(key, str):
        try:
            return getattr(value, key)
        except AttributeError:
            pass
    return missing("{} has no element {!r}".format(type(value).__name__, key))
