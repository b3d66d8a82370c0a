import os
from collections.abc import Iterator, Sequence
from typing import Any, final

_Path = str | os.PathLike[str]

__all__ = [
    "Drawing",
    "Place",
    "Rows",
    "Study",
    "conformance",
    "exit_codes",
    "experiment_of",
    "experiment_of_text",
    "main",
    "manifest_text",
    "plot",
    "shaken_set",
    "simulate",
]

@final
class Rows:
    """Rows of a table in memory, with Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]:
        """The names of the columns, which an iteration over a data frame gives, too."""
    def __contains__(self, column: object, /) -> bool:
        """Whether there is a column of this name."""
    def __getitem__(self, column: str, /) -> list[Any]:
        """The values of a column."""
    def to_dicts(self) -> list[dict[str, Any]]:
        """Every row as a dict."""
    def to_polars(self) -> Any:
        """The rows as a `polars.DataFrame`. Needs polars."""
    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`. Needs pandas 3 and pyarrow."""

@final
class Drawing:
    def render(self, format: str) -> bytes: ...

@final
class Place:
    def __new__(
        cls, *, data: str | None, coordinator: str | None, access: _Path | None, insecure: bool
    ) -> Place: ...
    def results(
        self,
        experiment: str,
        *,
        table: str,
        columns: list[str],
        only: list[str],
        by: list[str],
        stats: list[str],
        ratio_to: list[str],
        pivot: str | None,
        sort: str | None,
        descending: bool,
        rows: int | None,
        skip: int,
    ) -> tuple[Rows, list[str]]: ...
    def preset(self, experiment: str, preset: str) -> tuple[Rows, list[str]]: ...
    def compare(
        self, a: str, b: str, *, table: str, columns: list[str], only: list[str], by: list[str], pool: list[str]
    ) -> tuple[Rows, list[str]]: ...
    def best(
        self,
        experiment: str,
        *,
        minimise: list[str],
        maximise: list[str],
        subject_to: list[str],
        by: list[str],
        only: list[str],
        top: int,
    ) -> tuple[Rows, list[str]]: ...
    def sensitivity(
        self,
        experiment: str,
        *,
        of: list[str],
        design: str | None,
        by: list[str],
        only: list[str],
        ranges: list[tuple[str, float, float]],
    ) -> tuple[Rows, list[str]]: ...
    def hypervolume(
        self,
        experiment: str,
        *,
        minimise: list[str],
        maximise: list[str],
        subject_to: list[str],
        by: list[str],
        only: list[str],
        reference: list[float],
    ) -> tuple[tuple[float | None, float | None, list[float]], list[str]]: ...
    def status(self, experiment: str) -> tuple[str, list[str]]: ...
    def pause(self, experiment: str, *, any_owner: bool) -> tuple[None, list[str]]: ...
    def resume(self, experiment: str, *, any_owner: bool) -> tuple[None, list[str]]: ...
    def cancel(self, experiment: str, *, any_owner: bool) -> tuple[None, list[str]]: ...

_Told = tuple[int | None, str, dict[str, Any], list[tuple[dict[str, Any], int, dict[str, float | None]]], str | None]

@final
class Study:
    def __new__(
        cls,
        *,
        manifest: str | None,
        text: str | None,
        metrics: list[str],
        only: list[str],
        data: str | None,
        coordinator: str | None,
        access: _Path | None,
        insecure: bool,
        traces: list[str],
        cache: _Path | None,
        slots: int | None,
        replace: bool,
        take_over: bool,
    ) -> Study: ...
    def name(self) -> str: ...
    def designs(
        self,
    ) -> list[tuple[str, list[tuple[str, str, tuple[Any, Any] | None, bool, list[Any] | None]]]]: ...
    def notes(self) -> tuple[None, list[str]]: ...
    def label(self, design: str | None) -> str: ...
    def at(self, design: str | None, coordinates: list[float]) -> dict[str, Any]: ...
    def ask(self, points: list[dict[str, Any]], design: str | None) -> int: ...
    def tell(self, least: int, limit_s: float | None) -> tuple[None, list[str]]: ...
    def take(self) -> list[_Told]: ...
    def count(self) -> int: ...
    def ended(self) -> tuple[list[_Told], list[str]]: ...
    def close(self) -> tuple[None, list[str]]: ...

def simulate(
    *,
    manifest: str | None,
    index: int | None,
    settings: list[tuple[str, str]],
    log: str | None,
    seed: int | None,
    scheduler: object | None,
    jobs: bool,
    series: bool,
    traces: list[str],
    cache: _Path | None,
    task_deadline: str | None,
    task_max_events: int | None,
    task_max_memory: str | None,
) -> tuple[tuple[dict[str, Any], Rows | None, Rows | None], list[str]]: ...
def conformance(
    scheduler: object, workloads: int, logs: list[str], traces: list[str]
) -> tuple[str, list[str]]: ...
def plot(
    place: Place,
    experiment: str,
    *,
    figure: str | None,
    preset: str | None,
    x: list[str],
    y: str | None,
    colour: str | None,
    facet: str | None,
    value: str | None,
    table: str | None,
    only: list[str],
    cap: str | None,
    between: tuple[float, float] | None,
    log: list[str],
    free: list[str],
    maximise: list[str],
    width: str | None,
    style: _Path | None,
) -> tuple[Drawing, list[str]]: ...
def manifest_text(manifest: dict[str, Any]) -> str: ...
def experiment_of(manifest: str) -> str: ...
def experiment_of_text(text: str) -> str: ...
def shaken_set(set: str) -> str: ...
def exit_codes() -> list[tuple[int, str]]: ...
def main(arguments: Sequence[str], program: str | None) -> int: ...
