"""The script's commands, run as the agent runs them, on programs that need no TensorFlow."""

import json
import os
import signal
import socket
import unittest

from package import LIBRARY, WATCHDOG, InstanceCase, Master, entries

TELL = """
import json, os, sys
print(json.dumps({"argv": sys.argv, "pid": os.getpid(), "environ": dict(os.environ)}))
"""
SERVE = """
import signal, sys
def save(number, frame):
    print("saved", flush=True)
    sys.exit(5)
signal.signal(signal.SIGTERM, save)
print("up", flush=True)
while True:
    signal.pause()
"""


def tf_config(job, index, worker="h1:3333"):
    return json.dumps({"cluster": {"ps": ["h1:2222"], "worker": [worker, "h2:3333"]}, "task": {"type": job, "index": index}})


class StartTest(InstanceCase):
    def setUp(self):
        super().setUp()
        self.env["TF_CONFIG"] = tf_config("worker", 1)

    def foreground(self):
        return os.path.join(self.site["app_pid_dir"], "foreground")

    def test_it_becomes_the_program(self):
        self.program(TELL)
        self.site["user.data.dir"] = "/data"
        self.env.update(PYTHONPATH=LIBRARY + ":/own", OF_THE_APP="yes")
        start = self.begin("START")
        out, err = start.communicate(timeout=WATCHDOG)
        self.assertEqual((0, ""), (start.returncode, err))
        told = json.loads(out)  # nothing else is on stdout
        self.assertEqual(start.pid, told["pid"])
        install = self.site["app_install_dir"]
        self.assertEqual([
            install + "/program.py", "--ps_hosts=h1:2222", "--worker_hosts=h1:3333,h2:3333", "--job_name=worker",
            "--task_index=1", "--ckp_dir=/ckpt", "--work_dir=" + install, "--data_dir=/data"], told["argv"])
        self.assertEqual(("/own", "yes"), (told["environ"]["PYTHONPATH"], told["environ"]["OF_THE_APP"]))
        self.assertNotIn("HADOOP_CONF_DIR", told["environ"])
        with open(self.foreground(), encoding="ascii") as file:
            self.assertEqual(str(start.pid), file.read())

    def test_its_exit_code_is_the_programs(self):
        self.program("import sys; sys.exit('words of the program') if len(sys.argv) == 1 else sys.exit(3)")
        self.assertEqual((3, "", ""), self.run_command("START"))
        self.program("raise SystemExit('words of the program')")
        self.assertEqual((1, "", "words of the program\n"), self.run_command("START"))

    def test_where_checkpoints_go(self):
        self.program("import sys; print([a for a in sys.argv if 'ckp' in a][0])")
        for env, site, want in (
                ({"MUSTER_CHECKPOINT_DIR": "/agents"}, {"user.checkpoint.dir": "/ckpt"}, "/agents"),
                ({}, {"user.checkpoint.dir": "/ckpt", "user.checkpoint.prefix": "/p"}, "/ckpt"),
                ({}, {"user.checkpoint.dir": "", "user.checkpoint.prefix": "hdfs://n/p/"}, "hdfs://n/p/digits/checkpoints")):
            with self.subTest(want=want):
                self.site.update(site)
                self.env.pop("MUSTER_CHECKPOINT_DIR", None)
                self.env.update(env)
                self.assertEqual("--ckp_dir={}\n".format(want), self.run_command("START")[1])

    def test_a_script_by_its_absolute_path(self):
        path = os.path.join(self.root, "elsewhere.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("print(__file__)")
        self.site["user.scripts.entry"] = path
        self.assertEqual((0, path + "\n", ""), self.run_command("START"))

    def test_nothing_to_run(self):
        with open(os.path.join(self.site["app_install_dir"], "train.py"), "w", encoding="utf-8"):
            pass
        for entry, word in (
                ("", "set site.global.user.scripts.entry"), ("program.py", "no such file; package/files has train.py"),
                ("/no/such.py", "/no/such.py: no such file here")):
            with self.subTest(entry=entry):
                self.site["user.scripts.entry"] = entry
                code, _, err = self.run_command("START")
                self.assertEqual(1, code)
                self.assertIn(word, err)
                self.assertEqual(1, err.count("\n"), err)
                self.assertFalse(os.path.exists(self.foreground()))

    def test_it_asks_for_the_exports_itself(self):
        self.program("import sys; print(*sys.argv[1:5])")
        del self.env["TF_CONFIG"]
        counts, ps = {"ps": 1, "worker": 2}, entries("h2:2222")
        master = Master(None, (counts, {"ps": ps}), (counts, {"ps": ps, "worker": entries("h0:1111", "h1:3333")}))
        self.addCleanup(master.close)
        self.env.update(MUSTER_SLIDER_URL=master.url, http_proxy="http://127.0.0.1:9")
        want = "--ps_hosts=h2:2222 --worker_hosts=h0:1111,h1:3333 --job_name=worker --task_index=1\n"
        self.assertEqual((0, want, ""), self.run_command("START"))

    def test_nobody_says_who_is_in_the_cluster(self):
        self.program(TELL)
        del self.env["TF_CONFIG"]
        self.env["MUSTER_SLIDER_URL"] = "http://127.0.0.1:9/x"
        self.seconds = "1"
        code, out, err = self.run_command("START")
        self.assertEqual((1, ""), (code, out))
        self.assertIn("START: no cluster after 0.9 s: http://127.0.0.1:9/x/ws/v1/slider/application/live/resources: ", err)

    def test_hdfs(self):
        self.program(TELL)
        for conf, checkpoints, warning in (
                ("/no/conf", "/ckpt", ""), ("/no/conf", "hdfs://n/ckpt", "tensorflow.py: hadoop.conf /no/conf: no such folder"),
                (self.root, "/ckpt", "there is no hadoop command")):
            with self.subTest(conf=conf, checkpoints=checkpoints):
                self.site.update({"hadoop.conf": conf, "user.checkpoint.dir": checkpoints})
                self.env["PATH"] = self.root  # no Hadoop there
                code, out, err = self.run_command("START")
                self.assertEqual(0, code, err)
                self.assertIn(warning, err)
                self.assertEqual(1 if warning else 0, err.count("\n"), err)
                found = json.loads(out)["environ"]
                want = (conf, "ada") if conf == self.root else (None, None)
                self.assertEqual(want, (found.get("HADOOP_CONF_DIR"), found.get("HADOOP_USER_NAME")))


class TensorBoardTest(InstanceCase):
    component = "tensorboard"

    def test_both_spellings_of_its_port(self):
        package = os.path.join(self.root, "tensorboard")  # in the place of the real one
        os.mkdir(package)
        with open(os.path.join(package, "main.py"), "w", encoding="utf-8") as file:
            file.write("import sys; print(*sys.argv[1:])")
        for key in ("tensor.board.port", "tensorboard.port"):
            with self.subTest(key=key):
                self.site.pop("tensor.board.port", None)
                self.site[key] = "6007"
                want = "--logdir=/ckpt --bind_all --port=6007\n"
                self.assertEqual((0, want, ""), self.run_command("START"))
                del self.site[key]
        code, _, err = self.run_command("START")
        self.assertEqual(1, code)
        self.assertIn("neither tensor.board.port nor tensorboard.port", err)


class LifeTest(InstanceCase):
    def serve(self, job="worker", worker="h1:3333"):
        self.component = job
        self.env["TF_CONFIG"] = tf_config(job, 0, worker)
        self.program(SERVE)
        start = self.begin("START")
        self.assertEqual("up\n", start.stdout.readline())
        return start

    def test_status(self):
        self.assertEqual(1, self.run_command("STATUS")[0])
        start = self.serve()
        self.assertEqual(0, self.run_command("STATUS")[0])
        start.kill()
        start.wait(WATCHDOG)
        code, _, err = self.run_command("STATUS")
        self.assertEqual(1, code)
        self.assertIn("no process {}".format(start.pid), err)

    def test_stop_asks_and_waits(self):
        start = self.serve()
        stop = self.begin("STOP")
        self.assertEqual("saved\n", start.stdout.readline())
        self.assertEqual(5, start.wait(WATCHDOG))
        out, err = stop.communicate(timeout=WATCHDOG)
        self.assertEqual((0, ""), (stop.returncode, err))
        self.assertEqual(0, self.run_command("STOP")[0])  # nothing is there to end

    def test_a_parameter_server_outlives_worker_0(self):
        with socket.create_server(("127.0.0.1", 0)) as chief:
            start = self.serve("ps", "127.0.0.1:{}".format(chief.getsockname()[1]))
            stop = self.begin("STOP")
            for _ in range(3):  # it looks again and again
                chief.settimeout(WATCHDOG)
                chief.accept()[0].close()
            self.assertIsNone(start.poll())
        self.assertEqual(5, start.wait(WATCHDOG))
        self.assertEqual(0, stop.wait(WATCHDOG))

    def test_a_start_forgets_the_last_one(self):
        start = self.serve()
        start.send_signal(signal.SIGKILL)
        start.wait(WATCHDOG)
        self.env["TF_CONFIG"] = "{"
        self.assertEqual(1, self.run_command("START")[0])
        self.assertFalse(os.path.exists(os.path.join(self.site["app_pid_dir"], "foreground")))


class InstallTest(InstanceCase):
    def test_the_files_of_the_package(self):
        with open(os.path.join(self.root, "package/files/train.py"), "w", encoding="utf-8") as file:
            file.write("print()")
        code, _, err = self.run_command("INSTALL")
        self.assertEqual((0, ""), (code, err))
        self.assertEqual(["train.py"], os.listdir(self.site["app_install_dir"]))


if __name__ == "__main__":
    unittest.main()
