"""${name} in values, as Hadoop's configuration has it."""

import re

__all__ = ["substitute_vars"]

DEPTH = 20  # Hadoop's own limit
NAME = re.compile(r"\$\{([^}$ ]+)\}")


def substitute_vars(raw, config):
    """raw with each ${name} replaced by config's value, again in what that brings, up to 20 times.

    It ends at the first name that config lacks.
    """
    for _ in range(DEPTH):
        found = NAME.search(raw)
        if not found or found.group(1) not in config:
            break
        value = config.get(found.group(1))  # as written: `true` is no True
        raw = raw[:found.start()] + str(value) + raw[found.end():]
    return raw
