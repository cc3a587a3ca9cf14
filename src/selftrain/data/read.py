"""Read labelled rows, a pool, or new texts to classify, from a file or from memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from selftrain.data.columns import (
    id_cell,
    id_column,
    label_cell,
    label_column,
    stray_label_column,
    text_cell,
    text_columns,
)
from selftrain.data.files import Records, Row, records
from selftrain.data.pool import Pool, clean_pool
from selftrain.data.rows import Example, Labelled, Notes, is_empty, uid_of
from selftrain.errors import DataError


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns; None means: find it by the usual names."""

    text: str | None = None
    """The column of the text; left out, a column with one of the usual names."""
    pair: str | None = None
    """The column of the second text, for pairs."""
    label: str | None = None
    """The column of the label; left out, a column with one of the usual names."""
    id: str | None = None
    """The column that names each row; left out, a row is named by a hash of its text."""


@dataclass(frozen=True, slots=True)
class Table:
    """The rows that ``predict`` classifies: all of them, in order, even empty texts."""

    examples: tuple[Example, ...]
    id_column: str | None
    """The column of the uids; None where they are hashes."""


def read_labelled(source: object, columns: Columns = Columns(), *, notes: Notes) -> list[Labelled]:
    """Labelled rows in order, from a path, a data frame, dicts, or (text, label) tuples.

    No row is dropped, because a test set must keep its size: a row without a text or a label is
    an error.
    """
    rows = records(source, [("text", "label"), ("text", "pair", "label")])
    reader, column = _Reader.of(rows, columns), label_column(rows, columns.label)
    labelled = []
    for number, row in rows:
        example = reader.example(number, row)
        if is_empty(example):
            raise rows.error(number, "the text is empty", "fill it in, or delete the row")
        label = label_cell(rows, number, row, column)
        trimmed = isinstance(row[column], str) and row[column] != label
        notes.add("labels with blanks around them trimmed", int(trimmed))
        labelled.append(Labelled(example, label))
    _check_ids([row.example for row in labelled], rows.name)
    return labelled


def read_unlabelled(source: object, columns: Columns = Columns(), *, notes: Notes) -> Pool:
    """The pool, from a path, a data frame, dicts, strings, or (text, pair) tuples."""
    rows = records(source, [("text", "pair")])
    stray = stray_label_column(rows, columns.label)
    if stray is not None:
        notes.add(f"label column `{stray}` in the pool ignored")
    return clean_pool(_Reader.of(rows, columns), notes=notes)


def read_texts(source: object, columns: Columns = Columns(), *, notes: Notes) -> Table:
    """New texts to classify. No row is dropped, so answers and rows have the same order."""
    rows = records(source, [("text", "pair")])
    reader = _Reader.of(rows, columns)
    examples = tuple(reader)
    notes.add("empty texts answered like any other", sum(map(is_empty, examples)))
    return Table(examples, reader.id)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns records into examples, again and again: the source of a pool."""

    records: Records
    text: str
    pair: str | None
    id: str | None

    @classmethod
    def of(cls, records: Records, columns: Columns) -> _Reader:
        text, pair = text_columns(records, columns.text, columns.pair)
        return cls(records, text, pair, id_column(records, columns.id))

    def __iter__(self) -> Iterator[Example]:
        return (self.example(number, row) for number, row in self.records)

    def example(self, number: int, row: Row) -> Example:
        text = text_cell(self.records, number, row, self.text)
        pair = None if self.pair is None else text_cell(self.records, number, row, self.pair)
        id = "" if self.id is None else id_cell(self.records, number, row, self.id)
        return Example(id or uid_of(text, pair), text, pair)


def _check_ids(examples: Iterable[Example], name: str) -> None:
    ids = Counter(row.uid for row in examples if row.uid != uid_of(row.text, row.pair))
    for uid, times in ids.most_common(1):
        if times > 1:
            raise DataError(
                f"{name}: {times} rows have the id `{uid}`; ids must be unique",
                "make them unique, or remove the column: ids are then hashes of the texts",
            )
