"""Studies: points that another program chooses, such as an optimiser, each simulated once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from . import _native
from ._errors import TasksFailedError, UsageError
from ._experiment import Experiment
from ._values import Names, Path, Paths, Where, call, conditions, names, native, path, paths

#: Interval of the looks for points of earlier processes (s).
_INTERVAL_S = 0.1


@dataclass(frozen=True)
class Range:
    """The values of a parameter that points may have: `choices` of a list, else all from `low` to `high`."""

    parameter: str
    unit: str
    low: Any
    high: Any
    #: The logarithms of the values are equally likely.
    log: bool
    choices: list[Any] | None


@dataclass
class Point:
    """A point that was asked for. `Study.tell` fills it when all its tasks have ended."""

    #: The name of its design.
    design: str
    #: The value of each parameter.
    values: dict[str, Any]
    #: Whether all its tasks have ended.
    done: bool = False
    #: Why tasks of the point failed; None if none did. The means are then those of the other tasks.
    failure: str | None = None
    #: A dict for each combination of what varies in the manifest beside point and seed: `group`, `seeds`, `means`.
    groups: list[dict[str, Any]] = field(default_factory=list)

    @property
    def means(self) -> dict[str, float | None]:
        """The mean of each metric over the seeds. A failed point has none, and raises a `TasksFailedError`."""
        if self.failure is not None:
            raise TasksFailedError(f"the point {self.values} failed: {self.failure}")
        means: dict[str, float | None] = self._one()["means"]
        return means

    @property
    def seeds(self) -> int:
        """Number of seeds that have rows."""
        seeds: int = self._one()["seeds"]
        return seeds

    def _one(self) -> dict[str, Any]:
        if not self.done:
            raise UsageError("tasks of the point have not ended: Study.tell returns it when they have")
        if len(self.groups) != 1:
            names = ", ".join(sorted({name for of in self.groups for name in of["group"]}))
            raise UsageError(f"a point has {len(self.groups)} groups of tasks, which differ in {names}: use `groups`")
        return self.groups[0]


class Study:
    """Points that another program chooses are simulated once each, in `data` or at a coordinator.

    `manifest` is a file or a dict of a manifest that has a design with `kind = "points"` and `points = ""`, and the ranges
    of its parameters. `metrics` names columns of `tasks` or `accounts`; `where` chooses the rows that the means are of. The points become
    tasks of the experiment of the manifest: another process with the same manifest knows them all. Without a coordinator, the tasks run
    in this process, with `slots` at a time (0: one for each processor), until `close` or the end of a `with` block.

    >>> import powersweep
    >>> study = powersweep.Study({
    ...     "version": 1,
    ...     "name": "asked",
    ...     "seeds": [1, 2],
    ...     "designs": {"knobs": {"kind": "points", "points": ""}},
    ...     "workloads": {"synthetic": {"source": "lublin", "synthetic_jobs_count": 100}},
    ...     "platforms": {"cluster": {"size_factor": {"from": 1, "to": 4, "design": "knobs"}}},
    ...     "policies": {"easy": {"backfill": "easy"}},
    ... }, metrics="bsld_mean")
    >>> asked = study.ask([{"size_factor": 1}, {"size_factor": 2}])
    >>> told = study.tell(least=2)
    >>> told == asked, told[0].seeds, told[0].means["bsld_mean"] > told[1].means["bsld_mean"]
    (True, 2, True)
    >>> study.at([0.5]), len(study.points())
    ({'size_factor': 2.5}, 2)
    >>> study.close()
    """

    def __init__(
        self,
        manifest: str | os.PathLike[str] | Mapping[str, Any],
        metrics: Names,
        *,
        where: Where = None,
        data: Path | None = None,
        coordinator: str | None = None,
        access: Path | None = None,
        insecure: bool = False,
        traces: Paths = None,
        cache: Path | None = None,
        slots: int | None = None,
        replace: bool = False,
        take_over: bool = False,
    ) -> None:
        self._native = native(
            _native.Study,
            manifest=None if isinstance(manifest, Mapping) else os.fspath(manifest),
            text=_native.manifest_text(dict(manifest)) if isinstance(manifest, Mapping) else None,
            metrics=names(metrics),
            only=conditions(where),
            data=path(data),
            coordinator=coordinator,
            access=access,
            insecure=insecure,
            traces=paths(traces),
            cache=cache,
            slots=slots,
            replace=replace,
            take_over=take_over,
        )
        call(self._native.notes)
        #: The metrics.
        self.metrics = names(metrics)
        #: The ranges of the parameters of each design.
        self.ranges: dict[str, list[Range]] = {
            label: [
                Range(name, unit, low, high, log, choices)
                for name, unit, ends, log, choices in ranges
                for low, high in [ends or (None, None)]
            ]
            for label, ranges in self._native.designs()
        }
        #: The experiment that has the points, with its rows and figures.
        self.experiment = Experiment(
            self._native.name(), data=data, coordinator=coordinator, access=access, insecure=insecure
        )
        self._asked: dict[int, Point] = {}
        self._ready: list[Point] = []

    def __repr__(self) -> str:
        return f"<powersweep.Study: {self.experiment.name}>"

    def __enter__(self) -> Study:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def ask(self, points: Iterable[Mapping[str, Any]], *, design: str | None = None) -> list[Point]:
        """Asks for points: a dict of values for each, and the design if the manifest has several. Returns a `Point` for each.

        Nothing is sent before the next `tell`, which sends all points at once. A point that was asked for before, by this
        process or another, is not simulated again.
        """
        given = [dict(point) for point in points]
        label = self._label(design)
        first = native(self._native.ask, given, label)
        made = [Point(label, values) for values in given]
        self._asked.update(enumerate(made, first))
        return made

    def tell(self, *, least: int = 1, timeout_s: float | None = None) -> list[Point]:
        """Waits until at least `least` points have ended, and returns all that have ended since the last call.

        Each `Point` of `ask` is returned once. Fewer are returned if no more were asked for, or after `timeout_s`; `least=0`
        does not wait.
        """
        self._wait(least, timeout_s)
        told, self._ready = self._ready, []
        return told

    def _wait(self, least: int, timeout_s: float | None = None) -> None:
        """Waits until `least` points are ready to be told. An exception leaves them ready."""
        call(self._native.tell, max(0, least - len(self._ready)), timeout_s)
        for of in self._native.take():
            # An interrupt may have come before `ask` had returned the point.
            if of[0] is not None and (point := self._asked.pop(of[0], None)):
                self._ready.append(_filled(point, of))

    def evaluate(self, points: Iterable[Mapping[str, Any]], *, design: str | None = None) -> list[Point]:
        """Asks for points, and returns them in their order when all of them have ended.

        >>> with powersweep.Study({
        ...     "version": 1,
        ...     "name": "evaluated",
        ...     "designs": {"knobs": {"kind": "points", "points": ""}},
        ...     "workloads": {"synthetic": {"source": "lublin", "synthetic_jobs_count": 100}},
        ...     "platforms": {"cluster": {"size_factor": {"from": 1, "to": 4, "design": "knobs"}}},
        ...     "policies": {"easy": {"backfill": "easy"}},
        ... }, metrics="bsld_mean") as study:
        ...     [point.seeds for point in study.evaluate([{"size_factor": 2}, {"size_factor": 1}, {"size_factor": 2}])]
        [1, 1, 1]
        """
        asked = self.ask(points, design=design)
        while not all(point.done for point in asked):
            self._wait(len(self._ready) + 1)
        mine = {id(point) for point in asked}
        self._ready = [point for point in self._ready if id(point) not in mine]
        return asked

    def points(self, *, wait: bool = False) -> list[Point]:
        """All points that have ended, also those of earlier processes, each once. With `wait`, the tasks of all points that
        the study knows are waited for: those that an earlier process asked for may still run.
        """
        while True:
            told = call(self._native.ended)
            if not wait or len(told) >= self._native.count():
                return [_filled(Point(of[1], of[2]), of) for of in told]
            time.sleep(_INTERVAL_S)

    def at(self, coordinates: Sequence[float], *, design: str | None = None) -> dict[str, Any]:
        """The values at coordinates from 0 to 1, one for each parameter of the design in the order of `ranges`.

        Other coordinates raise `UsageError`: they would have the values of another point.
        """
        coordinates = [float(of) for of in coordinates]
        if any(not 0 <= of <= 1 for of in coordinates):
            raise UsageError(f"coordinates of a point lie between 0 and 1: {coordinates}")
        return self._native.at(design, coordinates)

    def _label(self, design: str | None) -> str:
        """The name of a design. Without a name, the only one."""
        return self._native.label(design)

    def close(self) -> None:
        """Ends what runs in this process: finished rows are kept, and the same study continues later."""
        call(self._native.close)


def _filled(point: Point, of: _native._Told) -> Point:
    _, point.design, point.values, groups, point.failure = of
    point.done = True
    point.groups = [{"group": group, "seeds": seeds, "means": means} for group, seeds, means in groups]
    return point
