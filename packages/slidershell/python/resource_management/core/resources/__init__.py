"""Files, folders, links, archives and command lines."""

from resource_management.core.resources.system import *
from resource_management.core.resources.tarball import *
