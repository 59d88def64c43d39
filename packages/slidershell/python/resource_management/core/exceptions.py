"""What a script raises to end its command; each of these ends it with exit code 1 and one line."""

__all__ = [
    "ClientComponentHasNoStatus", "ClientComponentHasNoStatusCommand", "ComponentIsNotRunning",
    "ExecuteTimeoutException", "Fail", "InvalidArgument",
]


class Fail(Exception):
    """The command failed, for the reason given."""


class InvalidArgument(Fail):
    """A resource was given an argument that it cannot use."""


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


ClientComponentHasNoStatus = ClientComponentHasNoStatusCommand  # the name in Slider's source
