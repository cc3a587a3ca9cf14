"""The one CSV writer of tables and figures."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import TextIO

from selftrain.escape import harmless


def write_delimited(
    file: TextIO, names: Sequence[str], rows: Iterable[Sequence[object]], delimiter: str = ","
) -> None:
    """Write rows as CSV to an open file; no text starts like a formula of a spreadsheet."""
    writer = csv.writer(
        file, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
    )
    writer.writerow(map(harmless, names))
    writer.writerows(map(harmless, row) for row in rows)
