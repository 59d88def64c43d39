"""The configuration's types under the module path that scripts import."""

from resource_management.core.configuration import ConfigDictionary, UnknownConfiguration

__all__ = ["ConfigDictionary", "UnknownConfiguration"]
