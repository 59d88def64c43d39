"""A file made from the template that bears its name."""

import os

from resource_management.core.base import Resource
from resource_management.core.resources.system import File
from resource_management.core.source import Template

__all__ = ["TemplateConfig"]


class TemplateConfig(Resource):
    """`conf/x.properties` comes from `templates/x.properties.j2`, with a tag from `templates/x.properties-TAG.j2`."""

    arguments = {
        "path": None, "mode": None, "owner": None, "group": None, "template_tag": None, "extra_imports": ()}

    def action_create(self):
        path = self.path or self.name
        tag = "-{}".format(self.template_tag) if self.template_tag else ""
        template = "{}{}.j2".format(os.path.basename(path), tag)
        File(path, self.env, mode=self.mode, content=Template(template, extra_imports=self.extra_imports))
