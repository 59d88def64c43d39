"""The port of an address."""

import re

from resource_management.core.configuration import UnknownConfiguration
from resource_management.core.exceptions import Fail

__all__ = ["get_port_from_url"]


def get_port_from_url(address):
    """The port as text; a missing configuration stays one."""
    if isinstance(address, UnknownConfiguration):
        return address
    port = re.search(r":([0-9]{1,5})(?=/|$)", address)
    if not port:
        raise Fail("no port in {!r}".format(address))
    return port.group(1)
