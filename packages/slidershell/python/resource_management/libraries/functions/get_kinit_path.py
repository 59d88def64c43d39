"""Where kinit is."""

import os

__all__ = ["get_kinit_path"]


def get_kinit_path(folders):
    """The first kinit in these folders; empty when there is none. Empty entries are passed over."""
    for folder in folders:
        path = os.path.join(folder, "kinit") if folder else ""
        if path and os.path.isfile(path):
            return path
    return ""
