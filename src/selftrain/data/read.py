"""Read labelled rows, a pool, or new texts to classify, from files or from memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from selftrain.data.columns import (
    check_look_alikes,
    id_cell,
    id_column,
    id_of,
    label_cell,
    label_column,
    stray_label_column,
    text_cell,
    text_columns,
    text_of,
)
from selftrain.data.delimited import Row
from selftrain.data.files import Parts, Records, parts
from selftrain.data.pool import Fields, HashSet, Pool, clean_pool, hash_of
from selftrain.data.rows import Example, Gap, Labelled, Notes, is_empty, uid_of
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
    found = parts(source, [("text", "label"), ("text", "pair", "label")], how.format)
    readers, column = _readers_of(found, columns), label_column(found.first, columns.label)
    labelled = []
    for reader in readers:
        rows = reader.records
        for number, row in rows:
            example = reader.example(number, row)
            if is_empty(example):
                raise rows.error(number, "the text is empty", "fill it in, or delete the row")
            label = label_cell(rows, number, row, column, keep_na=how.keep_na)
            _note_changed(row[column], label, notes)
            labelled.append(Labelled(example, label))
    if not how.exact_labels:
        check_look_alikes(found.name, dict.fromkeys(row.label for row in labelled))
    reader = readers[0]
    if _ids_repeat(readers, [row.example for row in labelled], columns, notes):
        reader = replace(reader, id=None)
        labelled = [replace(row, example=_named_by_text(row.example)) for row in labelled]
    _note(found, reader, notes, f", label from `{column}`")
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
    return clean_pool(open_pool(sources, columns, how, notes=notes), notes=notes)


def open_pool(
    sources: Sequence[object],
    columns: Columns = Columns(),
    how: Reading = Reading(),
    *,
    notes: Notes,
) -> PoolFiles:
    """The rows of a pool before they are read: who cleans them reads all of them, once."""
    named = replace(columns, text=columns.pool_text or columns.text)
    readers: list[_Reader] = []
    pairs = set()
    for source in sources:
        found = parts(source, [("text", "pair")], how.format)
        stray = stray_label_column(found.first, columns.label)
        if stray is not None:
            notes.add(f"label column `{stray}` in the pool ignored")
        opened = _readers_of(found, named, "--pool-text")
        _note(found, opened[0], notes)
        readers += opened
        pairs.add(opened[0].pair is None)
    if len(pairs) > 1:
        raise DataError(
            "some files of the pool hold pairs of texts and others single texts",
            "name the columns that all files share: --text COLUMN --pair COLUMN",
        )
    return PoolFiles(tuple(readers), columns)


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
    found = parts(source, [("text", "pair")], how.format)
    readers = _readers_of(found, columns)
    if counted is not None:
        return Texts(_named_by(readers, counted.id_column), counted.rows)
    rows, repeated = _count(readers, notes)
    same_id = (each for each in _examples(readers) if hash_of(each.uid) in repeated)
    if len(repeated) and _ids_repeat(readers, same_id, columns, notes):
        readers = [*_named_by(readers, None)]
    _note(found, readers[0], notes)
    return Texts(tuple(readers), rows)


def _count(readers: Sequence[_Reader], notes: Notes) -> tuple[int, HashSet]:
    """Read all rows once: their number, and the hashes of ids that stand on several of them."""
    seen, repeated = HashSet(), HashSet()
    rows = empty = 0
    has_ids = readers[0].id is not None
    for example in _examples(readers):
        rows += 1
        empty += is_empty(example)
        if has_ids:
            id = hash_of(example.uid)
            (repeated if id in seen else seen).add(id)
    notes.add("empty texts answered like any other", empty)
    return rows, repeated


@dataclass(frozen=True, slots=True)
class Texts:
    """The examples of some files in order, read from them each time and never all in memory."""

    readers: tuple[_Reader, ...]
    rows: int

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[Example]:
        return islice(_examples(self.readers), self.rows)

    @property
    def id_column(self) -> str | None:
        """The column of the uids; None where they are hashes."""
        return self.readers[0].id

    def parts(self, places: Iterable[range]) -> Iterator[Table]:
        """The rows at these ascending places, counted from 0: each part is read to its end.

        The files are read once. Of a row between two parts no cell is checked and no hash is taken.
        """
        gap = Gap()
        stream = _examples(self.readers, gap)
        passed = 0
        for place in places:
            gap.rows = place.start - passed
            yield Table(islice(stream, len(place)), self.id_column, len(place), place.start)
            passed = place.stop


def _examples(readers: Iterable[_Reader], gap: Gap | None = None) -> Iterator[Example]:
    """The examples of some files, one file after the other, without those of a gap."""
    return (
        Example(uid or uid_of(text, pair), text, pair)
        for reader in readers
        for uid, text, pair in reader.fields(gap)
    )


def _named_by(readers: Iterable[_Reader], id: str | None) -> tuple[_Reader, ...]:
    """The same files with their rows named by this column, or by their texts."""
    return tuple(replace(reader, id=id) for reader in readers)


def _readers_of(found: Parts, columns: Columns, flag: str = "--text") -> list[_Reader]:
    """A reader for each file of a source, by the columns of the first."""
    text, pair = text_columns(found.first, columns.text, columns.pair, flag)
    id = id_column(found.first, columns.id)
    return [_Reader(each, text, pair, id) for each in found.files]


def _note(found: Parts, reader: _Reader, notes: Notes, more: str = "") -> None:
    """Note which columns of a source were taken, and what else was found out about it."""
    pair = "" if reader.pair is None else f" and `{reader.pair}`"
    id = "" if reader.id is None else f", id from `{reader.id}`"
    notes.columns.append(f"{found.name}: text from `{reader.text}`{pair}{more}{id}")
    if found.remark:
        notes.remarks.append(f"{found.name}: {found.remark}")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns records into examples, again and again: the source of a pool."""

    records: Records
    text: str
    pair: str | None
    id: str | None

    def fields(self, gap: Gap | None = None) -> Iterator[Fields]:
        """The fields of each example; with cells that are plain text, no other work is done."""
        records, text, pair, id = self.records, self.text, self.pair, self.id
        gap = gap or Gap()
        if records.cells is None:
            for number, row in gap.after(records):
                yield self._fields_of(number, row)
            return
        columns = [text, *filter(None, (pair, id))]
        for number, cells in records.cells(columns, gap):
            first = cells[0]
            if type(first) is not str:
                first = text_of(records, number, text, first)
            if len(cells) == 1:
                yield None, first, None
                continue
            second = None if pair is None else text_of(records, number, pair, cells[1])
            uid = None if id is None else id_of(records, number, id, cells[-1])
            yield uid or None, first, second

    def example(self, number: int, row: Row) -> Example:
        """The example of a row."""
        uid, text, pair = self._fields_of(number, row)
        return Example(uid or uid_of(text, pair), text, pair)

    def _fields_of(self, number: int, row: Row) -> Fields:
        text = text_cell(self.records, number, row, self.text)
        pair = None if self.pair is None else text_cell(self.records, number, row, self.pair)
        id = "" if self.id is None else id_cell(self.records, number, row, self.id)
        return id or None, text, pair


@dataclass(frozen=True, slots=True)
class PoolFiles:
    """The examples of the files of a pool, one file after the other, as they stand there."""

    readers: tuple[_Reader, ...]
    columns: Columns

    def __iter__(self) -> Iterator[Example]:
        return _examples(self.readers)

    def fields(self) -> Iterator[Fields]:
        """The fields of each example."""
        return (fields for reader in self.readers for fields in reader.fields())

    def with_unique_uids(self, notes: Notes) -> PoolFiles:
        """The same if its ids name rows, else its rows named by their texts; reads all of it."""
        if not _ids_repeat(self.readers, self, self.columns, notes):
            return self
        return replace(self, readers=_named_by(self.readers, None))


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
                names = " and ".join(reader.records.name for reader in readers[:3])
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
