"""What a script raises to end its command; each of these ends it with exit code 1 and one line."""

import errno

__all__ = [
    "ClientComponentHasNoStatus", "ClientComponentHasNoStatusCommand", "ComponentIsNotRunning",
    "ExecuteTimeoutException", "Fail", "InvalidArgument",
]


class Fail(Exception):
    """The command failed, for the reason given."""


class InvalidArgument(Fail):
    """A resource was given an argument that it cannot use."""


class SystemRefused(Fail, OSError):
    """The system refused a resource to write. An OSError too, with its errno: a script may catch that, as under Slider."""

    def __str__(self):
        return str(self.args[0])


class PermissionRefused(SystemRefused, PermissionError):
    """The same for the errors that Python calls PermissionError."""


def refused(why, err):
    """The exception of a resource for err, which a script may catch as err itself."""
    out = (PermissionRefused if isinstance(err, PermissionError) else SystemRefused)(why)
    out.errno, out.strerror, out.filename = err.errno, err.strerror, err.filename
    return out


class ExecuteTimeoutException(Exception):
    """call() killed a command line that ran longer than its timeout, with all that it started. No Fail, as in Slider."""


class ComponentIsNotRunning(Fail):
    """STATUS: the component's process does not live."""

    def __str__(self):
        return super().__str__() or "the component is not running"


class ClientComponentHasNoStatusCommand(Fail):
    """STATUS was asked of a component that has nothing running."""

    def __str__(self):
        return super().__str__() or "the component has no status"


FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
FULL = (errno.ENOSPC, errno.EDQUOT)


def refusal(err, name):
    """Why the system refused to write, and what to do; empty for any other error. The path of err is left out where it
    begins with the name, which the reader knows.
    """
    if not isinstance(err, OSError) or isinstance(err, Fail) or err.errno not in FORBIDDEN + FULL:
        return ""
    path = "" if str(err.filename or name).startswith(name) else ": {}".format(err.filename)
    return "{}{}{}".format(err.strerror, path, "; write below ${AGENT_WORK_ROOT}" if err.errno in FORBIDDEN else "")


ClientComponentHasNoStatus = ClientComponentHasNoStatusCommand  # the name in Slider's source
