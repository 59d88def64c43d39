"""What a File is filled with: a file of the package, or a template."""

import hashlib
import os
import urllib.request

from resource_management.core import template
from resource_management.core.environment import Environment
from resource_management.core.exceptions import Fail
from resource_management.core.utils import checked_unite

__all__ = ["DownloadSource", "InlineTemplate", "Source", "StaticFile", "Template"]


class Source:
    """Calling it gives the content. One is equal to another of its kind with the same content."""

    def __init__(self, name):
        self.env = Environment.get_instance()
        self.name = name

    def get_content(self):
        raise NotImplementedError

    def __call__(self):
        return self.get_content()

    def __repr__(self):
        return "{}({!r})".format(type(self).__name__, self.name)

    def __eq__(self, other):
        return isinstance(other, type(self)) and self.get_content() == other.get_content()

    __hash__ = None

    def _read(self, folder, name):
        path = os.path.join(self.env.config.basedir or "", folder, name)  # an absolute name stays as it is
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError as err:
            raise Fail("{!r}: {}: {}".format(self, path, err.strerror)) from err


class StaticFile(Source):
    """The bytes of `files/NAME` in the package."""

    def get_content(self):
        return self._read("files", self.name)


class DownloadSource(Source):
    """What a URL answers. md5sum is checked where it is given; nothing is kept, so cache has no effect."""

    def __init__(self, name, cache=True, md5sum=None):
        super().__init__(name)
        self.url, self.cache, self.md5sum = name, cache, md5sum

    def get_content(self):
        try:
            with urllib.request.urlopen(self.url, timeout=60) as answer:
                content = answer.read()
        except (OSError, ValueError) as err:
            raise Fail("{!r}: {}".format(self, err)) from err
        found = hashlib.md5(content).hexdigest()
        if self.md5sum and found != self.md5sum.lower():
            raise Fail("{!r}: md5sum: want {}, got {}".format(self, self.md5sum, found))
        return content


class Template(Source):
    """`templates/NAME` in the package, rendered with the environment's parameters and the keywords given.

    extra_imports are modules or functions that the template knows by their own names. An undefined name fails.
    """

    lenient = False

    def __init__(self, name, extra_imports=(), **variables):
        super().__init__(name)
        self.context = checked_unite(self.env.config.params, variables)
        self.imports = {one.__name__: one for one in extra_imports}

    def get_content(self):
        known = {"env": self.env, "repr": repr, "str": str, "bool": bool}
        text = template.render(
            self._text(), self._title(), {**self.context, **known, **self.imports}, self.lenient, self._included)
        return text if text.endswith("\n") else text + "\n"

    def _text(self):
        return self._included(self.name)

    def _included(self, name):
        return self._read("templates", name).decode("utf-8")

    def _title(self):
        return self.name


class InlineTemplate(Template):
    """A template written in the script, or in the configuration. What is undefined in it is empty."""

    lenient = True

    def _text(self):
        return str(self.name)

    def _included(self, name):
        return name  # the template that it names is its own text, too

    def _title(self):
        return "(inline)"

    def __repr__(self):
        return "InlineTemplate(...)"
