"""Python values as the arguments of calls, and notes of calls as warnings."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from ._errors import PowersweepWarning, UsageError

T = TypeVar("T")
P = ParamSpec("P")
Path = str | os.PathLike[str]
Paths = Path | Iterable[Path] | None
Names = str | Iterable[str] | None
Where = str | Mapping[str, Any] | Iterable[str] | None


def options(**given: Any) -> list[str]:
    """An option of the command line for each keyword: None and False give none, True a flag, several values the option several times.

    >>> options(by=["seed", "policy"], descending=True, rows=3, sort=None)
    ['--by=seed', '--by=policy', '--descending', '--rows=3']
    """
    made = []
    for name, value in given.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            made.append(flag)
        else:
            values = [value] if isinstance(value, (str, os.PathLike)) or not isinstance(value, Iterable) else value
            made.extend(f"{flag}={text(one)}" for one in values)
    return made


def names(given: Names) -> list[str]:
    """Names, of which a text may have several.

    >>> names("seed, policy"), names(["seed", "policy"]), names(None)
    (['seed', 'policy'], ['seed', 'policy'], [])
    """
    several = [given] if isinstance(given, str) else [] if given is None else list(given)
    wrong = [one for one in several if not isinstance(one, str)]
    if wrong:
        raise TypeError(f"expected a name, not {wrong[0]!r}")
    return [name.strip() for one in several for name in one.split(",")]


def path(given: Path | None) -> str | None:
    """A path or URL as text."""
    return None if given is None else os.fspath(given)


def paths(given: Paths) -> list[str]:
    """Paths as texts.

    >>> import pathlib
    >>> paths(pathlib.Path("logs")), paths(["a", "b"]), paths(None)
    (['logs'], ['a', 'b'], [])
    """
    several = [given] if isinstance(given, (str, os.PathLike)) else [] if given is None else given
    return [os.fspath(one) for one in several]


def alone(name: str, **others: Any) -> None:
    """Refuses keywords beside one that has no use for them."""
    given = [other for other, value in others.items() if value is not None and value is not False]
    if given:
        raise UsageError(f"`{name}` cannot be used with `{'`, `'.join(given)}`")


def conditions(where: Where) -> list[str]:
    """Conditions of rows. A mapping gives equalities; None stands for rows without a value.

    >>> conditions({"policy": "easy", "wq_threshold": float("inf"), "log": None})
    ['policy=easy', 'wq_threshold=unlimited', 'log=']
    >>> conditions({"policy": "easy, sjf"})
    ['policy="easy, sjf"']
    >>> conditions("bsld_mean <= 5")
    ['bsld_mean <= 5']
    """
    if where is None:
        return []
    if isinstance(where, str):
        return [where]
    if isinstance(where, Mapping):
        # A comma in quotes does not end a condition.
        quotes = {column: '"' if isinstance(value, str) and "," in value else "" for column, value in where.items()}
        return [f"{column}={quotes[column]}{text(value)}{quotes[column]}" for column, value in where.items()]
    return list(where)


def text(value: Any) -> str:
    """A value as in a condition, a setting or an option.

    >>> text(True), text(2.5), text(float("inf")), text([1, 2]), text(None)
    ('true', '2.5', 'unlimited', '[1,2]', '')
    """
    if value is None:
        return ""
    if hasattr(value, "tolist"):
        # A number or an array of NumPy.
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "unlimited" if value == float("inf") else repr(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, (list, tuple)):
        return f"[{','.join(text(item) for item in value)}]"
    return str(value)


def native(function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    """Calls a function of the native module."""
    try:
        return function(*arguments, **keywords)
    except OverflowError as error:
        raise UsageError(f"a number is too small or too great: {error}") from error


def call(function: Callable[P, tuple[T, list[str]]], *arguments: P.args, **keywords: P.kwargs) -> T:
    """Calls a function of the native module, and turns the notes of the call into warnings."""
    result, notes = native(function, *arguments, **keywords)
    for note in notes:
        warn(note)
    return result


def warn(note: str) -> None:
    """Warns at the line that called this package."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(f"{__package__}."):
        level, frame = level + 1, frame.f_back
    warnings.warn(note, PowersweepWarning, stacklevel=level)
