"""Commands reach methods, and failures reach the agent."""

import json
import os
import re
import subprocess
import sys
import tarfile
import unittest
import zipfile

import harness

APP = """
class App(Script):
    def start(self, env):
        {}

if __name__ == "__main__":
    App().execute()
"""


class ScriptTest(harness.FolderCase):
    def start(self, body, **how):
        return self.run_script(APP.format(body), **how)

    def test_a_method_is_the_command_in_lower_case(self):
        run = self.start('print(self.get_config()["clusterName"], env.config.basedir)', clusterName="tf1")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout, "tf1 {}/package\n".format(self.folder))
        self.assertFalse(os.path.exists("out.json"))

    def test_failures_are_one_line(self):
        for body, want in (
                ('raise Fail("no\\n disk")', "app.py: START: no | disk (app.py, line 5)\n"),
                ("raise ComponentIsNotRunning()", "app.py: START: the component is not running\n"),
                ("raise ClientComponentHasNoStatusCommand()", "app.py: START: the component has no status\n"),
                ("raise ClientComponentHasNoStatus()", "app.py: START: the component has no status\n"),
                ('Script.get_config()["hostname"] + "x"',
                 "app.py: START: configuration /hostname is not set (app.py, line 5)\n"),
                ('self.fail_with_error("so")', "app.py: START: so\n"),
                ('try: self.fail_with_error("so")\n        except Exception: print("caught")', "app.py: START: so\n"),
                ('call("sleep 1000", timeout=0.2)',
                 "app.py: START: 'sleep 1000' ran longer than 0.2 s and was killed (app.py, line 5)\n"),
                ("import params",
                 "app.py: START: configuration /configurations/site/a.port is not set (params.py, line 2)\n"),
                ("self.configure(env)", "app.py: START: the script has no method 'configure' (app.py, line 5)\n"),
        ):
            with self.subTest(body):
                self.write("package/scripts/params.py", "from resource_management import *\n"
                           "url = 'h:' + str(Script.get_config()['configurations']['site']['a.port'])\n")
                run = self.start(body)
                self.assertEqual((run.returncode, run.stderr), (1, want))

    def test_other_exceptions_print_their_traceback_and_their_place(self):
        image = "; muster's library changes nothing of the host; put what the script needs into the image"
        platform = "; muster's library does not have it; use Python's module platform"
        for module, want in (
                ("{}['x']", "KeyError: 'x' (params.py, line 2)"),
                ("import urllib2", "ModuleNotFoundError: No module named 'urllib2' (params.py, line 2)"),
                ("{}.has_key(1)", "AttributeError: 'dict' object has no attribute 'has_key' (params.py, line 2)"),
                ("unicode", "NameError: name 'unicode' is not defined (params.py, line 2)"),
                ("open('/gone')",
                 "FileNotFoundError: [Errno 2] No such file or directory: '/gone' (params.py, line 2)"),
                ("f(0755)", "SyntaxError: .* (params.py, line 2)"),
                ("raise ValueError('a\\nb')", "ValueError: a | b (params.py, line 2)"),
                ("Mount('/data')", "NameError: name 'Mount' is not defined" + image + " (params.py, line 2)"),
                ("System.get_instance()", "NameError: name 'System' is not defined" + platform + " (params.py, line 2)"),
        ):
            self.write("package/scripts/params.py", "from resource_management import *\n" + module + "\n")
            for when, run in (("in a command", self.start("import params")),
                              ("before execute", self.run_script("import params\n" + APP.format("pass")))):
                with self.subTest(module, when=when):
                    self.assertEqual(run.returncode, 1)
                    self.assertIn("Traceback (most recent call last):", run.stderr)
                    last = run.stderr.splitlines()[-1]
                    self.assertRegex(last, re.escape("app.py: START: " + want).replace(r"\.\*", ".*") + r"\Z")

    def test_a_missing_method_is_told_from_a_failure(self):
        for command, code, stderr in (
                ("STATUS", 1, "app.py: STATUS: the component has no status\n"),
                ("STOP", 0, ""),
                ("GET_CONFIG", 1, "app.py: GET_CONFIG: the script has no method 'get_config'; it has install, start\n"),
                ("EXECUTE", 1, "app.py: EXECUTE: the script has no method 'execute'; it has install, start\n"),
                ("RESTART", 1, "app.py: RESTART: the script has no method 'restart'; it has install, start\n"),
        ):
            with self.subTest(command):
                run = self.start("pass", command=command)
                self.assertEqual((run.returncode, run.stderr), (code, stderr))
                with open("out.json", encoding="utf-8") as file:
                    self.assertEqual(json.load(file), {"muster": {"method": "absent"}})
                os.unlink("out.json")

    def test_restart_stops_and_starts(self):
        run = self.run_script(APP.format('print("start")') .replace(
            "class App(Script):", 'class App(Script):\n    def stop(self, env):\n        print("stop")\n'), "RESTART")
        self.assertEqual((run.returncode, run.stdout), (0, "stop\nstart\n"))

    def test_structured_output_is_merged(self):
        run = self.start('self.put_structured_out({"a": 1}); self.put_structured_out({"b": [2]})')
        self.assertEqual(run.returncode, 0, run.stderr)
        with open("out.json", encoding="utf-8") as file:
            self.assertEqual(json.load(file), {"a": 1, "b": [2]})

    def test_structured_output_that_cannot_be_written(self):
        os.mkdir("out.json")
        run = self.start('self.put_structured_out({"a": 1})')
        self.assertEqual(run.returncode, 0)
        self.assertIn("structured output out.json: Is a directory", run.stderr)

    def test_too_few_arguments(self):
        self.start("pass")
        run = subprocess.run(
            [sys.executable, "package/scripts/app.py", "START", "command.json", "package", "out.json"],
            env={**os.environ, "PYTHONPATH": harness.LIBRARY}, capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertTrue(run.stderr.startswith("usage: SCRIPT COMMAND"), run.stderr)

    def test_a_command_that_cannot_be_read(self):
        self.start("pass")
        for path, want in (("gone.json", "No such file"), ("package/scripts/app.py", "Expecting value")):
            run = subprocess.run(
                [sys.executable, "package/scripts/app.py", "START", path, "package", "out.json", "INFO"],
                env={**os.environ, "PYTHONPATH": harness.LIBRARY}, capture_output=True, text=True)
            self.assertEqual(run.returncode, 1)
            self.assertRegex(run.stderr, r"\Aapp.py: START: command {}: {}.*\n\Z".format(path, want))

    def test_log_levels(self):
        body = 'Logger.debug("d"); Logger.info("i"); Logger.warn("w"); Logger.error("e")'
        for level, want in (("DEBUG", "diwe"), ("INFO", "iwe"), ("ERROR", "e")):
            run = self.start(body, level=level)
            self.assertEqual("".join(line[-1] for line in run.stdout.splitlines()), want)
            self.assertEqual(run.stderr[-2:], "e\n")

    def test_secrets_stay_out_of_the_log(self):
        run = self.start(
            "pw = Script.get_config()['configurations']['global']['pw']; Logger.info(format('login {pw!p} {pw!h}'))",
            config={"pw": "a b"})
        self.assertIn("login [PROTECTED] [PROTECTED]", run.stdout)
        self.assertNotIn("a b", run.stdout)


class InstallTest(harness.FolderCase):
    def install(self, packages, code=0):
        run = self.run_script(
            "class App(Script):\n    pass\n\nApp().execute()\n", "INSTALL",
            {"app_install_dir": os.path.join(self.folder, "install")}, hostLevelParams={"package_list": packages})
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stderr

    def listed(self):
        return sorted(os.path.relpath(os.path.join(parent, name), "install")
                      for parent, _, names in os.walk("install") for name in names)

    def setUp(self):
        super().setUp()
        os.makedirs("tree/bin")
        os.chmod(self.write("tree/bin/run", "#!/bin/sh\n"), 0o755)
        self.write("tree/data", "x")
        os.mkdir("install")
        self.write("install/old", "")

    def test_a_folder(self):
        os.rename("tree/bin", "package/files/bin")
        os.symlink("bin/run", "package/files/link")
        for _ in range(2):
            self.install('[{"type": "folder", "name": "files"}]')
            self.assertEqual(self.listed(), ["bin/run", "link"])
        self.assertEqual(os.readlink("install/link"), "bin/run")

    def test_links_that_lead_out_of_a_folder(self):
        for name in ("conf", "own"):
            os.makedirs("package/" + name)
        self.write("package/conf/a.xml", "a")
        for link, to in (("conf", "../conf"), ("a.xml", "../conf/a.xml"), ("gone", "../gone"), ("b", "a.xml")):
            os.symlink(to, "package/own/" + link)
        self.install('[{"type": "folder", "name": "own"}]')
        self.assertEqual([self.read("install/" + name) for name in ("conf/a.xml", "a.xml")], ["a", "a"])
        self.assertFalse(os.path.islink("install/conf") or os.path.islink("install/a.xml"))
        self.assertEqual(os.readlink("install/gone"), "../gone")

    def test_a_tarball(self):
        for name, compression in (
                ("a.tar", ""), ("a.tar.gz", "gz"), ("a.TGZ", "gz"), ("a.tar.bz2", "bz2"), ("a.bin", "xz")):
            with tarfile.open("package/files/" + name, "w:" + compression) as archive:
                archive.add("tree/bin", "bin")
                archive.add("tree/data", "data")
            self.install(json.dumps([{"type": "tarball", "name": "files/" + name}]))
            self.assertEqual(self.listed(), ["bin/run", "data"], name)
            self.assertTrue(os.access("install/bin/run", os.X_OK))

    def test_a_zip_with_an_absolute_name(self):
        with zipfile.ZipFile("a.ZIP", "w") as archive:
            archive.write("tree/bin/run", "bin/run")
        self.install(json.dumps([{"type": "tarball", "name": os.path.join(self.folder, "a.ZIP")}]))
        self.assertEqual(self.listed(), ["bin/run"])
        self.assertTrue(os.access("install/bin/run", os.X_OK))

    def test_an_archive_stays_in_its_place(self):
        member = tarfile.TarInfo("../out")
        with tarfile.open("package/a.tar", "w") as archive:
            archive.addfile(member)
        self.assertIn("../out leads out of the package", self.install('[{"type": "tarball", "name": "a.tar"}]', 1))
        link, through = tarfile.TarInfo("l"), tarfile.TarInfo("l/out")
        link.type, link.linkname = tarfile.SYMTYPE, self.folder
        with tarfile.open("package/a.tar", "w") as archive:
            archive.addfile(link)
            archive.addfile(through)
        self.assertIn("l leads out of the package", self.install('[{"type": "tarball", "name": "a.tar"}]', 1))
        device = tarfile.TarInfo("d")
        device.type = tarfile.CHRTYPE
        with tarfile.open("package/a.tar", "w") as archive:
            archive.addfile(device)
        self.assertIn("d: neither file, folder nor link", self.install('[{"type": "tarball", "name": "a.tar"}]', 1))
        self.assertFalse(os.path.exists("out"))

    def test_nothing_to_install(self):
        for packages in ("", "[]"):
            self.install(packages)
            self.assertEqual(self.listed(), ["old"])

    def test_what_cannot_be_installed(self):
        self.write("package/bad.tar", "no tar")
        for packages, want in (
                ('[{"type": "rpm", "name": "curl"}]', "type 'rpm' is not known; there are tarball, zip and folder"),
                ('[{"type": "tarball", "name": "bad.tar"}]', "bad.tar: "),
                ('[{"type": "folder", "name": "gone"}]', "gone: no such folder"),
                ('[{"type": "zip", "name": "gone.zip"}]', "No such file"),
        ):
            self.assertIn(want, self.install(packages, 1))


if __name__ == "__main__":
    unittest.main()
