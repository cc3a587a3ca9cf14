"""Answers for new texts, row by row in the order they came.

Each has the label, the probability of every class, and the certainty: how far dropout passes
agree (1: fully). A row is found again by its id, or else by its number; its text is repeated
only when asked for.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from selftrain.data.files import DELIMITERS, JSON_LINES, PARQUET
from selftrain.data.read import Table
from selftrain.data.split import check_kind
from selftrain.disk import replacing
from selftrain.errors import DataError
from selftrain.escape import harmless, printable

if TYPE_CHECKING:
    from selftrain.model.classifier import Classifier
    from selftrain.training.machine import Machine

Answer = tuple[object, ...]
Writer = Callable[[Path, Sequence[str], Iterable[Answer]], None]


def predict(
    model: Classifier,
    table: Table,
    out: str | Path | None = None,
    *,
    passes: int = 10,
    on: Machine,
    texts: bool = False,
) -> None:
    """Write an answer for every row: CSV, TSV, JSON lines or Parquet by name, CSV to stdout.

    The file appears when it is whole. ``texts`` repeats each text beside its answer.
    """
    check_kind(table.examples, pair=model.task.pair, who="the model")
    names = columns(model, table, texts=texts)
    rows = answers(model, table, passes=passes, on=on, texts=texts)
    if out is None:
        _write_delimited(sys.stdout, names, rows)
        return
    write = _writer(Path(out))
    with replacing(Path(out).resolve()) as path:  # resolved: a link stays, its target is replaced
        write(path, names, rows)


def columns(model: Classifier, table: Table, *, texts: bool = False) -> list[str]:
    """The names of an answer's parts, the id's first, which keeps the name it came with."""
    ours = ["label", *(f"p_{label}" for label in model.labels), "certainty"]
    if texts:
        ours += ["text", "pair"] if model.task.pair else ["text"]
    first = table.id_column or "row"
    return ["id" if first in ours else first, *ours]


def answers(
    model: Classifier, table: Table, *, passes: int, on: Machine, texts: bool = False
) -> Iterator[Answer]:
    """One answer a row, in the order of ``columns``.

    Label and probabilities come from the pass without dropout, the one ``evaluate`` scores. The
    others differ in the last layer alone, which was about as telling as all of them and far cheaper
    (docs/performance.md); where all layers are one, they differ in all. The certainty of a row
    varies a little with the rows around it, because dropout is drawn for a batch at a time. A model
    without dropout never wavers: one pass tells all, and it is certain.
    """
    from selftrain.method.scores import certainty
    from selftrain.model.build import with_dropout_in
    from selftrain.model.surgery import dropout_rates
    from selftrain.training.annotate import annotate

    number = 0
    wavering = with_dropout_in(model, "last")
    above = (part for part in wavering.children() if part is not wavering.trunk)
    told = passes if any(any(dropout_rates(part)) for part in above) else 1
    for examples, votes in annotate(wavering, table.examples, told, seed=0, on=on):
        best = votes.plain.argmax(1).tolist()
        parts = zip(examples, best, votes.plain.tolist(), certainty(votes).tolist(), strict=True)
        for example, c, p, settled in parts:
            number += 1
            name = number if table.id_column is None else example.uid
            figures = (round(value, 6) for value in (*p, settled))
            sides = (example.text, example.pair) if model.task.pair else (example.text,)
            yield (name, model.labels[c], *figures, *(sides if texts else ()))


# ── files ────────────────────────────────────────────────────────────────────────────────────


def _writer(out: Path) -> Writer:
    suffix = out.suffix.lower()
    if suffix in DELIMITERS:
        return partial(_write_csv, DELIMITERS[suffix])
    if suffix in JSON_LINES:
        return _write_json_lines
    if suffix in PARQUET:
        return _write_parquet
    raise DataError(
        f"{out} ends in `{out.suffix}`; expected .csv, .tsv, .jsonl or .parquet",
        "-o answers.csv",
    )


def _write_csv(delimiter: str, path: Path, names: Sequence[str], rows: Iterable[Answer]) -> None:
    with path.open("x", encoding="utf-8", newline="") as file:
        _write_delimited(file, names, rows, delimiter)


def _write_delimited(
    file: TextIO, names: Sequence[str], rows: Iterable[Answer], delimiter: str = ","
) -> None:
    # Every text in quotes: left to itself, Python before 3.13 lets a bare carriage return through,
    # and the rest of that text would begin a row of its own.
    writer = csv.writer(
        file, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
    )
    clean = _shown if file.isatty() else harmless
    writer.writerow(map(clean, names))
    writer.writerows(map(clean, row) for row in rows)


def _shown(cell: object) -> object:
    """A harmless cell, without the codes that a terminal would obey."""
    safe = harmless(cell)
    return printable(safe) if isinstance(safe, str) else safe


def _write_json_lines(path: Path, names: Sequence[str], rows: Iterable[Answer]) -> None:
    with path.open("x", encoding="utf-8") as file:
        for row in rows:
            line = dict(zip(names, row, strict=True))
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _write_parquet(path: Path, names: Sequence[str], rows: Iterable[Answer]) -> None:
    import pyarrow
    import pyarrow.parquet

    lines = [dict(zip(names, row, strict=True)) for row in rows]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(lines), path)
