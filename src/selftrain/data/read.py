"""Read labelled rows, a pool, or new texts to classify, from files or from memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from selftrain.data.columns import (
    check_look_alikes,
    id_cell,
    id_column,
    label_cell,
    label_column,
    stray_label_column,
    text_cell,
    text_columns,
)
from selftrain.data.delimited import Row
from selftrain.data.files import Records, records
from selftrain.data.pool import HashSet, Pool, clean_pool, hash_of
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
    pool_text: str | None = None
    """The column of the text in the pool; left out, the same as in the other files."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read: their format, and which labels are classes."""

    format: str | None = None
    """Of a file whose name does not say it, and of standard input (csv)."""
    keep_na: bool = False
    """Whether `NA`, `NULL` and `None` are classes and not empty labels."""
    exact_labels: bool = False
    """Whether labels that differ only in case, or as `1` and `1.0`, are different classes."""


@dataclass(frozen=True, slots=True)
class Table:
    """The rows that ``predict`` classifies: all of them, in order, even empty texts."""

    examples: Iterable[Example]
    """Those of a part of a file can be read only once."""
    id_column: str | None
    """The column of the uids; None where they are hashes."""
    rows: int | None = None
    """How many there are; None where nobody has counted them."""
    first: int = 0
    """How many rows stand before them, where they are a part of a file."""


def read_labelled(
    source: object, columns: Columns = Columns(), how: Reading = Reading(), *, notes: Notes
) -> list[Labelled]:
    """Labelled rows in order, from a path, a data frame, dicts, or (text, label) tuples.

    No row is dropped, because a test set must keep its size: a row without a text or a label is
    an error.
    """
    rows = records(source, [("text", "label"), ("text", "pair", "label")], how.format)
    reader, column = _Reader.of(rows, columns), label_column(rows, columns.label)
    labelled = []
    for number, row in rows:
        example = reader.example(number, row)
        if is_empty(example):
            raise rows.error(number, "the text is empty", "fill it in, or delete the row")
        label = label_cell(rows, number, row, column, keep_na=how.keep_na)
        _note_changed(row[column], label, notes)
        labelled.append(Labelled(example, label))
    if not how.exact_labels:
        check_look_alikes(rows.name, dict.fromkeys(row.label for row in labelled))
    if _ids_repeat([reader], [row.example for row in labelled], columns, notes):
        reader = replace(reader, id=None)
        labelled = [replace(row, example=_named_by_text(row.example)) for row in labelled]
    reader.note(notes, f", label from `{column}`")
    return labelled


def read_unlabelled(
    source: object, columns: Columns = Columns(), how: Reading = Reading(), *, notes: Notes
) -> Pool:
    """The pool, from a path, a data frame, dicts, strings, or (text, pair) tuples."""
    return read_pool([source], columns, how, notes=notes)


def read_pool(
    sources: Sequence[object],
    columns: Columns = Columns(),
    how: Reading = Reading(),
    *,
    notes: Notes,
) -> Pool:
    """One pool from several sources, in their order."""
    named = replace(columns, text=columns.pool_text or columns.text)
    readers = []
    for source in sources:
        rows = records(source, [("text", "pair")], how.format)
        stray = stray_label_column(rows, columns.label)
        if stray is not None:
            notes.add(f"label column `{stray}` in the pool ignored")
        readers.append(_Reader.of(rows, named, "--pool-text"))
    if len({reader.pair is None for reader in readers}) > 1:
        raise DataError(
            "some files of the pool hold pairs of texts and others single texts",
            "name the columns that all files share: --text COLUMN --pair COLUMN",
        )
    has_ids = any(reader.id for reader in readers)  # else nothing is read for them
    if has_ids and _ids_repeat(readers, _Files(tuple(readers)), columns, notes):
        readers = [replace(reader, id=None) for reader in readers]
    for reader in readers:
        reader.note(notes)
    return clean_pool(_Files(tuple(readers)), notes=notes)


def read_texts(
    source: object, columns: Columns = Columns(), how: Reading = Reading(), *, notes: Notes
) -> Table:
    """New texts to classify. No row is dropped, so answers and rows have the same order.

    Every row is read and checked once, and none is kept: the examples are read again when they
    are answered.
    """
    texts = open_texts(source, columns, how, notes=notes)
    return Table(texts, texts.id_column, len(texts))


@dataclass(frozen=True, slots=True)
class Counted:
    """What reading all rows of a file has found out, so that they need not all be read again."""

    rows: int
    id_column: str | None


def open_texts(
    source: object,
    columns: Columns = Columns(),
    how: Reading = Reading(),
    *,
    notes: Notes,
    counted: Counted | None = None,
) -> Texts:
    """The same rows as a stream. What was ``counted`` before is believed, and nothing is noted."""
    reader = _Reader.of(records(source, [("text", "pair")], how.format), columns)
    if counted is not None:
        return Texts(replace(reader, id=counted.id_column), counted.rows)
    rows, repeated = _count(reader, notes)
    same_id = (example for example in reader if hash_of(example.uid) in repeated)
    if len(repeated) and _ids_repeat([reader], same_id, columns, notes):
        reader = replace(reader, id=None)
    reader.note(notes)
    return Texts(reader, rows)


def _count(reader: _Reader, notes: Notes) -> tuple[int, HashSet]:
    """Read all rows once: their number, and the hashes of ids that stand on several of them."""
    seen, repeated = HashSet(), HashSet()
    rows = empty = 0
    for example in reader:
        rows += 1
        empty += is_empty(example)
        if reader.id is not None:
            id = hash_of(example.uid)
            (repeated if id in seen else seen).add(id)
    notes.add("empty texts answered like any other", empty)
    return rows, repeated


@dataclass(frozen=True, slots=True)
class Texts:
    """The examples of a file in order, read from it each time and never all in memory."""

    reader: _Reader
    rows: int

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[Example]:
        return islice(self.reader, self.rows)

    @property
    def id_column(self) -> str | None:
        """The column of the uids; None where they are hashes."""
        return self.reader.id

    def parts(self, places: Iterable[range]) -> Iterator[Table]:
        """The rows at these ascending places, counted from 0: each part is read to its end.

        The file is read once. Of a row between two parts no cell is checked and no hash is taken.
        """
        stream, passed = iter(self.reader.records), 0
        for place in places:
            next(islice(stream, place.start - passed, place.start - passed), None)
            rows = islice(stream, len(place))
            examples = (self.reader.example(number, row) for number, row in rows)
            yield Table(examples, self.id_column, len(place), place.start)
            passed = place.stop


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns records into examples, again and again: the source of a pool."""

    records: Records
    text: str
    pair: str | None
    id: str | None

    @classmethod
    def of(cls, records: Records, columns: Columns, flag: str = "--text") -> _Reader:
        text, pair = text_columns(records, columns.text, columns.pair, flag)
        return cls(records, text, pair, id_column(records, columns.id))

    def __iter__(self) -> Iterator[Example]:
        return (self.example(number, row) for number, row in self.records)

    def example(self, number: int, row: Row) -> Example:
        text = text_cell(self.records, number, row, self.text)
        pair = None if self.pair is None else text_cell(self.records, number, row, self.pair)
        id = "" if self.id is None else id_cell(self.records, number, row, self.id)
        return Example(id or uid_of(text, pair), text, pair)

    def note(self, notes: Notes, more: str = "") -> None:
        """Note which columns were taken, and what else was found out about the file."""
        pair = "" if self.pair is None else f" and `{self.pair}`"
        id = "" if self.id is None else f", id from `{self.id}`"
        notes.columns.append(f"{self.records.name}: text from `{self.text}`{pair}{more}{id}")
        if self.records.remark:
            notes.remarks.append(f"{self.records.name}: {self.records.remark}")


@dataclass(frozen=True, slots=True)
class _Files:
    """The examples of several files, one file after the other."""

    readers: tuple[_Reader, ...]

    def __iter__(self) -> Iterator[Example]:
        return (example for reader in self.readers for example in reader)


def _note_changed(cell: object, label: str, notes: Notes) -> None:
    if isinstance(cell, str):
        trimmed = cell.strip()
        notes.add("labels with blanks around them trimmed", int(trimmed != cell))
        notes.add(
            "labels with invisible characters, or with accents in pieces, written plainly",
            int(trimmed != label),
        )


def _ids_repeat(
    readers: Sequence[_Reader], examples: Iterable[Example], columns: Columns, notes: Notes
) -> bool:
    """Whether some id names two texts: then a column that was only guessed holds no ids.

    A column that the user named must hold ids: an error.
    """
    ids, rows = HashSet(), HashSet()
    count = 0
    for example in examples:
        content = uid_of(example.text, example.pair)
        if example.uid == content:
            continue
        id, row = hash_of(example.uid), hash_of(f"{example.uid}\x1f{content}")
        if id in ids and row not in rows:
            count += 1
            if columns.id is not None:
                names = " and ".join(reader.records.name for reader in readers)
                raise DataError(
                    f"{names}: the id `{example.uid}` names two texts; ids must be unique",
                    "make them unique, or leave out --id: rows are then named by their texts",
                )
        ids.add(id)
        rows.add(row)
    column = next((reader.id for reader in readers if reader.id), "id")
    notes.add(f"rows with the `{column}` of another text: rows are named by their texts", count)
    return count > 0


def _named_by_text(example: Example) -> Example:
    return replace(example, uid=uid_of(example.text, example.pair))
