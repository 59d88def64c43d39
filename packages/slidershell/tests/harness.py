"""What the tests of the library share: a folder of their own, an environment, and a script run as the agent runs it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(os.path.dirname(HERE), "python")
sys.path.insert(0, LIBRARY)

from resource_management.core.environment import Environment  # noqa: E402
from resource_management.core.process import lives  # noqa: E402

WATCHDOG = 30  # seconds


def eventually(condition):
    """Waits until condition() holds and returns what it gave."""
    end = time.monotonic() + WATCHDOG
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.01)


class FolderCase(unittest.TestCase):
    """Runs in a new folder, in an environment whose package is `package` there."""

    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="slidershell-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        self.variable("HOME", self.folder)  # a login shell reads no profile of whoever runs the tests
        for name in ("package/scripts", "package/files", "package/templates"):
            os.makedirs(name)
        self.env = Environment(os.path.join(self.folder, "package"))
        self.env.__enter__()
        self.addCleanup(self.env.__exit__, None, None, None)

    def variable(self, name, value):
        """Sets an environment variable for the test."""
        if name in os.environ:
            self.addCleanup(os.environ.__setitem__, name, os.environ[name])
        else:
            self.addCleanup(os.environ.pop, name)
        os.environ[name] = value

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def kill_later(self, pid):
        def kill():
            if lives(pid):
                os.kill(pid, 9)
        self.addCleanup(kill)
        return pid

    def run_script(self, text, command="START", config=None, level="INFO", environment=None, **more):
        """Runs a script that subclasses Script; returns what subprocess gives."""
        script = self.write("package/scripts/app.py", "from resource_management import *\n" + text)
        self.write("command.json", json.dumps({"configurations": {"global": config or {}}, **more}))
        env = {**os.environ, "PYTHONPATH": LIBRARY, "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
        return subprocess.run(
            [sys.executable, "-S", script, command, "command.json", os.path.join(self.folder, "package"), "out.json",
             level, self.folder], env=env, capture_output=True, text=True, timeout=WATCHDOG)
