"""Execute, and check_process_status of what it leaves behind."""

import functools
import os
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

import harness
from resource_management import *
from resource_management.core import process
from resource_management.core.process import lives


class ExecuteTest(harness.FolderCase):
    def test_it_is_a_login_shell(self):
        Execute("shopt -q login_shell && echo yes; echo no >&2")
        self.assertEqual((self.read("application.log"), self.read("application.err")), ("yes\n", "no\n"))

    def test_the_outputs_are_emptied_each_time(self):
        Execute("echo a long line; echo b >&2")
        Execute("echo c")
        self.assertEqual((self.read("application.log"), self.read("application.err")), ("c\n", ""))

    def test_they_lie_in_the_scripts_folder(self):
        Execute("pwd", cwd="package")
        self.assertEqual(self.read("application.log"), self.folder + "/package\n")

    def test_words_are_quoted(self):
        Execute(("printf", "%s|", "a b", "it's", "", "$HOME"))
        self.assertEqual(self.read("application.log"), "a b|it's||$HOME|")

    def test_each_command_of_a_list(self):
        Execute(["echo 1 >> n", "echo 2 >> n"])
        self.assertEqual(self.read("n"), "1\n2\n")

    def test_a_failure_says_why(self):
        for command, want in (("echo it broke >&2; exit 3", r"ended with 3: it broke\Z"),
                              ("kill -9 $$", r"ended with 137\Z"), ("no-such-program", r"ended with 127: .*no-such")):
            with self.assertRaisesRegex(Fail, want):
                Execute(command)
        with self.assertRaisesRegex(Fail, r"run 'true': .*gone"):
            Execute("true", cwd="gone")
        Execute("exit 3", returns=[0, 3])
        Execute("exit 3", ignore_failures=True)

    def test_a_failure_says_nothing_of_the_profile(self):
        with open(".profile", "w") as file:
            file.write("echo the profile complains >&2\n")
        for command, want in (
                ("exit 3", r"ended with 3\Z"), ("echo mine >&2; exit 3", r"ended with 3: mine\Z"),
                ("(echo theirs >&2; exit 3) 2> said.err", r"ended with 3: said.err: theirs\Z"),
                ("(echo theirs >&2; exit 3) > said.log 2>&1", r"ended with 3; what it said is in said.log\Z"),
                ("(echo out; echo err >&2; exit 3) >said.log 2>said.err", r"ended with 3: said.err: err\Z"),
                ("(exit 3) 2>/dev/null", r"ended with 3\Z"), ("echo open '", r"ended with [0-9]+: .*unexpected EOF")):
            with self.assertRaisesRegex(Fail, want):
                Execute(command, environment={"HOME": os.getcwd()})
        self.assertEqual(self.read("application.profile"), "the profile complains\n")

    def test_a_failure_quotes_no_file_of_stdout(self):
        for into in ("> conf.key", ">conf.key", "1> conf.key", "&> conf.key", "> conf.key 2>&1", "> conf.key 2> conf.key",
                     ">> conf.key"):
            os.path.exists("conf.key") and os.unlink("conf.key")
            with self.assertRaises(Fail) as failed:
                Execute('echo "$DB_PASSWORD" ' + into + "; false", environment={"DB_PASSWORD": "hunter2"})
            self.assertEqual(self.read("conf.key"), "hunter2\n", into)
            self.assertNotIn("hunter2", str(failed.exception))
            if ">>" not in into:
                self.assertRegex(str(failed.exception), r"; what it said is in conf.key\Z")

    def test_tries(self):
        start = time.monotonic()
        Execute("echo x >> n; [ $(wc -l < n) -ge 3 ]", tries=5, try_sleep=0.05)
        self.assertEqual(self.read("n"), "x\n" * 3)
        self.assertGreaterEqual(time.monotonic() - start, 0.1)
        with self.assertRaisesRegex(Fail, "ended with 1"):
            Execute("echo x >> n; false", tries=2)
        self.assertEqual(self.read("n"), "x\n" * 5)

    def test_conditions(self):
        for made, conditions in (
                (False, {"not_if": "true"}), (True, {"not_if": "false"}), (True, {"only_if": "true"}),
                (False, {"only_if": "exit 2"}), (False, {"not_if": lambda: True}), (True, {"only_if": lambda: True}),
                (False, {"not_if": ("test", "-d", "package")}), (False, {"creates": "package"}),
                (True, {"creates": "gone"})):
            Execute("touch made", **conditions)
            self.assertEqual(os.path.exists("made"), made, conditions)
            if made:
                os.unlink("made")

    def test_conditions_leave_the_output_alone(self):
        Execute("echo kept")
        Execute("echo lost", not_if="echo of the condition")
        self.assertEqual(self.read("application.log"), "kept\n")

    def test_environment_and_path(self):
        os.environ["SLIDERSHELL_SEEN"] = "outer"
        self.addCleanup(os.environ.pop, "SLIDERSHELL_SEEN")
        os.chmod(self.write("package/files/own-tool", "#!/bin/sh\necho $PORT $SLIDERSHELL_SEEN\n"), 0o755)
        Execute("own-tool", environment={"PORT": 80}, path=[self.folder + "/package/files"])
        self.assertEqual(self.read("application.log"), "80 outer\n")
        Execute("own-tool", path=self.folder + "/package/files:/nowhere")
        self.assertEqual(self.read("application.log"), "outer\n")

    def test_timeout(self):
        start = time.monotonic()
        with self.assertRaisesRegex(Fail, "'sleep 1000' ran longer than 0.3 s and was killed"):
            Execute("sleep 1000", timeout=0.3, tries=3)
        with self.assertRaisesRegex(ExecuteTimeoutException, "ran longer"):
            call("sleep 1000", timeout=0.3)
        self.assertFalse(issubclass(ExecuteTimeoutException, Fail))
        self.assertLess(time.monotonic() - start, harness.WATCHDOG)
        Execute("sleep 1000", timeout=0.3, on_timeout="touch late")
        self.assertTrue(os.path.exists("late"))
        Execute("touch fast", timeout=harness.WATCHDOG)
        self.assertTrue(os.path.exists("fast"))

    def test_the_whole_tree_dies(self):
        root = process.start(
            "sleep 1000 & echo $! > child; setsid sleep 1000 & echo $! > far;"
            " (sleep 1000 & echo $! > orphan) ; touch ready; wait")
        self.kill_later(root.pid)
        self.assertTrue(harness.eventually(lambda: os.path.exists("ready")))
        pids = [self.kill_later(int(self.read(name))) for name in ("child", "far", "orphan")]
        self.assertTrue(all(lives(pid) for pid in pids))
        process.end_tree(root.pid)
        self.assertEqual(root.wait(harness.WATCHDOG), -signal.SIGKILL)
        self.assertEqual([pid for pid in pids if lives(pid)], [])

    def test_logoutput(self):
        with self.assertLogs("resource_management", "INFO") as logs:
            Execute("echo to the log", logoutput=True)
        self.assertIn("to the log", "\n".join(logs.output))

    def test_a_user_is_ignored_and_said(self):
        with self.assertLogs("resource_management", "DEBUG") as logs:
            Execute("true", user="hbase")
        self.assertIn("user is ignored", "\n".join(logs.output))

    def test_initial_wait(self):
        start = time.monotonic()
        Execute("true", initial_wait=0.1)
        self.assertGreaterEqual(time.monotonic() - start, 0.1)

    def test_a_switch_is_true_or_false(self):
        for make in (functools.partial(Execute, "true", wait_for_finish="false"),
                     functools.partial(Directory, "d", recursive="yes"), functools.partial(Link, "l", to="d", hard=2),
                     functools.partial(File, "f", ignore_failures=None),
                     functools.partial(ExecuteHadoop, "fs", security_enabled="simple"),
                     functools.partial(HdfsDirectory, "/d", recursive_chmod="no")):
            self.assertRaisesRegex(InvalidArgument, "is .*, want True or False", make)
        Execute("echo 1", logoutput=0, wait_for_finish=1)
        File("f", content="", replace="yes")

    def test_unknown_arguments(self):
        with self.assertRaisesRegex(Fail, r"Execute\['true'\] has no argument 'tryes'; did you mean tries\?"):
            Execute("true", tryes=3)
        with self.assertRaisesRegex(Fail, "has no argument 'trysleep'; did you mean try_sleep"):
            Execute("true", trysleep=3)
        with self.assertRaisesRegex(Fail, "has no argument 'colour'; it takes .*tries"):
            Execute("true", colour=3)
        with self.assertRaisesRegex(Fail, "has no action 'stop'"):
            Execute("true", action="stop")
        Execute("exit 1", action="nothing")

    def test_checked_call(self):
        self.assertEqual(shell.call("exit 4"), (4, None))
        self.assertRaisesRegex(Fail, "ended with 4", shell.checked_call, "exit 4")


class ScriptTextTest(harness.FolderCase):
    def test_an_interpreter_runs_it(self):
        ExecuteScript("greet", code="import os\nprint('from', os.environ['WHO'])", interpreter=sys.executable,
                      environment={"WHO": "python"})
        self.assertEqual(self.read("application.log"), "from python\n")
        ExecuteScript("shell", code="cd package; pwd", cwd="/")
        self.assertIn("package", self.read("application.err"))
        with self.assertLogs("resource_management", "WARNING") as logs:
            ExecuteScript("bad", code="exit 3")
        self.assertIn("ended with 3", logs.output[0])
        with self.assertRaisesRegex(Fail, "the argument code is missing"):
            ExecuteScript("none")


class HadoopTest(harness.FolderCase):
    """What Hadoop's client is told, by a client that writes it down."""

    def setUp(self):
        super().setUp()
        for name in ("hadoop", "kinit"):
            os.chmod(self.write("package/files/" + name, "#!/bin/sh\nprintf '%s|' {} \"$@\" >>{}/told; echo >>told\n"
                                'case " $* " in *" -ls "*) exit 1;; esac\n'.format(name, self.folder)), 0o755)
        self.write(".bash_profile", "PATH={}/package/files:$PATH\n".format(self.folder))

    def test_a_command(self):
        ExecuteHadoop("fs -ls /", conf_dir="/etc/hadoop", ignore_failures=True)
        ExecuteHadoop(("fs", "-mkdir", "/a b"), conf_dir="/c", security_enabled=True, keytab="k.keytab",
                      kinit_path_local="kinit", user="hbase")
        self.assertEqual(self.read("told").splitlines(), [
            "hadoop|--config|/etc/hadoop|fs|-ls|/|", "kinit|-kt|k.keytab|hbase|", "hadoop|--config|/c|fs|-mkdir|/a b|"])

    def test_a_file_is_copied_once(self):
        CopyFromLocal("/l/f", dest_dir="/d", owner="ann", group="staff", mode=0o640)
        self.assertEqual(self.read("told").splitlines(), [
            "hadoop|fs|-ls|/d/f|", "hadoop|--config|/etc/hadoop/conf|fs|-copyFromLocal|/l/f|/d|",
            "hadoop|--config|/etc/hadoop/conf|fs|-chown|ann:staff|/d/f|",
            "hadoop|--config|/etc/hadoop/conf|fs|-chmod|640|/d/f|"])
        with self.assertRaisesRegex(InvalidArgument, "the argument dest_dir is missing"):
            CopyFromLocal("/l/f", owner="ann")

    def test_a_copy_without_an_owner_keeps_its_own(self):
        CopyFromLocal("/l/f", dest_dir="/d", group="staff")
        self.assertEqual(self.read("told").splitlines(), [
            "hadoop|fs|-ls|/d/f|", "hadoop|--config|/etc/hadoop/conf|fs|-copyFromLocal|/l/f|/d|"])


class BackgroundTest(harness.FolderCase):
    START = """
class App(Script):
    def start(self, env):
        Execute({!r}, wait_for_finish=False, pid_file="app.pid", poll_after={!r})

App().execute()
"""

    def test_it_outlives_the_script_in_a_session_of_its_own(self):
        run = self.run_script(self.START.format("sleep 1000", 0.2))
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        pid = self.kill_later(int(self.read("app.pid")))
        self.assertTrue(lives(pid))
        self.assertEqual(os.getsid(pid), pid)
        # bash executed the command in its own place
        self.assertTrue(harness.eventually(lambda: b"sleep\x001000\x00" == self.cmdline(pid)), self.cmdline(pid))
        check_process_status("app.pid")
        os.kill(pid, signal.SIGKILL)
        self.assertTrue(harness.eventually(lambda: not lives(pid)))
        with self.assertRaisesRegex(ComponentIsNotRunning, "no process {}".format(pid)):
            check_process_status("app.pid")

    @staticmethod
    def cmdline(pid):
        with open("/proc/{}/cmdline".format(pid), "rb") as file:
            return file.read()

    def test_one_that_dies_early_fails_with_its_last_words(self):
        start = time.monotonic()
        run = self.run_script(self.START.format("echo port taken >&2; exit 5", 1000))
        self.assertEqual(run.returncode, 1)
        self.assertEqual(
            run.stderr, "app.py: START: 'echo port taken >&2; exit 5' ended with 5: port taken (app.py, line 5)\n")
        self.assertLess(time.monotonic() - start, harness.WATCHDOG)

    def test_one_that_ends_well_but_early_is_left_to_status(self):
        # a daemon that writes its own pid, on a host that is slow to write that of the shell
        def slow(path, pid, write_pid=process.write_pid):
            time.sleep(1)
            write_pid(path, pid)

        with mock.patch.object(process, "write_pid", slow), \
                self.assertLogs("resource_management", "WARNING") as logs:
            Execute("sleep 1000 & echo $! >app.pid.of-it; mv app.pid.of-it app.pid", wait_for_finish=False,
                    pid_file="app.pid", poll_after=1000)
        self.assertIn("was to be left running and ended with 0 within 1000 s", logs.output[0])
        self.kill_later(int(self.read("app.pid")))
        check_process_status("app.pid")

    def test_call_leaves_the_code_to_the_script(self):
        self.assertEqual(call("exit 5", wait_for_finish=False, poll_after=1000), (5, None))
        self.assertEqual(call("exit 5", False, None, None, None, "nobody", False), (None, None))
        with self.assertRaisesRegex(Fail, "ended with 5"):
            checked_call("exit 5", wait_for_finish=False, poll_after=1000)

    def test_without_poll_after_it_is_left_alone(self):
        Execute("exit 5", wait_for_finish=False)
        Execute("sleep 1000", wait_for_finish=False, pid_file="app.pid")
        pid = self.kill_later(int(self.read("app.pid")))
        self.assertTrue(lives(pid))

    def test_emptying_the_output_leaves_no_hole(self):
        os.mkfifo("go")
        Execute("echo before; read x < go; echo after", wait_for_finish=False, pid_file="app.pid")
        self.kill_later(int(self.read("app.pid")))
        self.assertTrue(harness.eventually(lambda: self.read("application.log") == "before\n"))
        Execute("echo other")
        self.write("go", "x\n")
        self.assertTrue(harness.eventually(lambda: self.read("application.log") == "other\nafter\n"))

    def test_a_pid_file_that_cannot_be_written_leaves_no_process(self):
        mark = "slidershell-{}".format(os.getpid())
        with self.assertRaisesRegex(Fail, "pid file gone/app.pid: No such file or directory"):
            Execute("exec -a {} sleep 1000".format(mark), wait_for_finish=False, pid_file="gone/app.pid")
        self.assertEqual(subprocess.run(["pgrep", "-f", mark + " 1000"], capture_output=True).stdout, b"")


class StatusTest(harness.FolderCase):
    def test_what_is_no_running_process(self):
        self.write("garbage", "abc")
        self.write("empty", "")
        self.write("zero", "0")
        self.write("group", "-1")
        for path, want in ((None, "pid file ''"), ("", "pid file ''"), ("gone", "pid file gone: No such file"),
                           ("package", "Is a directory"), ("garbage", "holds no pid"), ("empty", "holds no pid"),
                           ("zero", "no process 0"), ("group", "no process -1")):
            with self.assertRaisesRegex(ComponentIsNotRunning, want):
                check_process_status(path)

    def test_a_zombie_does_not_run(self):
        child = subprocess.Popen(["true"])
        self.addCleanup(child.wait)
        self.write("pid", "{}\n".format(child.pid))
        with open("/proc/{}/stat".format(child.pid), "rb") as file:
            self.assertTrue(harness.eventually(lambda: file.seek(0) == 0 and b") Z" in file.read()))
        self.assertRaises(ComponentIsNotRunning, check_process_status, "pid")

    def test_ourselves(self):
        check_process_status(self.write("pid", "{}\n".format(os.getpid())))


if __name__ == "__main__":
    unittest.main()
