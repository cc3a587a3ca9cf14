"""From files to examples: gold rows, a pool, or texts to answer."""

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

# ── reading ──


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column holds what; None is found by the usual names."""

    text: str | None = None
    pair: str | None = None
    label: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """The rows to be answered by ``predict``: all of them, in order, empty texts too."""

    examples: tuple[Example, ...]
    id_column: str | None
    """The column the uids come from; None where they are hashes."""


def read_labelled(source: object, columns: Columns = Columns(), *, notes: Notes) -> list[Labelled]:
    """Gold rows, in order: from a path, a data frame, dicts, or (text, label) tuples.

    Rows are never dropped here, because a test set must keep its size: a row without a text or
    a label is an error.
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
    """The pool: from a path, a data frame, dicts, strings, or (text, pair) tuples."""
    rows = records(source, [("text", "pair")])
    stray = stray_label_column(rows, columns.label)
    if stray is not None:
        notes.add(f"label column `{stray}` in the pool ignored")
    return clean_pool(_Reader.of(rows, columns), notes=notes)


def read_texts(source: object, columns: Columns = Columns(), *, notes: Notes) -> Table:
    """New texts to answer; a row is never dropped, so that answers can be laid beside them."""
    rows = records(source, [("text", "pair")])
    reader = _Reader.of(rows, columns)
    found = tuple(reader)
    notes.add("empty texts answered like any other", sum(map(is_empty, found)))
    return Table(found, reader.id)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Rows to examples, as often as asked: the source of a pool."""

    rows: Records
    text: str
    pair: str | None
    id: str | None

    @classmethod
    def of(cls, rows: Records, columns: Columns) -> _Reader:
        text, pair = text_columns(rows, columns.text, columns.pair)
        return cls(rows, text, pair, id_column(rows, columns.id))

    def __iter__(self) -> Iterator[Example]:
        return (self.example(number, row) for number, row in self.rows)

    def example(self, number: int, row: Row) -> Example:
        text = text_cell(self.rows, number, row, self.text)
        pair = None if self.pair is None else text_cell(self.rows, number, row, self.pair)
        named = "" if self.id is None else id_cell(self.rows, number, row, self.id)
        return Example(named or uid_of(text, pair), text, pair)


def _check_ids(found: Iterable[Example], name: str) -> None:
    ids = Counter(each.uid for each in found if each.uid != uid_of(each.text, each.pair))
    for uid, times in ids.most_common(1):
        if times > 1:
            raise DataError(
                f"{name}: id `{uid}` stands {times} times; ids must be unique",
                "make them unique, or remove the column: texts are then named by their hash",
            )
