"""Package, Service, User and Group: what is there is left as it is, and what is not is named with what to do."""

import grp
import os
import pwd
import shutil
import unittest

import harness
from resource_management import *


class PackageTest(harness.FolderCase):
    # by tool: what it prints of an installed httpd 2.4.58-3, and what it does of another
    PRINTS = {
        "dpkg-query": ("installed 2.4.58-3\\n", "printf 'not-installed \\n'"),
        "rpm": ("2.4.58-3\\n", "echo 'package is not installed'; exit 1"),
        "apk": ("httpd-2.4.58-3\\n", "exit 1"),
    }

    def only(self, tool):
        """Has PATH hold a stand-in of one tool alone, or of none."""
        folder = os.path.join(self.folder, "bin-{}".format(tool))
        os.mkdir(folder)
        if tool:
            there, gone = self.PRINTS[tool]
            self.write(os.path.join(folder, tool), "#!/bin/sh\nfor last; do :; done\n"
                       "case $last in httpd) printf '{}';; *) {};; esac\n".format(there, gone))
            os.chmod(os.path.join(folder, tool), 0o755)
        self.variable("PATH", folder)

    def test_by_tool(self):
        for tool in self.PRINTS:
            self.only(tool)
            for version in (None, "2.4", "2.4.58", "2.4.58-3"):
                Package("httpd", version=version)
            Package("web", package_name="httpd", action="upgrade", location="x", build_vars=["y"])
            Package(["gone", "never"], action="remove")
            for act, want in (
                    (lambda: Package("gone"), "Package['gone']: the package gone is not installed, and a process "
                     "installs none; put it into the image (muster.image), or have it on each host"),
                    (lambda: Package("httpd", version="2.5"), "Package['httpd']: the package httpd is installed as {}"
                     "2.4.58-3, want 2.5; put that version into the image (muster.image), or have it on each "
                     "host".format(
                         "httpd-" if tool == "apk" else "")),
                    (lambda: Package("httpd", action="remove"), "Package['httpd']: the package httpd is installed, "
                     "and a process removes none; take it out of the image")):
                with self.subTest(tool + want), self.assertRaises(Fail) as caught:
                    act()
                self.assertEqual(str(caught.exception), want)
            Package("gone", ignore_failures=True)

    def test_without_a_tool(self):
        self.only("")
        with self.assertRaisesRegex(Fail, "none of dpkg-query, rpm, apk is there to tell whether httpd is installed"):
            Package("httpd")

    def test_the_real_tool(self):
        if not shutil.which("dpkg-query"):
            self.skipTest("needs Debian's dpkg-query")
        Package("dpkg")
        with self.assertRaisesRegex(Fail, "no-such-package is not installed"):
            Package("no-such-package")


class ScriptTest(harness.FolderCase):
    def test_a_failure_is_one_line_with_its_place(self):
        for resource, want in (
                ("User('no-such-user')", "User['no-such-user']: there is no user no-such-user, and a process makes "
                 "none; put it into the image (muster.image), or have it on each host (app.py, line 4)"),
                ("Service('web', status_command='false')", "Service['web']: the service web is to start, and a process "
                 "has no service manager; give start_command=, or begin the program by Execute: it is then the "
                 "instance's own process (app.py, line 4)"),
                ("Group('no-such-group', only_if='false')", None)):
            with self.subTest(resource):
                run = self.run_script("class App(Script):\n  def install(self, env):\n    {}\nApp().execute()\n".format(
                    resource), command="INSTALL")
                self.assertEqual(run.returncode, 1 if want else 0, run.stderr)
                self.assertEqual(run.stderr, "app.py: INSTALL: {}\n".format(want) if want else "")


class ServiceTest(harness.FolderCase):
    def test_its_own_commands_run(self):
        for runs, action, want in (
                (False, "start", "start"), (True, "start", ""), (True, "stop", "stop"), (False, "stop", ""),
                (True, "restart", "restart"), (False, "restart", "start"), (True, "reload", "reload"),
                (False, "reload", "start")):
            with self.subTest("{} {}".format(runs, action)):
                self.write("did", "")
                commands = {name + "_command": "echo {} >>did".format(name)
                            for name in ("start", "stop", "restart", "reload")}
                Service("web", action=action, status_command="true" if runs else "false", **commands)
                self.assertEqual(self.read("did").strip(), want)

    def test_commands_may_be_callables(self):
        seen = []
        Service("web", status_command=lambda: False, start_command=lambda: seen.append(1) or True)
        self.assertEqual(seen, [1])

    def test_what_cannot_be_done_is_named(self):
        for how, want in (
                ({}, r"Service\['web'\]: the service no-such is to start, and a process has no service manager; give "
                     r"start_command=, or begin the program by Execute: it is then the instance's own process"),
                ({"action": "stop", "status_command": "true"}, "no-such is to stop, .*; give stop_command="),
                ({"action": "reload", "status_command": "true"}, "no-such is to reload, .*; give reload_command="),
                ({"start_command": "exit 3"}, "start of the service no-such failed with 3"),
                ({"start_command": lambda: False}, "start of the service no-such failed with 1")):
            with self.subTest(want), self.assertRaisesRegex(Fail, want):
                Service("web", service_name="no-such", **how)
        Service("no-such", action="stop")


class AccountTest(harness.FolderCase):
    def test_those_that_are_there(self):
        me = pwd.getpwuid(0)
        group = grp.getgrgid(me.pw_gid).gr_name
        Group(group)
        Group("g", group_name=group, gid=me.pw_gid, password="x")
        User(me.pw_name, uid=str(me.pw_uid), gid=group, groups=[group], home="/nowhere", shell="/bin/sh", comment="c")
        User("u", username=me.pw_name, gid=me.pw_gid, groups=group, system=True)
        User("no-such-user", action="remove")
        Group("no-such-group", action="remove")

    def test_those_that_are_not(self):
        me = pwd.getpwuid(0)
        group = grp.getgrgid(me.pw_gid).gr_name
        image = "; put {} into the image (muster.image), or have it on each host"
        for act, want in (
                (lambda: User("no-such-user"), "User['no-such-user']: there is no user no-such-user, and a process "
                 "makes none" + image.format("it")),
                (lambda: Group("no-such-group"), "Group['no-such-group']: there is no group no-such-group, and a "
                 "process makes none" + image.format("it")),
                (lambda: User(me.pw_name, uid=4711), "has the uid 0, want 4711, and a process does not change that"),
                (lambda: User(me.pw_name, gid="no-such-group"), "has the gid {}, want no-such-group".format(me.pw_gid)),
                (lambda: User(me.pw_name, groups=["no-such-group"]), "is not in the group no-such-group"),
                (lambda: Group(group, gid=4711), "has the gid {}, want 4711".format(me.pw_gid)),
                (lambda: User(me.pw_name, action="remove"),
                 "the user {} is there, and a process removes none".format(me.pw_name)),
                (lambda: Group(group, action="remove"),
                 "the group {} is there, and a process removes none".format(group))):
            with self.subTest(want), self.assertRaises(Fail) as caught:
                act()
            self.assertIn(want, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
