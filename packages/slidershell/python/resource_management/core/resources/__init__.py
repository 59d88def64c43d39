"""Files, folders, links, archives, command lines, and what a host has."""

from resource_management.core.resources.host import *
from resource_management.core.resources.system import *
from resource_management.core.resources.tarball import *
