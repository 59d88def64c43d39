"""Folders of the application's store, as far as the store is a local file system."""

import os
import xml.etree.ElementTree
from urllib.parse import unquote, urlsplit

from resource_management.core.base import Resource
from resource_management.core.exceptions import Fail
from resource_management.core.resources.system import set_mode

__all__ = ["HdfsDirectory"]

_delayed = []  # (path, mode, recursive_chmod) of create_delayed, made by the next create


class HdfsDirectory(Resource):
    """`file:` URLs, and plain paths unless conf_dir's core-site.xml names another default store.

    create_delayed keeps the folder for the next create, whose name may be None. Owners are ignored.
    """

    arguments = {
        "dir_name": None, "owner": None, "group": None, "mode": None, "recursive_chown": False,
        "recursive_chmod": False, "conf_dir": None, "security_enabled": False, "keytab": None,
        "kinit_path_local": None, "hdfs_user": None,
    }

    def action_create_delayed(self):
        name = self.dir_name or self.name
        if name:
            _delayed.append((self._local(str(name)), self.mode, self.recursive_chmod))

    def action_create(self):
        self.action_create_delayed()
        while _delayed:
            path, mode, whole = _delayed.pop(0)
            os.makedirs(path, 0o755, exist_ok=True)
            for one in [path, *(below(path) if whole else [])]:
                set_mode(one, mode)

    def _local(self, name):
        if not urlsplit(name).scheme and not name.startswith("/"):
            raise Fail("{}: want an absolute path".format(self))
        parts = urlsplit(name if urlsplit(name).scheme else self._default_store() + name)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            raise Fail("{}: {} is no local path; of stores, scripts reach file: only".format(self, parts.geturl()))
        return unquote(parts.path) or "/"

    def _default_store(self):
        """fs.defaultFS, or the local file system where Hadoop is not configured."""
        path = os.path.join(self.conf_dir, "core-site.xml") if self.conf_dir else ""
        if not os.path.isfile(path):
            return "file://"
        for one in xml.etree.ElementTree.parse(path).iter("property"):
            if one.findtext("name") in ("fs.defaultFS", "fs.default.name"):
                return (one.findtext("value") or "").strip().rstrip("/") or "file://"
        return "file://"


def below(folder):
    """All that lies in a folder, links aside: chmod would follow them."""
    for parent, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                yield path
