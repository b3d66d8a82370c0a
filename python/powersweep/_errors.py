"""Exceptions: one class for each exit code of the command line."""


class PowersweepError(Exception):
    """An error of powersweep. Subclasses tell the kinds apart, as exit codes do for scripts.

    >>> import powersweep
    >>> try:
    ...     powersweep.simulate(backfill="easey")
    ... except powersweep.PowersweepError as error:
    ...     print(error.exit_code, error)
    2 unknown backfill `easey`; did you mean `easy`?
    """

    #: Exit code that the command line ends with.
    exit_code: int = 1


class UsageError(PowersweepError, ValueError):
    """Wrong arguments, manifest or parameter."""

    exit_code = 2


class TasksFailedError(PowersweepError):
    """The sweep ended, but some tasks failed for good."""

    exit_code = 3


class WorkloadError(PowersweepError):
    """A log could not be found, fetched, decompressed or read."""

    exit_code = 4


class StorageError(PowersweepError):
    """The data folder or object store cannot be written or read."""

    exit_code = 5


class OwnedError(PowersweepError):
    """Another running coordinator owns the data."""

    exit_code = 6


class NetworkError(PowersweepError):
    """A port is taken, or no coordinator answers at an address."""

    exit_code = 7


class RefusedError(PowersweepError):
    """The coordinator refused the request, or an access file is not private or not this user's."""

    exit_code = 8


class FencedError(PowersweepError):
    """A newer coordinator took the data over."""

    exit_code = 9


class ClaimError(PowersweepError):
    """A demanded claim of a paper does not hold, or a verified row differs."""

    exit_code = 10


class CancelledError(PowersweepError):
    """The experiment was cancelled or deleted meanwhile."""

    exit_code = 11


class InterruptError(PowersweepError):
    """A run was interrupted from outside; finished tasks are kept."""

    exit_code = 130


class PowersweepWarning(UserWarning):
    """What the command line would print as a note, such as a mean over rows that differ in more than the seed."""


# Tracebacks name the classes as users do.
_ALL: list[type[PowersweepError]] = [PowersweepError, *PowersweepError.__subclasses__()]
for _kind in (*_ALL, PowersweepWarning):
    _kind.__module__ = __package__

_CLASSES = {kind.exit_code: kind for kind in _ALL}


def of(code: int, message: str) -> PowersweepError:
    """The exception of an exit code."""
    error = _CLASSES.get(code, PowersweepError)(message)
    error.exit_code = code
    return error
