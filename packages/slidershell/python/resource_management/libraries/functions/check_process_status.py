"""Whether the process of a pid file lives."""

from resource_management.core import process
from resource_management.core.exceptions import ComponentIsNotRunning
from resource_management.core.logger import Logger

__all__ = ["check_process_status"]


def check_process_status(pid_file):
    """Raises ComponentIsNotRunning unless pid_file names a process that can be signalled and is no zombie."""
    try:
        with open(pid_file or "", encoding="ascii", errors="replace") as file:
            pid = int(file.read())
    except OSError as err:
        raise not_running("pid file {}: {}".format(pid_file or "''", err.strerror)) from None
    except ValueError:
        raise not_running("pid file {} holds no pid".format(pid_file)) from None
    if pid <= 0 or not process.lives(pid):  # 0 and below would be process groups
        raise not_running("no process {}, which {} names".format(pid, pid_file))


def not_running(why):
    Logger.info(why)
    return ComponentIsNotRunning(why)
