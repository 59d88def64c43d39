"""Command lines: run to their end, left in the background, and ended with all that they started.

Each runs by `/bin/bash --login -c` in a session of its own. Its stdout and stderr go to application.log and
application.err in the script's working folder, which hold the output of one command: the next empties them. They
are opened for appending, so that emptying them under a background process leaves no hole.
"""

import os
import re
import signal
import subprocess
import time

from resource_management.core.exceptions import ExecuteTimeoutException, Fail
from resource_management.core.logger import Logger

STDOUT = "application.log"
STDERR = "application.err"
PROFILE = "application.profile"  # what the login shell says before the command begins
TAIL = 4096  # bytes of application.err that a failure quotes
SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%_-+=:,./")


def quote(word):
    """A word as bash takes it whole."""
    word = str(word)
    if word and all(c in SAFE for c in word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def line(command):
    """The command line of a string, or of a list of words that need quoting."""
    if isinstance(command, (list, tuple)):
        return " ".join(quote(word) for word in command)
    return str(command)


def argv(command, path=(), stderr=2, held=False):
    """The shell's arguments. A profile may set PATH anew, so what the caller wants is put in front of it afterwards.

    From the command on stderr is the descriptor of that number: what a profile writes is none of the command's. A held
    command does not begin before its stdin is closed; it has an empty one then.
    """
    text = line(command)
    if path:
        text = 'export PATH={}:"$PATH"\n{}'.format(":".join(quote(folder) for folder in path), text)
    if stderr != 2:
        text = "exec 2>&{0} {0}>&-\n{1}".format(stderr, text)
    if held:
        text = "read -r || exec </dev/null\n" + text
    return ["/bin/bash", "--login", "-c", text]


def environ(extra):
    """The script's environment with more on top."""
    return {**os.environ, **{str(name): str(value) for name, value in (extra or {}).items()}}


def start(command, cwd=None, environment=None, path=(), held=False):
    """Starts a command line with its output in the two files, and what the profile complains of in a third. A held one
    begins when the caller closes the stdin of what this returns.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
    out, err, profile = (os.open(name, flags, 0o644) for name in (STDOUT, STDERR, PROFILE))
    try:
        return subprocess.Popen(
            argv(command, path, err, held), stdin=subprocess.PIPE if held else subprocess.DEVNULL, stdout=out,
            stderr=profile, cwd=cwd, env=environ(environment), start_new_session=True, pass_fds=(err,))
    except OSError as why:
        raise Fail("run {!r}: {}".format(line(command), why)) from why
    finally:
        for one in (out, err, profile):
            os.close(one)


def finish(process, command, timeout=None):
    """Waits for the end and returns the exit code, as a shell counts it. timeout in seconds."""
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        end_tree(process.pid)
        process.wait()
        raise ExecuteTimeoutException(
            "{!r} ran longer than {} s and was killed".format(line(command), timeout)) from None
    return 128 - code if code < 0 else code


def run(command, timeout=None, **how):
    """Runs a command line to its end and returns its exit code."""
    return finish(start(command, **how), command, timeout)


def test(condition):
    """Runs a condition; its output concerns nobody, and the application's is not emptied for it."""
    return subprocess.call(argv(condition), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)


def background(command, pid_file=None, poll_after=None, **how):
    """Leaves a command line running, detached from the script. Returns its exit code if it has ended within poll_after
    seconds, else None.
    """
    process = start(command, held=bool(pid_file), **how)
    if pid_file:
        with process.stdin:  # held: a daemon may write its own pid to that file, and that one counts
            write_pid(pid_file, process.pid)
    if not poll_after:
        _left.append(process)
        return None
    try:
        code = process.wait(poll_after)
    except subprocess.TimeoutExpired:
        _left.append(process)
        return None
    Logger.warning("{!r} was to be left running and ended with {} within {} s".format(line(command), code, poll_after))
    return 128 - code if code < 0 else code


_left = []  # Popen complains of a process that still runs when it is collected


def write_pid(path, pid):
    """A pid file is there whole or not at all."""
    new = "{}.{}".format(path, os.getpid())
    try:
        with open(new, "w", encoding="ascii") as file:
            file.write(str(pid))
        os.replace(new, path)
    except OSError as err:
        end_tree(pid)  # what nobody can find again must not stay
        raise Fail("pid file {}: {}".format(path, err.strerror)) from err


def tail(command="", cwd=None):
    """The end of application.err, to be put behind a failure; where that is empty, of a file that the command line sends
    its stderr to. A file that its stdout goes to is named alone: what is written there, a password perhaps, is for no log.
    """
    text = end_of(STDERR)
    if text:
        return ": " + text
    errors, outputs = redirected(line(command))
    for name in errors:
        path = os.path.join(cwd or "", name)
        text = end_of(path) if os.path.isfile(path) else ""
        if text:
            return ": {}: {}".format(name, text)
    said = [name for name in outputs if holds_text(os.path.join(cwd or "", name))]
    return "; what it said is in " + ", ".join(said) if said else ""


def holds_text(path):
    return os.path.isfile(path) and os.path.getsize(path) > 0


def end_of(path):
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            return file.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""


def redirected(text):
    """The files that a command line empties for its stderr alone, and those that its stdout goes to as well; names that
    need the shell are not known.
    """
    found = re.findall(r"(?:^|[\s;&|(])([12]?|&)>\s*([A-Za-z0-9_@%+=:,./-]+)(?=[\s;&|)]|$)", text)
    outputs = [name for kind, name in found if kind != "2"]
    # what `cmd >x 2>x` left may be stdout's
    return [name for kind, name in found if kind == "2" and name not in outputs], list(dict.fromkeys(outputs))


def end_tree(pid):
    """Kills a process, what descends from it, and what lives in its session. Nobody may fork meanwhile: stop first."""
    seen = set()
    while True:
        more = tree(pid) - seen
        if not more:
            break
        for one in more:
            send(one, signal.SIGSTOP)
        seen |= more
    for one in seen:
        send(one, signal.SIGKILL)
    patience = time.monotonic() + 10  # one that waits in the kernel dies when it comes back
    while any(lives(one) for one in seen - {pid}) and time.monotonic() < patience:
        time.sleep(0.01)


def tree(root):
    """The pids of root, of its descendants and of its session."""
    parents, found = {}, {root}
    for name in os.listdir("/proc"):
        fields = stat(name) if name.isdigit() else None
        if fields:
            parents[int(name)] = int(fields[1])
            if int(fields[3]) == root:
                found.add(int(name))
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in found}
        grown = not children <= found
        found |= children
    return found


def stat(pid):
    """The fields of /proc/PID/stat from the state on (proc(5): state, ppid, pgrp, session), or None."""
    try:
        with open("/proc/{}/stat".format(pid), "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def lives(pid):
    """Tells whether a process can be signalled and is no zombie."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    fields = stat(pid)
    return fields is None or fields[0] not in (b"Z", b"X")


def send(pid, number):
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):  # gone, or another user's: what the guard of the container is for
        pass
