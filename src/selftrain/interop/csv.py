"""A plain table: CSV, TSV, JSON lines or Parquet, with a label for each text."""

from __future__ import annotations

from pathlib import Path

from selftrain.data.columns import label_column, name_of
from selftrain.data.delimited import Row
from selftrain.data.files import Records, records
from selftrain.data.write import write_table
from selftrain.interop.tool import LABEL, PAIR, TEXT, UID, AnnotatedRow, Outgoing, Suggestion, Tool

NUMBERS = {"role": str, "round": int, "confidence": float, "certainty": float}


def write(path: Path, out: Outgoing) -> None:
    """Write a row for each text; the probability of a class is empty where it is unknown."""
    texts = (TEXT, PAIR) if out.pair else (TEXT,)
    kinds = {**NUMBERS, **{f"p_{label}": float for label in out.labels}}
    names = (UID, *texts, LABEL, *kinds)
    write_table(path, names, (cells_of(row, out) for row in out.rows), kinds=kinds)


def cells_of(row: Suggestion, out: Outgoing) -> list[object]:
    """The cells of a row, in the order of the columns."""
    numbers = row.numbers()
    shares: list[float | None] = [round(p, 6) for p in row.probabilities]
    return [
        row.example.uid,
        *row.texts().values(),
        row.label,
        *(numbers.get(name) for name in NUMBERS),
        *(shares or [None] * len(out.labels)),
    ]


def open_table(path: Path) -> Records:
    """The rows of a table, by the ending of its name."""
    return records(path)


def annotated(found: Records, number: int, row: Row, label: str | None) -> AnnotatedRow:
    """The fields of a row and its label; an empty one is none."""
    value = row.get(label_column(found, label))
    if isinstance(value, list | dict):
        hint = "for a list of labels: --from doccano"
        raise found.error(number, f"the label is {value!r:.40}; expected one name", hint)
    name = name_of(value)
    return AnnotatedRow(row, (name,) if name else ())


TOOL = Tool(
    title="a table",
    endings=(".csv", ".tsv", ".jsonl", ".parquet"),
    write=write,
    open=open_table,
    row=annotated,
)
