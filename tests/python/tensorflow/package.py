"""The package's scripts, where Python finds them, and a way to run them as the agent does."""

import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
SCRIPTS = os.path.join(ROOT, "packages", "catalog", "tensorflow", "package", "scripts")
LIBRARY = os.path.join(ROOT, "packages", "slidershell", "python")
WATCHDOG = 30  # seconds; only a test that hangs meets it

sys.dont_write_bytecode = True
sys.path[:0] = [SCRIPTS, LIBRARY]


def entries(*addresses):
    """A group's answer, the first instance last: as they came."""
    listed = [{"value": value, "containerId": "container-{}".format(tag), "tag": str(tag)}
              for tag, value in enumerate(addresses, 1)]
    return {"entries": {"host_port": listed[::-1], "debug": []}}


class Master:
    """Slider's REST, one state after the other: a new one each time the instances are asked for. None: it fails."""

    def __init__(self, *states):
        self.states = list(states)
        self.state = None
        master = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                master.answer(self)

            def log_message(self, *_args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        self.url = "http://127.0.0.1:{}/secret".format(self.server.server_port)

    def answer(self, request):
        path = request.path
        if path.endswith("/application/live/resources"):
            self.state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        known = {} if self.state is None else {
            "/secret/ws/v1/slider/application/live/resources": {"components": {
                name: {"yarn.component.instances": str(count)} for name, count in self.state[0].items()}}}
        if self.state:
            known.update({"/secret/ws/v1/slider/publisher/exports/" + name: group for name, group in self.state[1].items()})
        if self.state is None:
            request.send_error(503)
        elif path not in known:
            request.send_error(404)
        else:
            text = json.dumps(known[path]).encode()
            request.send_response(200)
            request.send_header("Content-Length", str(len(text)))
            request.end_headers()
            request.wfile.write(text)

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class InstanceCase(unittest.TestCase):
    """An instance's folder, with a package whose files have the program of a test."""

    component = "worker"

    def setUp(self):
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="muster-tf-script-"))
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("app/install", "app/run", "log", "package/files"):
            os.makedirs(os.path.join(self.root, folder))
        self.site = {
            "app_install_dir": os.path.join(self.root, "app/install"), "app_pid_dir": os.path.join(self.root, "app/run"),
            "pid_file": os.path.join(self.root, "app/run/component.pid"), "app_container_id": "container-7",
            "user.scripts.entry": "program.py", "ps.port": "2222", "worker.port": "3333", "tensor.board.port": "6006",
            "user.checkpoint.dir": "/ckpt", "user.name": "ada", "user.data.dir": "", "hadoop.conf": "",
        }
        self.env = {"PATH": os.environ["PATH"], "PYTHONPATH": LIBRARY, "PYTHONDONTWRITEBYTECODE": "1"}
        self.seconds = "600"

    def program(self, text):
        """The user's script."""
        with open(os.path.join(self.root, "app/install/program.py"), "w", encoding="utf-8") as file:
            file.write(text)

    def begin(self, command):
        """A command under way."""
        told = os.path.join(self.root, "log", "command-{}.json".format(command))
        with open(told, "w", encoding="utf-8") as file:
            json.dump({
                "componentName": self.component, "serviceName": "digits", "hostname": "h1",
                "hostLevelParams": {"java_home": "", "package_list": '[{"type": "folder", "name": "files"}]'},
                "commandParams": {"command_timeout": self.seconds}, "configurations": {"global": self.site},
            }, file)
        argv = [sys.executable, os.path.join(SCRIPTS, "tensorflow.py"), command, told, os.path.join(self.root, "package"),
                os.path.join(self.root, "log/structured.json"), "INFO", self.root]
        process = subprocess.Popen(argv, env=self.env, cwd=self.root, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def run_command(self, command):
        """Runs a command to its end: exit code, stdout, stderr."""
        process = self.begin(command)
        out, err = process.communicate(timeout=WATCHDOG)
        return process.returncode, out, err
