"""Write a table of cells as CSV, TSV, JSON lines or Parquet.

Cells may hold text from anyone. In CSV and TSV no cell starts like a formula of a spreadsheet, and
on a terminal no cell sends control codes. JSON lines and Parquet hold every text exactly.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

from selftrain.data.files import DELIMITERS, JSON_LINES, PARQUET
from selftrain.disk import replacing
from selftrain.errors import DataError
from selftrain.escape import harmless, printable

Cells = Sequence[object]
Writer = Callable[[Path, Sequence[str], Iterable[Cells]], None]


def write_table(path: Path, names: Sequence[str], rows: Iterable[Cells]) -> None:
    """Write rows under the names of their columns; the ending of the path gives the format.

    The file appears when it is complete, and an error leaves an old one as it was.
    """
    write = _writer(path)
    with replacing(path.resolve()) as temporary:  # resolved: a link stays, its target is replaced
        write(temporary, names, rows)


def write_delimited(
    file: TextIO, names: Sequence[str], rows: Iterable[Cells], delimiter: str = ","
) -> None:
    """Write rows as CSV or TSV to an open file, such as stdout."""
    # Every text in quotes: by default, Python before 3.13 writes a bare carriage return without
    # them, and a reader would take what follows for a new row.
    writer = csv.writer(
        file, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
    )
    safe_cell = _printable_cell if file.isatty() else harmless
    writer.writerow(map(safe_cell, names))
    writer.writerows(map(safe_cell, row) for row in rows)


def _writer(path: Path) -> Writer:
    suffix = path.suffix.lower()
    if suffix in DELIMITERS:
        return partial(_write_csv, DELIMITERS[suffix])
    if suffix in JSON_LINES:
        return _write_json_lines
    if suffix in PARQUET:
        return _write_parquet
    raise DataError(
        f"{path} ends in `{path.suffix}`; expected .csv, .tsv, .jsonl or .parquet",
        "choose one of these endings: -o table.csv",
    )


def _write_csv(delimiter: str, path: Path, names: Sequence[str], rows: Iterable[Cells]) -> None:
    with path.open("x", encoding="utf-8", newline="") as file:
        write_delimited(file, names, rows, delimiter)


def _write_json_lines(path: Path, names: Sequence[str], rows: Iterable[Cells]) -> None:
    with path.open("x", encoding="utf-8") as file:
        for row in rows:
            record = dict(zip(names, row, strict=True))
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_parquet(path: Path, names: Sequence[str], rows: Iterable[Cells]) -> None:
    import pyarrow
    import pyarrow.parquet

    records = [dict(zip(names, row, strict=True)) for row in rows]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path)


def _printable_cell(cell: object) -> object:
    safe = harmless(cell)
    return printable(safe) if isinstance(safe, str) else safe
