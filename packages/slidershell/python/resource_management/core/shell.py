"""Command lines for scripts that want the exit code."""

from resource_management.core import process
from resource_management.core.exceptions import Fail
from resource_management.core.logger import Logger

__all__ = ["call", "checked_call", "quote_bash_args"]

quote_bash_args = process.quote


def call(command, logoutput=False, cwd=None, env=None, preexec_fn=None, user=None, wait_for_finish=True, timeout=None,
         pid_file=None, poll_after=None, path=()):
    """Runs a command line; returns its exit code and None, for the output is in application.log.

    Not waited for, it stays in the background, and the code is None unless it has ended within poll_after seconds.
    timeout and poll_after in seconds; user and preexec_fn are ignored: the container has one user.
    """
    how = {"cwd": cwd, "environment": env, "path": path}
    if not wait_for_finish:
        return process.background(command, pid_file=pid_file, poll_after=poll_after, **how), None
    code = process.run(command, timeout=timeout, **how)
    if logoutput:
        log_output()
    return code, None


def checked_call(command, *args, **kwargs):
    """As call, and fails unless the command line ends with 0."""
    code, out = call(command, *args, **kwargs)
    if code:
        raise ended(command, code, kwargs.get("cwd"))
    return code, out


def ended(command, code, cwd=None):
    """The failure of a command line, with the last words of its stderr, or of the file that it sends that to."""
    return Fail("{!r} ended with {}{}".format(process.line(command), code, process.tail(command, cwd)))


def log_output():
    """Logs what the last command line wrote."""
    for name in (process.STDOUT, process.STDERR):
        with open(name, encoding="utf-8", errors="replace") as file:
            text = file.read().rstrip()
        if text:
            Logger.info(text)
