"""Write a table of cells as CSV, TSV, JSON lines or Parquet.

Every text is written exactly, so that it can be joined and learnt from again. Texts may come from
anyone: on a terminal none sends control codes, and on request no cell of a CSV or TSV file starts
like a formula of a spreadsheet.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TextIO

from selftrain.data.files import DELIMITERS, JSON_LINES, PARQUET
from selftrain.disk import replacing
from selftrain.errors import DataError
from selftrain.escape import harmless, printable

Cells = Sequence[object]
Writer = Callable[[Path, Sequence[str], Iterable[Cells]], None]
Kinds = Mapping[str, type[str] | type[int] | type[float]]
NO_KINDS: Kinds = MappingProxyType({})

BATCH = 1024  # rows turned into columns together
GROUP_BYTES = 2**24  # of a row group of Parquet, before it is compressed: no more are in memory


def write_table(
    path: Path,
    names: Sequence[str],
    rows: Iterable[Cells],
    *,
    kinds: Kinds = NO_KINDS,
    excel_safe: bool = False,
) -> None:
    """Write rows under the names of their columns; the ending of the path gives the format.

    The file appears when it is complete, and an error leaves an old one as it was. ``kinds`` are
    the types of columns that may be empty in many rows: Parquet guesses a type from the first.
    ``excel_safe`` guards the cells of a CSV or TSV file, which then no longer hold every text
    exactly.
    """
    write = check_format(path, kinds=kinds, excel_safe=excel_safe)
    with replacing(path.resolve()) as temporary:  # resolved: a link stays, its target is replaced
        write(temporary, names, rows)


def write_delimited(
    file: TextIO,
    names: Sequence[str],
    rows: Iterable[Cells],
    delimiter: str = ",",
    *,
    excel_safe: bool = False,
) -> None:
    """Write rows as CSV or TSV to an open file, such as stdout."""
    # Every text in quotes: by default, Python before 3.13 writes a bare carriage return without
    # them, and a reader would take what follows for a new row. Also the names, which tells a
    # reader of tabs that quotes are no part of a text.
    quoting: Literal[1, 2] = csv.QUOTE_ALL if excel_safe else csv.QUOTE_NONNUMERIC
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=quoting)
    shown = partial(_cell, excel_safe=excel_safe, terminal=file.isatty())
    writer.writerow(map(shown, names))
    writer.writerows(map(shown, row) for row in rows)


def check_format(path: Path, *, kinds: Kinds = NO_KINDS, excel_safe: bool = False) -> Writer:
    """The writer of a format, by the ending of a path; an error where there is none."""
    suffix = path.suffix.lower()
    if suffix in DELIMITERS:
        return partial(_write_csv, DELIMITERS[suffix], excel_safe)
    if excel_safe:
        raise DataError(
            f"--excel-safe guards CSV and TSV files; {path} is none", "leave out --excel-safe"
        )
    if suffix in JSON_LINES:
        return _write_json_lines
    if suffix in PARQUET:
        return partial(_write_parquet, kinds)
    raise DataError(
        f"{path} ends in `{path.suffix}`; expected .csv, .tsv, .jsonl or .parquet",
        "leave out -o to print"
        if str(path) == "-"
        else "choose one of these endings: -o table.csv",
    )


def _write_csv(
    delimiter: str, excel_safe: bool, path: Path, names: Sequence[str], rows: Iterable[Cells]
) -> None:
    with path.open("x", encoding="utf-8", newline="") as file:
        write_delimited(file, names, rows, delimiter, excel_safe=excel_safe)


def _write_json_lines(path: Path, names: Sequence[str], rows: Iterable[Cells]) -> None:
    with path.open("x", encoding="utf-8") as file:
        for row in rows:
            record = dict(zip(names, row, strict=True))
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_parquet(kinds: Kinds, path: Path, names: Sequence[str], rows: Iterable[Cells]) -> None:
    import pyarrow
    import pyarrow.parquet

    batches = _record_batches(kinds, names, rows)
    with path.open("xb") as file:  # an open file: pyarrow would take `a:b` for an address
        first = next(batches, None) or pyarrow.RecordBatch.from_pylist([])
        with pyarrow.parquet.ParquetWriter(file, first.schema) as writer:
            group, size = [first], first.nbytes
            for batch in batches:
                if size > GROUP_BYTES:
                    writer.write_table(pyarrow.Table.from_batches(group))
                    group, size = [], 0
                group.append(batch)
                size += batch.nbytes
            writer.write_table(pyarrow.Table.from_batches(group))


def _record_batches(kinds: Kinds, names: Sequence[str], rows: Iterable[Cells]) -> Iterator[Any]:
    """The rows in columns, some at a time; the first of them decide the types not given."""
    import pyarrow

    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    given = {name: types[kind] for name, kind in kinds.items()}
    stream, schema = iter(rows), None
    while some := [dict(zip(names, row, strict=True)) for row in islice(stream, BATCH)]:
        batch = pyarrow.RecordBatch.from_pylist(some, schema=schema)
        if schema is None:  # a column that is empty so far may hold a text later
            guessed = (
                pyarrow.string() if pyarrow.types.is_null(t) else t for t in batch.schema.types
            )
            schema = pyarrow.schema({**dict(zip(names, guessed, strict=True)), **given})
            batch = batch.cast(schema)
        yield batch


def _cell(cell: object, *, excel_safe: bool, terminal: bool) -> object:
    safe = harmless(cell) if excel_safe else cell
    return printable(safe) if terminal and isinstance(safe, str) else safe
