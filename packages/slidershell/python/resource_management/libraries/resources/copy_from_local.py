"""A local file that is brought to Hadoop's file system."""

import os

from resource_management.core.base import Resource
from resource_management.core.exceptions import InvalidArgument
from resource_management.core.process import quote
from resource_management.libraries.resources.execute_hadoop import ExecuteHadoop

__all__ = ["CopyFromLocal"]


class CopyFromLocal(Resource):
    """Copies the file into dest_dir unless one of its name is there, then sets its owner, if one is given, and its
    mode, as a number.
    """

    arguments = {
        "path": None, "dest_dir": None, "owner": None, "group": None, "mode": None, "kinnit_if_needed": "",
        "hadoop_conf_dir": "/etc/hadoop/conf", "hdfs_user": "hdfs",
    }
    default_action = "run"

    def action_run(self):
        if self.dest_dir is None:
            raise InvalidArgument("{}: the argument dest_dir is missing".format(self))
        path = self.path or self.name
        target = os.path.join(self.dest_dir, os.path.basename(path))
        there = "{} hadoop fs -ls {}".format(self.kinnit_if_needed, quote(target))
        self._hadoop(("fs", "-copyFromLocal", path, self.dest_dir), not_if=there)
        if self.owner:
            self._hadoop(("fs", "-chown", ":".join(filter(None, (self.owner, self.group))), target))
        if self.mode:
            self._hadoop(("fs", "-chmod", "{:o}".format(self.mode), target))

    def _hadoop(self, command, **how):
        ExecuteHadoop(command, self.env, conf_dir=self.hadoop_conf_dir, user=self.hdfs_user, **how)
