"""A cluster of train.py processes on this machine's loopback, for tests."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading

FILES = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3,
                                     "packages", "catalog", "handwriting", "package", "files"))
# Seconds; only a test that hangs meets it.
WATCHDOG = 60

sys.dont_write_bytecode = True
if FILES not in sys.path:
    sys.path.insert(0, FILES)


def free_ports(count):
    """Ports that nobody has, below the range that the kernel gives to connecting sockets."""
    held = []
    while len(held) < count:
        sock = socket.socket()
        try:
            sock.bind(("127.0.0.1", random.randrange(20000, 30000)))
            held.append(sock)
        except OSError:
            sock.close()
    ports = [sock.getsockname()[1] for sock in held]
    for sock in held:
        sock.close()
    return ports


class Process:
    """One running train.py and every line it wrote."""

    def __init__(self, name, argv, env):
        self.name = name
        self.lines = []
        self._changed = threading.Condition()
        self._open = 2
        self.popen = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      universal_newlines=True)
        self._readers = [threading.Thread(target=self._read, args=(stream,))
                         for stream in (self.popen.stdout, self.popen.stderr)]
        for reader in self._readers:
            reader.start()

    def _read(self, stream):
        for line in stream:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    def match(self, pattern):
        """The first match of a whole line, or None."""
        for line in list(self.lines):
            found = re.fullmatch(pattern, line)
            if found:
                return found
        return None

    def wait_line(self, pattern, at_least=0):
        """Waits for a line; with at_least, for one whose first group is such a number."""
        def wanted():
            for line in self.lines:
                found = re.fullmatch(pattern, line)
                if found and (not at_least or int(found.group(1)) >= at_least):
                    return found
            return None
        with self._changed:
            self._changed.wait_for(lambda: wanted() or not self._open, WATCHDOG)
            found = wanted()
            if not found:
                raise AssertionError("{}: no line {!r} in:\n{}".format(self.name, pattern, "\n".join(self.lines)))
            return found

    def wait_exit(self):
        code = self.popen.wait(WATCHDOG)
        for reader in self._readers:
            reader.join()
        return code

    def kill(self, number=signal.SIGKILL):
        """Signals the process and waits for its end; the exit code."""
        self.popen.send_signal(number)
        return self.wait_exit()

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.wait_exit()
        for stream in (self.popen.stdout, self.popen.stderr):
            stream.close()


class Gang:
    """start() runs a member, again if it ran before; close() ends all."""

    def __init__(self, folder, ps, workers, *arguments, chief=False):
        ports = free_ports(ps + workers)
        addresses = ["127.0.0.1:{}".format(port) for port in ports]
        self.cluster = {"ps": addresses[:ps]}
        if chief:
            self.cluster["chief"] = addresses[ps:ps + 1]
            self.cluster["worker"] = addresses[ps + 1:]
        else:
            self.cluster["worker"] = addresses[ps:]
        self.folder = folder
        self.arguments = list(arguments)
        self.all = []

    def start(self, kind, index):
        config = json.dumps({"cluster": self.cluster, "task": {"type": kind, "index": index}})
        env = dict(os.environ, TF_CONFIG=config, MUSTER_CHECKPOINT_DIR=self.folder)
        argv = [sys.executable, os.path.join(FILES, "train.py")] + self.arguments
        process = Process("{}-{}".format(kind, index), argv, env)
        self.all.append(process)
        return process

    def start_all(self):
        """{component: [processes]}."""
        return {kind: [self.start(kind, index) for index in range(len(addresses))]
                for kind, addresses in self.cluster.items()}

    def close(self):
        for process in self.all:
            process.close()
