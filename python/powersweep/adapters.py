"""Optimisers of other packages on a `Study`: Optuna, pymoo and SciPy. Each needs its package, which is imported where it is used.

A point that fails, or has no mean of a goal, gets no number of ours: a trial of Optuna fails, and pymoo and SciPy get infinity,
which loses every comparison. A warning names the failure.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._errors import UsageError
from ._study import Point, Range, Study
from ._values import Names, names, warn


def values(point: Point, goals: list[str]) -> list[float] | None:
    """The means of metrics of a point; None, and a warning, for a failed one and for one that lacks a mean."""
    if point.failure is not None:
        warn(f"the point {point.values} failed: {point.failure}")
        return None
    means = point.means
    _check(goals, list(means))
    found = [mean for name in goals if (mean := means[name]) is not None]
    if len(found) == len(goals):
        return found
    warn(f"the point {point.values} has no mean of {', '.join(name for name in goals if means[name] is None)}")
    return None


def costs(point: Point, minimise: Names = None, maximise: Names = None) -> list[float] | None:
    """The metrics of a point, with those to maximise negated; None, and a warning, for a failed one."""
    small, great = names(minimise), names(maximise)
    found = values(point, small + great)
    return found and found[: len(small)] + [-value for value in found[len(small) :]]


def _check(goals: list[str], metrics: list[str]) -> None:
    unknown = [name for name in goals if name not in metrics]
    if unknown:
        raise UsageError(f"`{unknown[0]}` is no metric of the study, which has {', '.join(metrics)}")
    if not goals:
        raise UsageError("there is no goal: name metrics by `minimise` or `maximise`")


def _goals(study: Study, minimise: Names, maximise: Names) -> list[str]:
    """The names of the goals, checked before anything is simulated."""
    goals = names(minimise) + names(maximise)
    _check(goals, study.metrics)
    return goals


# ---- Optuna


def optuna_study(study: Study, minimise: Names = None, maximise: Names = None, **options: Any) -> Any:
    """A study of Optuna, in memory, that has a trial for each point whose rows are there. `options`: of `create_study`."""
    optuna, goals = _package("optuna"), _goals(study, minimise, maximise)
    if options.keys() & {"direction", "directions"}:
        raise UsageError("`minimise` and `maximise` give the directions: leave out those of Optuna")
    made = optuna.create_study(directions=_directions(minimise, maximise), **options)
    for point in study.points(wait=True):
        chosen = {"design": point.design} if len(study.ranges) > 1 else {}
        spaces = {name: optuna.distributions.CategoricalDistribution(list(study.ranges)) for name in chosen}
        for of in study.ranges[point.design]:
            name = _name(study, point.design, of)
            chosen[name], spaces[name] = point.values[of.parameter], _distribution(of)
        found = values(point, goals)
        state = optuna.trial.TrialState.FAIL if found is None else optuna.trial.TrialState.COMPLETE
        made.add_trial(optuna.trial.create_trial(state=state, params=chosen, distributions=spaces, values=found))
    return made


def run_optuna(study: Study, optuna_study: Any, trials: int, minimise: Names = None, maximise: Names = None, at_once: int = 8) -> None:
    """Runs trials until the study of Optuna has `trials` trials: `at_once` at a time, each told when its point has ended."""
    failed, labels = _package("optuna").trial.TrialState.FAIL, list(study.ranges)
    goals, directions = _goals(study, minimise, maximise), _directions(minimise, maximise)
    if [of.name.lower() for of in optuna_study.directions] != directions:
        raise UsageError(f"the directions of Optuna's study are not {', '.join(directions)}, as `minimise` and `maximise` say")
    running: dict[int, Any] = {}
    while True:
        for _ in range(min(at_once - len(running), trials - len(optuna_study.trials))):
            trial = optuna_study.ask()
            label = trial.suggest_categorical("design", labels) if len(labels) > 1 else labels[0]
            chosen = {of.parameter: _suggested(trial, _name(study, label, of), of) for of in study.ranges[label]}
            (point,) = study.ask([chosen], design=label)
            running[id(point)] = trial, point
        if not running:
            return
        for point in study.tell():
            found = values(point, goals)
            optuna_study.tell(running.pop(id(point))[0], found, state=failed if found is None else None)


def _directions(minimise: Names, maximise: Names) -> list[str]:
    return ["minimize"] * len(names(minimise)) + ["maximize"] * len(names(maximise))


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
    goals = len(_goals(study, minimise, maximise))
    parameters = len(study.ranges[study._label(design)])

    class Asked(problem.Problem):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
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
    numpy, goals = _package("numpy"), _goals(study, minimise, maximise)
    if len(goals) > 1:
        raise UsageError(f"SciPy has one goal, not {', '.join(goals)}")
    study._label(design)

    def objective(x: Any) -> Any:
        rows = numpy.atleast_2d(numpy.asarray(x).T)
        points = study.evaluate([study.at(row, design=design) for row in rows], design=design)
        return numpy.array([(costs(point, minimise, maximise) or [numpy.inf])[0] for point in points])

    return objective


def _package(name: str) -> Any:
    return importlib.import_module(name)
