"""The part of jinja2's template language that app packages use, for hosts without jinja2.

{{ expression }}, {% if %}, {% elif %}, {% else %}, {% for %} with loop, {# comments #}, and the dash that takes away
white space. Anything else is an error that names the template, the line and what to do.
"""

import re

from resource_management.core.exceptions import Fail
from resource_management.core.expression import Beyond, Parser, tokens, use
from resource_management.core.filters import Empty, Missing

OPEN = re.compile(r"\{[{%#]-?")
END = {"{{": re.compile(r"\s*(-?)\}\}"), "{%": re.compile(r"\s*(-?)%\}")}
COMMENT = re.compile(r"(?:(?!-?#\}).)*(-?)#\}", re.DOTALL)
GLOBALS = {"range": range, "dict": dict}


class Loop:
    """`loop` inside of {% for %}."""

    def __init__(self, index, length):
        self.index, self.index0 = index + 1, index
        self.revindex, self.revindex0 = length - index, length - index - 1
        self.first, self.last, self.length = index == 0, index == length - 1, length


def render(text, name, variables, lenient=False):
    """The text with the variables filled in; the variables win over the functions that jinja2 gives.

    lenient: what is undefined is empty, and the newline behind a block stays.
    """
    text = re.sub(r"\r\n|\r", "\n", text)
    text = text[:-1] if text.endswith("\n") else text
    out = []
    Blocks(Pieces(text, name, not lenient), Empty if lenient else Missing).body()({**GLOBALS, **variables}, out)
    return "".join(out)


class Pieces:
    """Cuts a template: ("text", …) and ("{{" or "{%", tokens), each with its line; comments are gone."""

    def __init__(self, text, name, trim):
        self.name, self.line, self.found, self.trim = name, 1, [], trim
        try:
            self._cut(text)
        except Beyond as err:
            raise self.beyond(err, self.line) from None

    def beyond(self, err, line):
        return Fail("template {}, line {}: {}. The built-in templates know a part of jinja2: write it more simply, or"
                    " install jinja2 for the Python that runs the scripts".format(self.name, line, err))

    def _cut(self, text):
        at, dash, block = 0, False, False
        while True:
            tag = OPEN.search(text, at)
            plain = text[at:tag.start()] if tag else text[at:]
            if dash:
                plain = plain.lstrip()
            elif block and plain.startswith("\n"):
                plain = plain[1:]
            if tag and tag.group().endswith("-"):
                plain = plain.rstrip()
            if plain:
                self.found.append(("text", plain, 0))
            if not tag:
                return
            self.line = text.count("\n", 0, tag.start()) + 1
            kind = tag.group()[:2]
            if kind == "{#":
                close = COMMENT.match(text, tag.end())
                if not close:
                    raise Beyond("a comment without end")
            else:
                words, close = tokens(text, tag.end(), END[kind])
                self.found.append((kind, words, self.line))
            at, dash, block = close.end(), close.group(1) == "-", self.trim and kind != "{{"


class Blocks:
    """Makes functions (variables, out) of the pieces."""

    def __init__(self, pieces, missing):
        self.pieces, self.at, self.missing = pieces, 0, missing

    def body(self, *until):
        """The pieces up to a statement of these names, which stays to be read."""
        steps = []
        while self.at < len(self.pieces.found):
            kind, content, line = self.pieces.found[self.at]
            if kind == "{%" and content and content[0][1] in until:
                break
            self.at += 1
            steps.append(self._step(kind, content, line))
        else:
            if until:
                raise self.pieces.beyond("a block without its {}".format(until[-1]), self._last_line())
        return lambda names, out: [step(names, out) for step in steps]

    def _last_line(self):
        return max([line for _, _, line in self.pieces.found], default=1)

    def _step(self, kind, content, line):
        if kind == "text":
            return lambda names, out: out.append(content)
        if kind == "{{":
            value = self._value(self._parser(content), line, str)
            return lambda names, out: out.append(value(names))
        word = content[0][1] if content else ""
        if word == "if":
            return self._if(content, line)
        if word == "for":
            return self._for(content, line)
        raise self.pieces.beyond("no {{% {} %}}; there are if and for".format(word), line)

    def _parser(self, content):
        return Parser(content, self.missing)

    def _value(self, parser, line, kind, level="expression"):
        """A whole expression as str, bool or list; errors get the line."""
        try:
            function = getattr(parser, level)()
            parser.end()
        except Beyond as err:
            raise self.pieces.beyond(err, line) from None

        def value(names):
            try:
                return kind(use(function(names)))
            except Fail as err:
                text = str(err)
                if text.startswith("template "):
                    raise
                raise Fail("template {}, line {}: {}".format(self.pieces.name, line, text)) from err
        return value

    def _if(self, content, line):
        branches = [(self._value(self._parser(content[1:]), line, bool), self.body("elif", "else", "endif"))]
        otherwise = None
        while True:
            word, rest, line = self._statement()
            if word == "endif":
                break
            if word == "elif" and otherwise is None:
                branches.append((self._value(self._parser(rest), line, bool), self.body("elif", "else", "endif")))
            elif otherwise is None:
                otherwise = self.body("elif", "else", "endif")
            else:
                raise self.pieces.beyond("{} behind else".format(word), line)

        def step(names, out):
            for condition, body in branches:
                if condition(names):
                    return body(names, out)
            return otherwise(names, out) if otherwise else None
        return step

    def _for(self, content, line):
        targets, values = self._head(content, line)
        body, otherwise = self.body("else", "endfor"), None
        word, _, _ = self._statement()
        if word == "else":
            otherwise = self.body("endfor")
            self._statement()

        def step(names, out):
            found = values(names)
            for index, one in enumerate(found):
                body({**names, **self._bind(targets, one, line), "loop": Loop(index, len(found))}, out)
            if not found and otherwise:
                otherwise(names, out)
        return step

    def _head(self, content, line):
        """`for a, b in values`: the names and the values."""
        parser = self._parser(content[1:])
        try:
            targets = [parser.name()]
            while parser.take(","):
                targets.append(parser.name())
            parser.want("in")
        except Beyond as err:
            raise self.pieces.beyond(err, line) from None
        return targets, self._value(parser, line, list, "either")

    def _bind(self, targets, value, line):
        if len(targets) == 1:
            return {targets[0]: value}
        values = list(value)
        if len(values) != len(targets):
            raise Fail("template {}, line {}: {} values for {}".format(
                self.pieces.name, line, len(values), ", ".join(targets)))
        return dict(zip(targets, values))

    def _statement(self):
        """The statement that ended a body."""
        _, content, line = self.pieces.found[self.at]
        self.at += 1
        return content[0][1], content[1:], line
