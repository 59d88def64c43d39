"""Files, folders and command lines."""

from resource_management.core.resources.system import *
