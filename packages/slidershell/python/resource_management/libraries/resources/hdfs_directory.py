"""Folders of the application's store: a local one at once, one of another store by the agent."""

import json
import os
import urllib.error
import urllib.request
import xml.etree.ElementTree
from urllib.parse import unquote, urlsplit

from resource_management.core.base import Resource
from resource_management.core.exceptions import Fail
from resource_management.core.resources.system import set_mode

__all__ = ["HdfsDirectory"]

_delayed = []  # (path, mode, recursive_chmod) of create_delayed, made by the next create


class HdfsDirectory(Resource):
    """`file:` and `hdfs:` URLs, and plain paths, which are of the store that core-site.xml names, else local: that of
    conf_dir, or of the host's Hadoop where there is no conf_dir.

    create_delayed keeps the folder for the next create, whose name may be None. Owners are ignored: a folder of HDFS is
    the process's user's, whom the agent acts for.
    """

    arguments = {
        "dir_name": None, "owner": None, "group": None, "mode": None, "recursive_chown": False,
        "recursive_chmod": False, "conf_dir": None, "security_enabled": False, "keytab": None,
        "kinit_path_local": None, "hdfs_user": None,
    }
    switches = ("recursive_chown", "recursive_chmod", "security_enabled")

    def action_create_delayed(self):
        name = self.dir_name or self.name
        if name:
            _delayed.append((*self._place(str(name)), self.mode, self.recursive_chmod))

    def action_create(self):
        self.action_create_delayed()
        while _delayed:
            path, url, mode, whole = _delayed.pop(0)
            if url:
                self._ask(url, mode, whole)
                continue
            os.makedirs(path, 0o755, exist_ok=True)
            for one in [path, *(below(path) if whole else [])]:
                set_mode(one, mode)

    def _place(self, name):
        """The local path, or the URL in another store."""
        if not urlsplit(name).scheme and not name.startswith("/"):
            raise Fail("{}: want an absolute path".format(self))
        url = name if urlsplit(name).scheme else self._default_store() + name
        parts = urlsplit(url)
        if parts.scheme == "file" and parts.netloc in ("", "localhost"):
            return unquote(parts.path) or "/", None
        if parts.scheme != "hdfs":
            raise Fail("{}: {} is no local path, and none of HDFS".format(self, url))
        return None, url

    def _ask(self, url, mode, whole):
        """The agent makes it: a script has no client of HDFS."""
        agent = os.environ.get("MUSTER_SLIDER_URL")
        if not agent:
            raise Fail("{}: {}: no agent to ask: MUSTER_SLIDER_URL is not set".format(self, url))
        wanted = {"url": url, "mode": "" if mode is None else "{:o}".format(mode), "below": bool(whole)}
        request = urllib.request.Request(agent.rstrip("/") + "/muster/folders", json.dumps(wanted).encode(), method="POST")
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60):
                pass
        except urllib.error.HTTPError as err:
            raise Fail("{}: {}".format(self, err.read().decode(errors="replace").strip())) from None
        except OSError as err:
            raise Fail("{}: {}: ask the agent: {}".format(self, url, err)) from None

    def _default_store(self):
        """fs.defaultFS, or the local file system where Hadoop is not configured."""
        conf_dir = self.conf_dir or os.environ.get("HADOOP_CONF_DIR")
        path = os.path.join(conf_dir, "core-site.xml") if conf_dir else ""
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
