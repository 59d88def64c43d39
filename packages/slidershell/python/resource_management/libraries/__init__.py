"""Functions, resources of configuration files, and Script."""

from resource_management.libraries.functions import *
from resource_management.libraries.resources import *
from resource_management.libraries.script import *
