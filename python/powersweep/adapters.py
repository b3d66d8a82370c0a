"""Optimisers of other packages on a `Study`: Optuna, pymoo and SciPy. Each needs its package, which is imported where it is used.

A point that fails gets no number of ours: a trial of Optuna fails, and pymoo and SciPy get infinity, which loses every
comparison. A warning names the failure.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._study import Point, Range, Study
from ._values import Names, names, warn


def costs(point: Point, minimise: Names = None, maximise: Names = None) -> list[float] | None:
    """The metrics of a point, with those to maximise negated; None, and a warning, for a failed one."""
    if point.failure is not None:
        warn(f"the point {point.values} failed: {point.failure}")
        return None
    small = [point.means[name] for name in names(minimise)]
    great = [point.means[name] for name in names(maximise)]
    found = [of for of in small if of is not None] + [-of for of in great if of is not None]
    return found if len(found) == len(small) + len(great) else None


# ---- Optuna


def optuna_study(study: Study, minimise: Names = None, maximise: Names = None, **options: Any) -> Any:
    """A study of Optuna, in memory, that has a trial for each point whose rows are there. `options`: of `create_study`."""
    optuna = _package("optuna")
    made = optuna.create_study(directions=["minimize"] * (len(names(minimise)) + len(names(maximise))), **options)
    for point in study.points(wait=True):
        chosen = {"design": point.design} if len(study.ranges) > 1 else {}
        spaces = {name: optuna.distributions.CategoricalDistribution(list(study.ranges)) for name in chosen}
        for of in study.ranges[point.design]:
            name = _name(study, point.design, of)
            chosen[name], spaces[name] = point.values[of.parameter], _distribution(of)
        values = costs(point, minimise, maximise)
        state = optuna.trial.TrialState.FAIL if values is None else optuna.trial.TrialState.COMPLETE
        made.add_trial(optuna.trial.create_trial(state=state, params=chosen, distributions=spaces, values=values))
    return made


def run_optuna(study: Study, optuna_study: Any, trials: int, minimise: Names = None, maximise: Names = None, at_once: int = 8) -> None:
    """Runs trials until the study of Optuna has `trials` trials: `at_once` at a time, each told when its point has ended."""
    failed, labels = _package("optuna").trial.TrialState.FAIL, list(study.ranges)
    running: dict[int, Any] = {}
    while True:
        for _ in range(min(at_once - len(running), trials - len(optuna_study.trials))):
            trial = optuna_study.ask()
            label = trial.suggest_categorical("design", labels) if len(labels) > 1 else labels[0]
            values = {of.parameter: _suggested(trial, _name(study, label, of), of) for of in study.ranges[label]}
            (point,) = study.ask([values], design=label)
            running[id(point)] = trial, point
        if not running:
            return
        for point in study.tell():
            found = costs(point, minimise, maximise)
            optuna_study.tell(running.pop(id(point))[0], found, state=failed if found is None else None)


def _name(study: Study, design: str, of: Range) -> str:
    """A range that all designs have is one parameter: samplers of joint models leave out parameters that some trials lack."""
    shared = all(of in ranges for ranges in study.ranges.values())
    return of.parameter if shared else f"{design}.{of.parameter}"


def _distribution(of: Range) -> Any:
    distributions = _package("optuna").distributions
    if of.choices is not None:
        return distributions.CategoricalDistribution(of.choices)
    kind = distributions.IntDistribution if isinstance(of.low, int) else distributions.FloatDistribution
    return kind(of.low, of.high, log=of.log)


def _suggested(trial: Any, name: str, of: Range) -> Any:
    if of.choices is not None:
        return trial.suggest_categorical(name, of.choices)
    return (trial.suggest_int if isinstance(of.low, int) else trial.suggest_float)(name, of.low, of.high, log=of.log)


# ---- pymoo


def pymoo_problem(study: Study, minimise: Names = None, maximise: Names = None, design: str | None = None) -> Any:
    """A problem of pymoo over the unit cube, whose points `Study.at` turns into values. It evaluates a population at once."""
    problem, numpy = _package("pymoo.core.problem"), _package("numpy")
    goals = len(names(minimise)) + len(names(maximise))

    class Asked(problem.Problem):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            parameters = len(study.ranges[design or next(iter(study.ranges))])
            super().__init__(n_var=parameters, n_obj=goals, xl=0.0, xu=1.0)

        def _evaluate(self, x: Any, out: dict[str, Any], *args: Any, **keywords: Any) -> None:
            points = study.evaluate([study.at(row, design=design) for row in x], design=design)
            out["F"] = numpy.array([costs(point, minimise, maximise) or [numpy.inf] * goals for point in points])

    return Asked()


# ---- SciPy


def scipy_objective(study: Study, minimise: Names = None, maximise: Names = None, design: str | None = None) -> Any:
    """A vectorised objective over the unit cube, for `differential_evolution(..., vectorized=True, updating="deferred")`. Its
    bounds are [(0, 1)] for each parameter. Give the transpose of points of `scipy.stats.qmc`.
    """
    numpy = _package("numpy")

    def objective(x: Any) -> Any:
        rows = numpy.atleast_2d(numpy.asarray(x).T)
        points = study.evaluate([study.at(row, design=design) for row in rows], design=design)
        return numpy.array([(costs(point, minimise, maximise) or [numpy.inf])[0] for point in points])

    return objective


def _package(name: str) -> Any:
    return importlib.import_module(name)
