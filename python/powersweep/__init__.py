"""Parameter sweeps of power-aware cluster scheduling.

`simulate` simulates one task, `run` runs a sweep on this machine, `submit` gives it to a coordinator, and an `Experiment` has
its rows, figures and status. Rows go to polars, pandas, pyarrow and DuckDB without a copy.
"""

from ._errors import (
    CancelledError,
    ClaimError,
    FencedError,
    InterruptError,
    NetworkError,
    OwnedError,
    PowersweepError,
    PowersweepWarning,
    RefusedError,
    StorageError,
    TasksFailedError,
    UsageError,
    WorkloadError,
)
from ._experiment import Experiment, Figure, results, run, submit
from ._native import Rows
from ._scheduler import Release, Scheduler, State, WaitingJob, conformance
from ._simulate import Simulation, simulate
from ._study import Point, Range, Study

__all__ = [
    "CancelledError",
    "ClaimError",
    "Experiment",
    "FencedError",
    "Figure",
    "InterruptError",
    "NetworkError",
    "OwnedError",
    "Point",
    "PowersweepError",
    "PowersweepWarning",
    "Range",
    "RefusedError",
    "Release",
    "Rows",
    "Scheduler",
    "Simulation",
    "State",
    "StorageError",
    "Study",
    "TasksFailedError",
    "UsageError",
    "WaitingJob",
    "WorkloadError",
    "conformance",
    "results",
    "run",
    "simulate",
    "submit",
]
