"""The functions that scripts know by name. is_empty has its module, but no place among these, as in Slider."""

from resource_management.libraries.functions.check_process_status import check_process_status
from resource_management.libraries.functions.default import default
from resource_management.libraries.functions.format import format
from resource_management.libraries.functions.get_kinit_path import get_kinit_path
from resource_management.libraries.functions.get_port_from_url import get_port_from_url
from resource_management.libraries.functions.substitute_vars import substitute_vars

__all__ = [
    "check_process_status", "default", "format", "get_kinit_path", "get_port_from_url", "substitute_vars",
]
