"""One task in this process."""

from __future__ import annotations

from typing import Any

from . import _native
from ._errors import UsageError
from ._native import Rows
from ._scheduler import Scheduler
from ._values import Path, Paths, call, path, paths, text


class Simulation(dict[str, Any]):
    """The row of a simulated task: every column of the table `tasks`, None where it does not apply."""

    #: A row for each job, if they were asked for.
    jobs: Rows | None
    #: A row for each point of a series, if they were asked for.
    series: Rows | None

    def __init__(self, row: dict[str, Any], jobs: Rows | None, series: Rows | None) -> None:
        super().__init__(row)
        self.jobs = jobs
        self.series = series


def simulate(
    manifest: Path | None = None,
    /,
    *,
    index: int | None = None,
    seed: int | None = None,
    log: Path | None = None,
    scheduler: Scheduler | None = None,
    jobs: bool = False,
    series: bool = False,
    traces: Paths = None,
    cache: Path | None = None,
    task_deadline: str | float | None = None,
    task_max_events: int | None = None,
    task_max_memory: str | int | None = None,
    **settings: Any,
) -> Simulation:
    """Simulates one task in this process, and stores nothing. Other threads run meanwhile.

    `settings` are the components and parameters of a manifest (`powersweep policies` lists them). Without `log`, the jobs
    are synthetic. `manifest` and `index` choose a task of a sweep, which `settings` change. `jobs` and `series` also keep a
    row for each job and for each point of a series. `scheduler` chooses the jobs that start, in the place of `backfill`; its
    row has backfill = "wasm", because it has the interface of a WebAssembly module. The other arguments are options of `powersweep simulate`.

    >>> import powersweep
    >>> row = powersweep.simulate(gear_rule="bsld", bsld_threshold=2, synthetic_jobs_count=500, seed=1)
    >>> row["jobs_count"], row["gear_rule"], row["reduced_count"] > 0
    (500, 'bsld', True)
    >>> powersweep.simulate("quickstart", index=3)["experiment"]
    'quickstart'
    """
    if scheduler is not None and "backfill" in settings:
        raise UsageError("`scheduler` takes the place of `backfill`: leave one of them out")
    row, of_jobs, of_series = call(
        _native.simulate,
        manifest=path(manifest),
        index=index,
        settings=[(key, text(value)) for key, value in settings.items()],
        log=path(log),
        seed=seed,
        scheduler=scheduler,
        jobs=jobs,
        series=series,
        traces=paths(traces),
        cache=cache,
        task_deadline=None if task_deadline is None else text(task_deadline),
        task_max_events=task_max_events,
        task_max_memory=None if task_max_memory is None else text(task_max_memory),
    )
    return Simulation(row, of_jobs, of_series)
