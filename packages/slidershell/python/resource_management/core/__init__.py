"""Resources, what they act with, and what can go wrong."""

from resource_management.core.base import *
from resource_management.core.environment import *
from resource_management.core.exceptions import *
from resource_management.core.logger import *
from resource_management.core.resources import *
from resource_management.core.shell import *
from resource_management.core.source import *
