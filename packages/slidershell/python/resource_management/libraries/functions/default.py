"""A configured value, or another where it is not set."""

from resource_management.core.logger import Logger
from resource_management.libraries.script.script import Script

__all__ = ["default"]


def default(name, default_value):
    """name: a path such as /configurations/hbase-site/hbase.rootdir; without the first / it is one of global."""
    path = name if name.startswith("/") else "/configurations/global/" + name
    value = Script.get_config()
    for step in filter(None, path.split("/")):
        if not isinstance(value, dict) or step not in value:
            Logger.debug("configuration {} is not set; {!r} instead".format(path, default_value))
            return default_value
        value = value[step]
    return value
