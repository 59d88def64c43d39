"""TensorFlow on parameter servers and workers, and TensorBoard: how an instance is installed, started, asked and ended.

START becomes the program: its signals, its output and its exit code are the program's own.
"""

import os
import signal
import socket
import sys
import time

from resource_management import *

import cluster
import hdfs

# The part of START's time that a poll for the others may take: the agent, which ends START after it, knows not who is missing.
PATIENCE = 0.9
LOOK = 0.1  # seconds between two looks at a process that is to end
# Seconds that a parameter server goes on for worker 0, which saves on it. The agent's grace may be shorter.
LAST_SAVE = 20


class Tensorflow(Script):
    def install(self, env):
        self.install_packages(env)

    def configure(self, env):
        """Sees that there is something to run before anybody waits for it."""
        import params
        env.set_params(params)
        if params.is_tensorboard:
            if not params.port:
                raise Fail("no port: the configuration has neither tensor.board.port nor tensorboard.port")
        elif not params.entry:
            raise Fail("no script to run: set site.global.user.scripts.entry")
        elif not os.path.isfile(script(params)):
            raise Fail("script {}: no such file{}".format(script(params), beside(params)))

    def start(self, env):
        import params
        forget(params.pid_file)
        self.configure(env)
        if params.is_tensorboard:
            argv = [sys.executable, "-m", "tensorboard.main", "--logdir=" + params.checkpoint_dir, "--bind_all",
                    "--port=" + params.port]
        else:
            argv = [sys.executable, script(params)] + cluster.arguments(
                cluster.find(os.environ, params, PATIENCE * params.seconds), params.checkpoint_dir, params.app_install_dir, params.data_dir)
        become(argv, surroundings(params), params.pid_file)

    def status(self, env):
        import params
        check_process_status(params.pid_file)

    def stop(self, env):
        """Asks the program to end, by TERM, and waits until it has; the agent bounds the wait."""
        import params
        try:
            check_process_status(params.pid_file)
        except ComponentIsNotRunning:
            return
        with open(params.pid_file, encoding="ascii") as file:
            pid = int(file.read())
        outlive_chief(params)
        os.kill(pid, signal.SIGTERM)
        while lives(params.pid_file):
            time.sleep(LOOK)


def script(params):
    """The user's script; a relative name is one of package/files."""
    return os.path.join(params.app_install_dir, params.entry)


def beside(params):
    """What a relative name could have meant."""
    if os.path.isabs(params.entry):
        return " here"
    there = sorted(name for name in os.listdir(params.app_install_dir) if name.endswith(".py"))
    return "; package/files has {}".format(", ".join(there) or "no script")


def surroundings(params):
    """The program's environment: this one, without our library, and with what HDFS needs."""
    environ = dict(os.environ)
    library = os.path.dirname(os.path.dirname(sys.modules["resource_management"].__file__))
    paths = [p for p in environ.pop("PYTHONPATH", "").split(os.pathsep) if p and os.path.realpath(p) != os.path.realpath(library)]
    if paths:
        environ["PYTHONPATH"] = os.pathsep.join(paths)
    more, warning = hdfs.environment(params.hadoop_conf, params.user_name, params.java_home, environ)
    # Packages name /etc/hadoop/conf whether they use HDFS or not.
    if warning and (more or hdfs.named_by(params.checkpoint_dir, params.data_dir)):
        print("tensorflow.py: " + warning, file=sys.stderr)  # stdout is the program's
    environ.update(more)
    return environ


def become(argv, environ, pid_file):
    """Puts the program in the place of this process, which keeps its number."""
    os.makedirs(os.path.dirname(pid_file), exist_ok=True)
    new = pid_file + ".new"
    with open(new, "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    os.replace(new, pid_file)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(argv[0], argv, environ)
    except OSError as err:
        forget(pid_file)
        raise Fail("{}: {}".format(argv[0], err.strerror)) from err


def outlive_chief(params):
    """Lets a parameter server wait while worker 0 serves, which writes its last checkpoint from the servers' variables."""
    if params.is_tensorboard:
        return
    try:
        known = cluster.find(os.environ, params, 0)
    except (Fail, OSError, ValueError):
        return
    end = time.monotonic() + LAST_SAVE
    while known.job == "ps" and known.workers and time.monotonic() < end and answers(known.workers[0]):
        time.sleep(LOOK)


def answers(address):
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
        return True
    except OSError:
        return False


def lives(pid_file):
    try:
        check_process_status(pid_file)
        return True
    except ComponentIsNotRunning:
        return False


def forget(path):
    """The number in it may be another's by now."""
    if os.path.exists(path):
        os.unlink(path)


if __name__ == "__main__":
    Tensorflow().execute()
