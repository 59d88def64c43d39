"""Whether a configuration is missing."""

from resource_management.core.configuration import UnknownConfiguration

__all__ = ["is_empty"]


def is_empty(value):
    """Tells whether the value is that of a key that is not set."""
    return isinstance(value, UnknownConfiguration)
