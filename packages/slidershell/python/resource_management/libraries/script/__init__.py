"""What a command script is, and its configuration."""

from resource_management.core.configuration import ConfigDictionary, UnknownConfiguration
from resource_management.libraries.script.script import Script

__all__ = ["ConfigDictionary", "Script", "UnknownConfiguration"]
