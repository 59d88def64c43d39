"""What a File is filled with: a file of the package, or a template."""

import os

from resource_management.core import template
from resource_management.core.environment import Environment
from resource_management.core.exceptions import Fail
from resource_management.core.utils import checked_unite

__all__ = ["InlineTemplate", "Source", "StaticFile", "Template"]


class Source:
    """Calling it gives the content."""

    def __init__(self, name):
        self.env = Environment.get_instance()
        self.name = name

    def get_content(self):
        raise NotImplementedError

    def __call__(self):
        return self.get_content()

    def __repr__(self):
        return "{}({!r})".format(type(self).__name__, self.name)

    def _read(self, folder):
        path = os.path.join(self.env.config.basedir or "", folder, self.name)  # an absolute name stays as it is
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError as err:
            raise Fail("{!r}: {}: {}".format(self, path, err.strerror)) from err


class StaticFile(Source):
    """The bytes of `files/NAME` in the package."""

    def get_content(self):
        return self._read("files")


class Template(Source):
    """`templates/NAME` in the package, rendered with the environment's parameters and the keywords given.

    extra_imports are modules or functions that the template knows by their own names.
    """

    def __init__(self, name, extra_imports=(), **variables):
        super().__init__(name)
        self.context = checked_unite(self.env.config.params, variables)
        self.imports = {one.__name__: one for one in extra_imports}

    def get_content(self):
        known = {"env": self.env, "repr": repr, "str": str, "bool": bool}
        text = template.render(self._text(), self._title(), {**self.context, **known, **self.imports})
        return text if text.endswith("\n") else text + "\n"

    def _text(self):
        return self._read("templates").decode("utf-8")

    def _title(self):
        return self.name


class InlineTemplate(Template):
    """A template written in the script, or in the configuration."""

    def _text(self):
        return str(self.name)

    def _title(self):
        return "(inline)"

    def __repr__(self):
        return "InlineTemplate(...)"
