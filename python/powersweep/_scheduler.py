"""Policies in Python."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from . import _native
from ._values import Paths, call, paths


class WaitingJob(NamedTuple):
    """A waiting job, as a scheduler sees it."""

    #: Submit instant (s).
    submit_s: float
    #: Estimated run time at the gear that the gear rule gives it now (s).
    estimate_s: float
    #: Procs.
    procs: int
    #: Priority; 1 is the highest.
    priority: int
    #: Class, from 1.
    job_class: int
    #: Position in the order of arrival, from 0.
    arrival: int


class Release(NamedTuple):
    """Procs that become free."""

    #: Estimated end of a running job, now if it has outlived its estimate; or the instant at which procs wake (s).
    at_s: float
    #: Procs.
    procs: int
    #: Position of the running job in the order of arrival; None for procs that wake.
    arrival: int | None


class State(NamedTuple):
    """What a scheduler sees of one scheduling pass."""

    #: The present instant (s).
    now_s: float
    #: Procs of the machine.
    machine_procs: int
    #: Procs that a job can take now.
    free_procs: int
    #: The waiting jobs, in queue order.
    waiting: tuple[WaitingJob, ...]
    #: Running jobs by estimated end, and procs that wake.
    releases: tuple[Release, ...]


class Scheduler:
    """Base class of a policy that chooses which waiting jobs start, for trying an idea out.

    `schedule` must be a function of the state: a scheduler that remembers earlier passes, draws random numbers or reads a
    clock gives rows that cannot be reproduced. `conformance` finds such schedulers.

    >>> class Shortest(powersweep.Scheduler):
    ...     def schedule(self, state):
    ...         free, starts = state.free_procs, []
    ...         for at, job in sorted(enumerate(state.waiting), key=lambda pair: pair[1].estimate_s):
    ...             if job.procs > free:
    ...                 break
    ...             free -= job.procs
    ...             starts.append(at)
    ...         return starts
    >>> row = powersweep.simulate(scheduler=Shortest(), synthetic_jobs_count=100)
    >>> row["jobs_count"], row["wasm_module"]
    (100, 'python:Shortest')
    """

    def schedule(self, state: State) -> Iterable[int]:
        """One scheduling pass: positions in `state.waiting` of the jobs that start, in the order of their starts.

        Jobs that do not fit into `state.free_procs` together are an error. Under a power cap, a job for which no power is
        left keeps waiting.

        >>> powersweep.Scheduler().schedule(None)
        Traceback (most recent call last):
        NotImplementedError: a scheduler needs a method schedule(self, state)
        """
        raise NotImplementedError("a scheduler needs a method schedule(self, state)")


def conformance(
    scheduler: Scheduler,
    *,
    workloads: int = 60,
    log: Paths = None,
    traces: Paths = None,
) -> dict[str, Any]:
    """Tests the invariants that every policy must keep, on random workloads and on logs.

    The result has the keys of `powersweep conformance --json`: `conforms`, and `checks` with the first run that breaks
    each.

    >>> class Idle(powersweep.Scheduler):
    ...     def schedule(self, state):
    ...         return []
    >>> found = powersweep.conformance(Idle(), workloads=3)
    >>> found["conforms"], [check["check"] for check in found["checks"] if check["result"] == "failed"]
    (False, ['ends'])
    """
    result: dict[str, Any] = json.loads(
        call(_native.conformance, scheduler, workloads, paths(log), paths(traces))
    )
    # A scheduler of this process uses no fuel.
    result.pop("fuel_per_pass_most", None)
    return result
