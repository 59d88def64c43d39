"""Package, Service, User and Group: what Slider's library changed of a host.

A process of muster changes nothing of its host, and the root of its container is mostly read-only. So these look
whether it is as the script wants, and fail with what to do where it is not; a service's own commands are run.
"""

import grp
import os
import pwd
import shutil
import subprocess

from resource_management.core import process, shell
from resource_management.core.base import Resource
from resource_management.core.exceptions import Fail
from resource_management.core.logger import Logger

__all__ = ["Group", "Package", "Service", "User"]

IMAGE = "put {} into the image (muster.image), or have it on each host"
# What tells of packages: a program, its words before the name, and what a line of an installed one begins with.
TOOLS = (
    ("dpkg-query", ("-W", "-f", "${db:Status-Status} ${Version}\n"), "installed "),
    ("rpm", ("-q", "--qf", "%{VERSION}-%{RELEASE}\n"), ""),
    ("apk", ("info", "-e", "-v"), ""),
)


class Package(Resource):
    """A package of the operating system. location and build_vars are ignored."""

    arguments = {"package_name": None, "location": None, "version": None, "build_vars": []}
    default_action = "install"

    def action_install(self):
        there, name = self._version(), self.package_name or self.name
        if there is None:
            raise Fail("{}: the package {} is not installed, and a process installs none; {}".format(
                self, name, IMAGE.format("it")))
        if self.version is not None and not matches(there, name, str(self.version)):
            raise Fail("{}: the package {} is installed as {}, want {}; {}".format(
                self, name, there, self.version, IMAGE.format("that version")))
        Logger.info("{}: installed already: {}".format(self, there))

    action_upgrade = action_install  # as in Slider, where it is installed already

    def action_remove(self):
        if self._version() is not None:
            raise Fail("{}: the package {} is installed, and a process removes none; take it out of the image".format(
                self, self.package_name or self.name))

    def _version(self):
        """The version of what is installed, or None."""
        name = self.package_name or self.name
        for tool, words, begins in TOOLS:
            if shutil.which(tool):
                said = subprocess.run(
                    (tool, *words, name), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    universal_newlines=True)
                lines = said.stdout.splitlines() if said.returncode == 0 else []
                return next((line[len(begins):] for line in lines if line.startswith(begins)), None)
        tools = ", ".join(tool for tool, _, _ in TOOLS)
        raise Fail("{}: none of {} is there to tell whether {} is installed; take the resource out of the "
                   "script".format(self, tools, name))


class Service(Resource):
    """A service. Each command is a command line, or a callable that gives True."""

    arguments = dict.fromkeys(
        ("service_name", "start_command", "stop_command", "restart_command", "reload_command", "status_command"))
    default_action = "start"

    def action_start(self):
        if not self._runs():
            self._do("start", "start_command=, or begin the program by Execute: it is then the instance's own process")

    def action_stop(self):
        if self._runs():
            self._do("stop", "stop_command=")

    def action_restart(self):
        self._again("restart")

    def action_reload(self):
        self._again("reload")

    def _again(self, what):
        if self._runs():
            self._do(what, what + "_command=")
        else:
            self.action_start()

    def _runs(self):
        if self.status_command is not None:
            return code_of(self.status_command) == 0
        script = os.path.join("/etc/init.d", self._name())
        return os.path.exists(script) and process.test([script, "status"]) == 0

    def _do(self, what, instead):
        command = getattr(self, what + "_command")
        if command is None:
            raise Fail("{}: the service {} is to {}, and a process has no service manager; give {}".format(
                self, self._name(), what, instead))
        Logger.info("{}: {}".format(self, what))
        code = code_of(command)
        if code:
            raise Fail("{}: {} of the service {} failed with {}".format(self, what, self._name(), code))

    def _name(self):
        return self.service_name or self.name


class Account(Resource):
    """What User and Group share: an entry of the host or image that is there, and as the script wants it."""

    def action_create(self):
        there = self._entry()
        if there is None:
            raise Fail("{}: there is no {}, and a process makes none; {}".format(
                self, self._what(), IMAGE.format("it")))
        wrong = self._differs(there)
        if wrong:
            raise Fail("{}: the {} {}, and a process does not change that; {}".format(
                self, self._what(), wrong, IMAGE.format("the one that is wanted")))

    def action_remove(self):
        if self._entry() is not None:
            raise Fail("{}: the {} is there, and a process removes none; take it out of the image".format(
                self, self._what()))


class Group(Account):
    """A group. password is ignored."""

    arguments = {"group_name": None, "gid": None, "password": None}

    def _what(self):
        return "group {}".format(self.group_name or self.name)

    def _entry(self):
        return entry(grp.getgrnam, self.group_name or self.name)

    def _differs(self, there):
        if self.gid not in (None, "") and str(self.gid) != str(there.gr_gid):
            return "has the gid {}, want {}".format(there.gr_gid, self.gid)


class User(Account):
    """A user. comment, home, shell, password and system are ignored."""

    arguments = {
        "username": None, "comment": None, "uid": None, "gid": None, "groups": [], "home": None, "shell": "/bin/bash",
        "password": None, "system": False,
    }
    switches = ("system",)

    def _what(self):
        return "user {}".format(self.username or self.name)

    def _entry(self):
        return entry(pwd.getpwnam, self.username or self.name)

    def _differs(self, there):
        if self.uid not in (None, "") and str(self.uid) != str(there.pw_uid):
            return "has the uid {}, want {}".format(there.pw_uid, self.uid)
        if self.gid not in (None, "") and gid_of(self.gid) != str(there.pw_gid):
            return "has the gid {}, want {}".format(there.pw_gid, self.gid)
        for name in self.groups if isinstance(self.groups, (list, tuple)) else [self.groups]:
            group = entry(grp.getgrnam, name)
            if group is None or there.pw_gid != group.gr_gid and there.pw_name not in group.gr_mem:
                return "is not in the group {}".format(name)


def entry(find, name):
    try:
        return find(str(name))
    except KeyError:
        return None


def gid_of(group):
    """The number of a group that is given by its name or number."""
    there = entry(grp.getgrnam, group)
    return str(there.gr_gid if there else group)


def matches(there, name, want):
    """Tells whether what a tool says is the version that is wanted, or a release of it."""
    there = there[len(name) + 1:] if there.startswith(name + "-") else there
    return there == want or there.startswith((want + "-", want + ".", want + "+"))


def code_of(command):
    if callable(command):
        return 0 if command() else 1
    return shell.call(command)[0]
