"""Where resources act: the package's folder and the parameters of its templates."""

import datetime
import os
import shutil
import tempfile
import types

from resource_management.core.configuration import ConfigDictionary, UnknownConfiguration
from resource_management.core.exceptions import Fail
from resource_management.core.logger import Logger
from resource_management.core.utils import AttributeDictionary

__all__ = ["Environment"]


class Environment:
    """`with Environment(basedir) as env:` makes env the one that resources and format() use."""

    _instances = []

    def __init__(self, basedir=None):
        """basedir holds the package's `files` and `templates`."""
        now = datetime.datetime.now()
        self.config = AttributeDictionary(
            basedir=basedir, params=AttributeDictionary(), date=now,
            backup=AttributeDictionary(path=backup_folder(), prefix=now.strftime("%Y%m%d%H%M%S")))

    def set_params(self, params):
        """Adds the variables of a module, or of a dictionary; functions, classes and modules are left out.

        Dictionaries among them, the configuration too, get attributes, for format and templates.
        """
        names = params if isinstance(params, dict) else vars(params)
        for name, value in names.items():
            if not name.startswith("__") and is_variable(value):
                self.config.params[name] = with_attributes(value)

    def update_config(self, attributes, overwrite=True):
        """Adds to the configuration; the dots of a name lead into dictionaries."""
        for path, value in attributes.items():
            *folders, name = path.split(".")
            place = self.config
            for folder in folders:
                place = place.setdefault(folder, AttributeDictionary())
            if overwrite or name not in place:
                place[name] = value

    def backup_file(self, path):
        """Keeps a copy of a file that is about to be replaced."""
        os.makedirs(self.config.backup.path, 0o700, exist_ok=True)
        copy = os.path.join(self.config.backup.path, self.config.backup.prefix + os.path.abspath(path).replace("/", "-"))
        Logger.info("keeping {} as {}".format(path, copy))
        shutil.copy2(path, copy)

    @classmethod
    def get_instance(cls):
        """The environment that is entered."""
        if not cls._instances:
            raise Fail("no environment: resources act inside of a command, or of `with Environment(basedir):`")
        return cls._instances[-1]

    @classmethod
    def get_instance_copy(cls):
        """Another environment with the configuration of the one that is entered."""
        new = cls()
        new.config = cls.get_instance().config.copy()
        new.config.params = new.config.params.copy()
        return new

    def __enter__(self):
        self._instances.append(self)
        return self

    def __exit__(self, *_exc):
        self._instances.pop()
        return False


def is_variable(value):
    if isinstance(value, UnknownConfiguration):
        return True
    return not callable(value) and not isinstance(value, types.ModuleType)


def with_attributes(value):
    if isinstance(value, ConfigDictionary):
        return value.with_attributes()
    if not isinstance(value, dict):
        return value
    return AttributeDictionary((name, with_attributes(one)) for name, one in value.items())


def backup_folder():
    """In the container's own scratch folder: another's /tmp is no place for an app's configuration."""
    root = os.environ.get("AGENT_WORK_ROOT")
    return os.path.join(root, "app", "tmp", "backup") if root else os.path.join(
        tempfile.gettempdir(), "resource_management-{}".format(os.getuid()), "backup")


def params_of():
    """The parameters of the environment that is entered; none outside of one."""
    return Environment._instances[-1].config.params if Environment._instances else {}
