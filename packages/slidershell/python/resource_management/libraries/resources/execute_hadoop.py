"""A command of Hadoop's own client."""

from resource_management.core import process
from resource_management.core.base import Resource
from resource_management.core.resources.system import Execute

__all__ = ["ExecuteHadoop"]


class ExecuteHadoop(Resource):
    """`hadoop --config conf_dir command`, by the hadoop of PATH; kinit goes first where security_enabled says so."""

    arguments = {
        "command": None, "kinit_override": False, "tries": 1, "try_sleep": 0, "user": None, "logoutput": False,
        "principal": None, "conf_dir": None, "security_enabled": False, "keytab": None, "kinit_path_local": None,
    }
    switches = ("kinit_override", "logoutput", "security_enabled")
    default_action = "run"

    def action_run(self):
        if self.security_enabled and not self.kinit_override:
            Execute("{} -kt {} {}".format(self.kinit_path_local, self.keytab, self.principal or self.user), self.env)
        command = process.line(self.name if self.command is None else self.command)
        Execute("hadoop --config {} {}".format(self.conf_dir, command), self.env, tries=self.tries,
                try_sleep=self.try_sleep, logoutput=self.logoutput, user=self.user)
