"""Experiments: sweeps under way, with their rows, figures and status."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import _native
from ._errors import CancelledError, NetworkError, TasksFailedError, UsageError
from ._native import Rows
from ._values import Names, Path, Paths, Where, alone, call, conditions, names, options, path, text, warn

#: How long a coordinator may be away while an experiment is watched (s).
_AWAY_MAX_S = 60.0


class Experiment:
    """An experiment by its name: one that `run` or `submit` has started, in this process or elsewhere.

    `data` is the folder or object store of its results, by default ./results/data. `coordinator`, `access` and `insecure`
    lead to a coordinator elsewhere; they are options of `powersweep results`.

    >>> import powersweep
    >>> powersweep.Experiment("nothing-here").results()
    Traceback (most recent call last):
    powersweep.UsageError: there is no .../results/data: give the folder of the results with --data, ...
    """

    def __init__(
        self,
        name: str,
        *,
        data: Path | None = None,
        coordinator: str | None = None,
        access: Path | None = None,
        insecure: bool = False,
    ) -> None:
        self.name = name
        self._where = {"data": data, "coordinator": coordinator, "access": access, "insecure": insecure}
        self._place = _native.Place(data=path(data), coordinator=coordinator, access=access, insecure=insecure)

    def __repr__(self) -> str:
        return f"<powersweep.Experiment: {self.name}>"

    def results(
        self,
        *,
        table: str = "tasks",
        select: Names = None,
        where: Where = None,
        by: Names = None,
        stat: Names = None,
        ratio_to: Where = None,
        pivot: str | None = None,
        sort: str | None = None,
        descending: bool = False,
        rows: int | None = None,
        skip: int | None = None,
        preset: str | None = None,
    ) -> Rows:
        """The rows of a table, as they are now: also rows that are not published yet.

        `select` names columns (`powersweep columns` lists them) and `where` gives conditions: {"policy": "easy"} or
        ["bsld_mean <= 5"]. With `by`, a row for each combination of values of these columns, with the statistics `stat`
        (mean, sd, ci, median, p95, ...) of the selected columns. `sort`, `descending`, `rows` and `skip` choose some rows.
        `preset` is a table of a paper, or the numbers of one of its figures, without any of these.

        >>> experiment = powersweep.run("quickstart", quiet=True)
        >>> experiment.results()
        <powersweep.Rows: 88 rows, ... columns>
        >>> energy = experiment.results(select="energy_total_j", by=["policy", "size_factor"], where={"seed": 1})
        >>> energy.columns
        ['policy', 'size_factor', 'mean(energy_total_j)', 'ci95(energy_total_j)']
        """
        if preset is not None:
            alone(
                "preset", table=table != "tasks", select=select, where=where, by=by, stat=stat, ratio_to=ratio_to,
                pivot=pivot, sort=sort, descending=descending, rows=rows, skip=skip,
            )  # fmt: skip
            return call(self._place.preset, self.name, preset)
        return call(
            self._place.results,
            self.name,
            table=table,
            columns=names(select),
            only=conditions(where),
            by=names(by),
            stats=names(stat),
            ratio_to=conditions(ratio_to),
            pivot=pivot,
            sort=sort,
            descending=descending,
            rows=rows,
            skip=skip or 0,
        )

    def compare(
        self,
        a: Where,
        b: Where,
        *,
        other: str | None = None,
        table: str = "tasks",
        select: Names = None,
        where: Where = None,
        by: Names = None,
        pool: Names = None,
        shaken: float | None = None,
        traces: Paths = None,
        cache: Path | None = None,
    ) -> Rows:
        """Two sets of rows, pair by pair: a row for each compared column.

        `a` and `b` are the conditions of the sets, and `where` those of both. Rows of the same workload, machine and seed
        are a pair. `ratio` is the mean of B divided by that of A, with its 95% interval over the seeds from `ratio_low` to
        `ratio_high`. `select` names the columns, by default the usual metrics; `table="jobs"` compares job by job. Each
        combination of values of `by` has a comparison; so has each workload and signal that is not in `pool`. `other` is
        the experiment of B, if it is another one in the same data.

        `shaken` compares the sets once more with shaken input: each submit moves by at most this time (s), earlier or later,
        differently for each of ten seeds. The tasks run first, in another process, as the experiment NAME-shaken; `traces` and
        `cache` are options of `powersweep compare`.

        >>> experiment = powersweep.run("quickstart", quiet=True)
        >>> fcfs, easy = ({"queue_order": "fcfs", "backfill": rule, "policy": "full-speed"} for rule in ("none", "easy"))
        >>> waits = experiment.compare(fcfs, easy, select="wait_s_mean", where={"size_factor": 1})
        >>> waits["metric"], waits["pairs"][0] > 1, waits["ratio"][0] < 1
        (['wait_s_mean'], True, True)
        """
        sets = [f"{name}:{','.join(conditions(of))}" for name, of in ((self.name, a), (other or self.name, b))]
        asked: dict[str, Any] = {"table": table, "columns": names(select), "by": names(by), "pool": names(pool)}
        if shaken is not None:
            from . import _child

            given = options(**self._where, **asked, where=conditions(where), shaken=shaken, traces=traces, cache=cache)
            _child.run(["compare", *given, "--", *sets], lambda note: print(note, file=sys.stderr))
            sets = [_native.shaken_set(of) for of in sets]
        return call(self._place.compare, *sets, only=conditions(where), **asked)

    def best(
        self,
        *,
        minimise: Names = None,
        maximise: Names = None,
        subject_to: Where = None,
        by: Names = None,
        where: Where = None,
        top: int = 1,
    ) -> Rows:
        """The combinations of parameters with the best means over the seeds; with several goals, the Pareto front.

        `minimise` and `maximise` name the goals. `subject_to` gives conditions on the mean of a metric, on a
        parameter, or on the share of seeds, such as `P(wait_s_mean <= 3600) >= 0.95`, and `where` conditions on the rows. `by` names the columns that are chosen, by default all that vary except the
        seed. With one goal, there are up to `top` rows.

        >>> experiment = powersweep.run("quickstart", quiet=True)
        >>> best = experiment.best(minimise="energy_total_j", subject_to="bsld_mean <= 500", by="policy")
        >>> len(best), best.columns[0]
        (1, 'policy')
        """
        return call(
            self._place.best,
            self.name,
            minimise=names(minimise),
            maximise=names(maximise),
            subject_to=conditions(subject_to),
            by=names(by),
            only=conditions(where),
            top=top,
        )

    def sensitivity(
        self,
        of: Names,
        *,
        design: str | None = None,
        by: Names = None,
        where: Where = None,
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> Rows:
        """How much each parameter moves the metrics `of`: a row for each metric and each parameter or pair of parameters.

        A design of the kind `saltelli`, and a grid, have shares of variance (`S1`, `ST`, `S2`), one of the kind `morris` has
        elementary effects (`mu_star`, `mu`, `sigma`); `_low` and `_high` are the ends of the 95% intervals. `design` chooses one
        of several designs. Each combination of values of `by` has its indices. An index that a failed point touches has no value
        and the ends of its bounds; `ranges` has for a metric the least and the greatest value that it may have there, and a note
        names each of these points.

        >>> experiment = powersweep.run("quickstart", quiet=True)
        >>> shares = experiment.sensitivity("wait_s_mean", where={"policy": "full-speed"})
        >>> shares["parameter"][:2], shares["ST"][0] > shares["ST"][1]
        (['backfill', 'queue_order'], True)
        """
        return call(
            self._place.sensitivity,
            self.name,
            of=names(of),
            design=design,
            by=names(by),
            only=conditions(where),
            ranges=[(name, *ends) for name, ends in (ranges or {}).items()],
        )

    def hypervolume(
        self,
        *,
        minimise: Names = None,
        maximise: Names = None,
        subject_to: Where = None,
        by: Names = None,
        where: Where = None,
        reference: Iterable[float] = (),
    ) -> float | None:
        """The hypervolume of the Pareto front of `best`: how much of the space of the goals up to `reference` it beats.

        `reference` has a value for each goal; by default the worst of all combinations. None if the front has too many points
        for its number of goals.

        >>> experiment = powersweep.run("quickstart", quiet=True)
        >>> experiment.hypervolume(minimise=["energy_total_j", "bsld_mean"]) > 0
        True
        """
        return call(
            self._place.hypervolume,
            self.name,
            minimise=names(minimise),
            maximise=names(maximise),
            subject_to=conditions(subject_to),
            by=names(by),
            only=conditions(where),
            reference=[float(of) for of in reference],
        )[0]

    def plot(
        self,
        figure: str | None = None,
        *,
        preset: str | None = None,
        x: Names = None,
        y: str | None = None,
        colour: str | None = None,
        facet: str | None = None,
        value: str | None = None,
        table: str | None = None,
        where: Where = None,
        cap: str | float | None = None,
        between: tuple[float, float] | None = None,
        log: Names = None,
        free: Names = None,
        maximise: Names = None,
        width: str | None = None,
        style: Path | None = None,
    ) -> Figure:
        """A figure of the rows as they are now, which a notebook shows.

        `figure` is one of bars, lines, cdf, series, gantt, heatmap, effect, parallel and pareto, or `preset` is a figure
        of a paper. The other arguments are the options of `powersweep plot`.

        >>> experiment = powersweep.run("quickstart", quiet=True)
        >>> experiment.plot("pareto", x="energy_total_j", y="wait_s_mean", colour="policy").save("front.pdf")
        """
        if preset is not None:
            alone(
                "preset", figure=figure, x=x, y=y, colour=colour, facet=facet, value=value, table=table, where=where,
                cap=cap, between=between, log=log, free=free, maximise=maximise,
            )  # fmt: skip
        drawing = call(
            _native.plot,
            self._place,
            self.name,
            figure=figure,
            preset=preset,
            x=names(x),
            y=y,
            colour=colour,
            facet=facet,
            value=value,
            table=table,
            only=conditions(where),
            cap=None if cap is None else text(cap),
            between=between,
            log=names(log),
            free=names(free),
            maximise=names(maximise),
            width=width,
            style=style,
        )
        return Figure(drawing)

    def status(self) -> dict[str, Any]:
        """The state now: number of tasks, done, running and failed ones, speed, remaining time, failures.

        The keys are those of an experiment in `powersweep status --json`.

        >>> experiment = powersweep.run("quickstart", quiet=True)
        >>> experiment.status()["state"], experiment.status()["done"]
        ('finished', 88)
        """
        state: dict[str, Any] = self._look()["experiments"][0]
        return state

    def _look(self) -> dict[str, Any]:
        import json

        status: dict[str, Any] = json.loads(call(self._place.status, self.name))
        return status

    def watch(self, *, interval_s: float = 1.0) -> Iterator[dict[str, Any]]:
        """The state whenever it has changed, until the experiment ends.

        Failed tasks raise a `TasksFailedError` at the end, and a cancellation a `CancelledError`. A coordinator may restart
        meanwhile; without one for a minute, a `NetworkError` is raised.

        >>> experiment = powersweep.run("quickstart", quiet=True)
        >>> for progress in experiment.watch():
        ...     print(progress["done"], "of", progress["tasks"])
        88 of 88
        """
        last, seen = None, None
        while True:
            status = None
            try:
                status = self._look()
            except NetworkError:
                if seen is None:
                    raise
            found = status and status["experiments"][0]
            if found and found != last:
                last = found
                yield found
            if found and _has_ended(found):
                return
            if status and status["build"]:
                seen = time.monotonic()
            elif seen is None or time.monotonic() - seen > _AWAY_MAX_S:
                hint = "start one with `powersweep serve`, or run the sweep with `powersweep.run`"
                raise NetworkError(f"no coordinator runs the tasks of {self.name}: {hint}")
            time.sleep(interval_s)

    def wait(self) -> None:
        """Waits until the experiment ends, as `watch` does.

        >>> powersweep.run("quickstart", quiet=True).wait()
        """
        for _ in self.watch():
            pass

    def pause(self, *, any_owner: bool = False) -> None:
        """Running tasks finish, and no other one starts until `resume`. With `any_owner`, also those of an experiment that
        another user submitted.

        >>> powersweep.run("quickstart", quiet=True).pause()
        Traceback (most recent call last):
        powersweep.RefusedError: quickstart has ended: it has no tasks to pause
        """
        call(self._place.pause, self.name, any_owner=any_owner)

    def resume(self, *, any_owner: bool = False) -> None:
        """Continues after `pause` or `cancel`; with `any_owner`, also an experiment of another user.

        >>> powersweep.run("quickstart", quiet=True).resume()
        Traceback (most recent call last):
        powersweep.RefusedError: quickstart has finished: every task has a row
        """
        call(self._place.resume, self.name, any_owner=any_owner)

    def cancel(self, *, any_owner: bool = False) -> None:
        """Stops the tasks until `resume` or the next submit. Rows of finished tasks are kept. With `any_owner`, also those of
        an experiment of another user.

        >>> powersweep.run("quickstart", quiet=True).cancel()
        Traceback (most recent call last):
        powersweep.RefusedError: quickstart has ended: it has no tasks to cancel
        """
        call(self._place.cancel, self.name, any_owner=any_owner)


def _has_ended(found: dict[str, Any]) -> bool:
    """Whether an experiment has ended well. An end of another kind raises an exception."""
    if found["state"] == "failed":
        reasons = [found["reason"], *dict.fromkeys(failure["message"] for failure in found["failures"])]
        failed = found["failed"]
        text = "\n".join(filter(None, [f"{found['name']}: {failed} of {found['tasks']} tasks failed", *reasons]))
        raise TasksFailedError(text)
    if found["state"] in ("cancelled", "leaving"):
        raise CancelledError(f"{found['name']} was stopped by another command: {found['reason'] or found['state']}")
    return bool(found["state"] == "finished")


class Figure:
    """A figure with its rows. A notebook shows it; `save` writes it for a paper."""

    def __init__(self, drawing: _native.Drawing) -> None:
        self._drawing = drawing
        #: The figure as SVG.
        self.svg: str = drawing.render("svg").decode()

    @property
    def spec(self) -> dict[str, Any]:
        """The Vega-Lite 6 spec with its rows, for Altair: `altair.Chart.from_dict(figure.spec)`."""
        import json

        spec: dict[str, Any] = json.loads(self._drawing.render("vl.json"))
        return spec

    def render(self, format: str) -> bytes:
        """The figure in a format: svg, png, pdf, html, vl.json or csv.

        >>> experiment = powersweep.run("quickstart", quiet=True)
        >>> experiment.plot("bars", x="policy", y="energy_total_j", where={"size_factor": 1}).render("png")[1:4]
        b'PNG'
        """
        return self._drawing.render(format)

    def save(self, path: Path) -> None:
        """Writes a file. Its ending says the format: .svg .png .pdf .html .vl.json .csv

        >>> experiment = powersweep.run("quickstart", quiet=True)
        >>> experiment.plot("cdf", x="wait_s_mean").save("waits.svg")
        """
        name = os.path.basename(os.fspath(path))
        content = self._drawing.render(name.partition(".")[2] if name.endswith(".vl.json") else name.rpartition(".")[2])
        with open(path, "wb") as file:
            file.write(content)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"image/svg+xml": self.svg, "text/plain": "<powersweep.Figure>"}


def results(experiment: str, *, data: Path | None = None, **asked: Any) -> Rows:
    """The rows of an experiment in `data`; the other arguments are those of `Experiment.results`.

    >>> experiment = powersweep.run("quickstart", quiet=True)
    >>> len(powersweep.results("quickstart", where=["wait_s_mean > 0"], rows=5))
    5
    """
    return Experiment(experiment, data=data).results(**asked)


def run(
    manifest: str | os.PathLike[str] | Mapping[str, Any] = "quickstart",
    *,
    data: Path | None = None,
    traces: Paths = None,
    cache: Path | None = None,
    slots: int | None = None,
    workload_memory: str | None = None,
    restart: bool = False,
    replace: bool = False,
    take_over: bool = False,
    quiet: bool = False,
) -> Experiment:
    """Runs the missing tasks of a sweep on this machine, and returns when every task has its row.

    `manifest` is a file, the name of a shipped manifest, or a dict with the keys of a manifest. The tasks run in another
    process. Ctrl-C stops it; finished tasks are kept, and the same call continues. Notes go to standard error unless
    `quiet`. The other arguments are options of `powersweep run`.

    >>> import powersweep
    >>> powersweep.run({
    ...     "version": 1,
    ...     "name": "from-python",
    ...     "seeds": {"from": 1, "count": 3},
    ...     "workloads": {"synthetic": {"source": "lublin", "synthetic_jobs_count": 100}},
    ...     "policies": {"easy": {"backfill": "easy"}},
    ... }, quiet=True)
    <powersweep.Experiment: from-python>
    """
    given = options(
        data=data,
        traces=traces,
        cache=cache,
        slots=slots,
        workload_memory=workload_memory,
        restart=restart,
        replace=replace,
        take_over=take_over,
        quiet=quiet,
        show=0,
    )
    name = _begin("run", manifest, given, (lambda note: None) if quiet else lambda note: print(note, file=sys.stderr))[0]
    return Experiment(name, data=data)


def submit(
    manifest: str | os.PathLike[str] | Mapping[str, Any],
    *,
    data: Path | None = None,
    coordinator: str | None = None,
    access: Path | None = None,
    insecure: bool = False,
    traces: Paths = None,
    cache: Path | None = None,
    priority: int | None = None,
    restart: bool = False,
    replace: bool = False,
) -> Experiment:
    """Submits a sweep to a running coordinator, and returns at once; `watch` and `wait` follow the tasks.

    `manifest` is a file, the name of a shipped manifest, or a dict with the keys of a manifest. The other arguments are
    options of `powersweep submit`.

    >>> import powersweep
    >>> powersweep.submit("quickstart", coordinator="127.0.0.1:1", insecure=True)
    Traceback (most recent call last):
    powersweep.NetworkError: no coordinator answers at https://127.0.0.1:1: ...
    """
    given = options(
        data=data,
        coordinator=coordinator,
        access=access,
        insecure=insecure,
        traces=traces,
        cache=cache,
        priority=priority,
        restart=restart,
        replace=replace,
    )
    name, said = _begin("submit", manifest, given, warn)
    # The second and later lines are about tables that earlier tasks do not have.
    for note in said.splitlines()[1:]:
        warn(note)
    return Experiment(name, data=data, coordinator=coordinator, access=access, insecure=insecure)


def _begin(command: str, manifest: Any, given: list[str], tell: Any) -> tuple[str, str]:
    """Runs a command with a manifest; returns the name of the experiment, and what the command has printed."""
    from . import _child

    if isinstance(manifest, Mapping):
        text = _native.manifest_text(dict(manifest))
        name = _native.experiment_of_text(text)
        return name, _child.run([command, *given, "--", "-"], tell, text)
    if os.fspath(manifest) == "-":
        raise UsageError("a manifest on standard input is for the command line: give a file, a name or a dict")
    name = _native.experiment_of(os.fspath(manifest))
    return name, _child.run([command, *given, "--", os.fspath(manifest)], tell)
