"""The numbers of a figure, in a file beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from selftrain.data.write import write_delimited
from selftrain.disk import replacing

Row = dict[str, object]
"""A line of a data file, by the names of its columns."""


def write(path: Path, rows: Sequence[Row], *, excel_safe: bool = False) -> None:
    """Write the numbers of a figure as CSV; a missing number is an empty field."""
    with (
        replacing(path.resolve()) as temporary,  # resolved: a link stays, its target is replaced
        temporary.open("x", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        lines = (list(row.values()) for row in rows)
        write_delimited(file, list(rows[0]), lines, excel_safe=excel_safe)
