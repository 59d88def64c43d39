"""The functions that scripts know by name; published packages take is_empty, too, as one of them."""

from resource_management.libraries.functions.check_process_status import check_process_status
from resource_management.libraries.functions.default import default
from resource_management.libraries.functions.format import format
from resource_management.libraries.functions.get_kinit_path import get_kinit_path
from resource_management.libraries.functions.get_port_from_url import get_port_from_url
from resource_management.libraries.functions.is_empty import is_empty
from resource_management.libraries.functions.substitute_vars import substitute_vars

__all__ = [
    "check_process_status", "default", "format", "get_kinit_path", "get_port_from_url", "is_empty",
    "substitute_vars",
]
