from collections.abc import Sequence
from typing import Any, final

__all__ = [
    "Drawing",
    "Rows",
    "conformance",
    "exit_codes",
    "experiment_of",
    "experiment_of_text",
    "main",
    "manifest_text",
    "plot",
    "results",
    "simulate",
    "status",
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

def simulate(
    options: Sequence[str], scheduler: Any, jobs: bool, series: bool
) -> tuple[tuple[dict[str, Any], Rows | None, Rows | None], list[str]]: ...
def conformance(options: Sequence[str], scheduler: Any) -> tuple[str, list[str]]: ...
def results(options: Sequence[str]) -> tuple[Rows, list[str]]: ...
def status(options: Sequence[str]) -> tuple[str, list[str]]: ...
def plot(options: Sequence[str]) -> tuple[Drawing, list[str]]: ...
def manifest_text(manifest: dict[str, Any]) -> str: ...
def experiment_of(manifest: str) -> str: ...
def experiment_of_text(text: str) -> str: ...
def exit_codes() -> list[tuple[int, str]]: ...
def main(arguments: Sequence[str], program: str | None) -> int: ...
