"""The numbers of a figure, in a file beside it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from selftrain.disk import replacing
from selftrain.escape import harmless

Row = dict[str, object]
"""A line of a data file, by the names of its columns."""


def write(path: Path, rows: Sequence[Row]) -> None:
    """The numbers of a figure as CSV; nothing stands where there is none."""
    with (
        replacing(path.resolve()) as temporary,  # resolved: a link stays, its target is replaced
        temporary.open("x", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(rows[0])
        writer.writerows(map(harmless, row.values()) for row in rows)
