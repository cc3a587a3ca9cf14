"""What we learn from: examples, labels, splits and lessons, and reading them from files.

An ``Example`` has no label and a ``Labeled`` has one, so a pool cannot leak what it was
never given: the type of the pool has no field for it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from selftrain.data.columns import (
    id_cell,
    id_column,
    label_cell,
    label_column,
    stray_label_column,
    text_cell,
    text_columns,
)
from selftrain.data.files import Records, Row, closest, listing, records
from selftrain.errors import DataError


@dataclass(frozen=True, slots=True)
class Example:
    """One text, or a pair of texts, with a name of its own and no label."""

    uid: str
    """The id column, else a hash of text and pair; never a row number."""
    text: str
    pair: str | None = None


@dataclass(frozen=True, slots=True)
class Labeled:
    """An example with a label: gold, or given by a teacher."""

    example: Example
    label: str
    weight: float = 1.0
    soft: tuple[float, ...] | None = None
    """The teacher's probability for each class, in the task's order; None for gold."""


@dataclass(frozen=True, slots=True)
class Split:
    """What a run may see: labelled rows, an optional dev set, and the pool without labels."""

    labeled: tuple[Labeled, ...]
    unlabeled: Iterable[Example]
    """The pool: any iterable that can be read again."""
    dev: tuple[Labeled, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """One line of the audit: what the teacher thought of an example, and what became of it."""

    uid: str
    label: str
    confidence: float
    certainty: float
    weight: float
    """The selection weight s_i before normalisation (Eq. 5)."""
    role: str
    """``easy`` (drawn), ``hard`` (kept for contrast) or ``left``."""


class Lines(Protocol):
    """The lines of an audit: how many, and each of them as often as asked."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Judged]: ...


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one student learns from: D_r (easy), D_h (hard) and D_l (gold)."""

    gold: tuple[Labeled, ...]
    easy: tuple[Labeled, ...] = ()
    hard: tuple[Labeled, ...] = ()
    audit: Lines = ()
    """A tuple in the order of uids; of a long pool, read from a file in the pool's own order."""
    near: tuple[tuple[int, ...], ...] = ()
    """For each easy row the places of its neighbours among the easy; empty where none are asked
    for."""


def uid_of(text: str, pair: str | None = None) -> str:
    """The name of an example without an id column: a hash of its text and pair."""
    whole = text if pair is None else f"{text}\x1f{pair}"
    return hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


def examples(texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Example]:
    """Examples from plain strings, named by their hash."""
    seconds: Sequence[str | None] = pairs if pairs is not None else [None] * len(texts)
    return [Example(uid_of(a, b), a, b) for a, b in zip(texts, seconds, strict=True)]


# ── reading ──


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column holds what; None is found by the usual names."""

    text: str | None = None
    pair: str | None = None
    label: str | None = None
    id: str | None = None


@dataclass
class Notes:
    """What was put right while reading, counted, for the user to be told."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, text: str, count: int = 1) -> None:
        """Count something once more; nothing found is nothing said."""
        if count:
            self.counts[text] = self.counts.get(text, 0) + count

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self.counts.items())


@dataclass(frozen=True, slots=True)
class Table:
    """The rows to be answered by ``predict``: all of them, in order, empty texts too."""

    examples: tuple[Example, ...]
    id_column: str | None
    """The column the uids come from; None where they are hashes."""


def read_labelled(source: object, columns: Columns = Columns(), *, notes: Notes) -> list[Labeled]:
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
        labelled.append(Labeled(example, label))
    _check_ids([row.example for row in labelled], rows.name)
    return labelled


def read_unlabelled(source: object, columns: Columns = Columns(), *, notes: Notes) -> Pool:
    """The pool: from a path, a data frame, dicts, strings, or (text, pair) tuples."""
    rows = records(source, [("text", "pair")])
    stray = stray_label_column(rows, columns.label)
    if stray is not None:
        notes.add(f"label column `{stray}` in the pool ignored")
    return sift(_Reader.of(rows, columns), notes=notes)


def read_texts(source: object, columns: Columns = Columns(), *, notes: Notes) -> Table:
    """New texts to answer; a row is never dropped, so that answers can be laid beside them."""
    rows = records(source, [("text", "pair")])
    reader = _Reader.of(rows, columns)
    found = tuple(reader)
    notes.add("empty texts answered like any other", sum(map(is_empty, found)))
    return Table(found, reader.id)


def is_empty(example: Example) -> bool:
    """Whether there is nothing to read: in a pair, one blank side is enough."""
    return not example.text.strip() or (example.pair is not None and not example.pair.strip())


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


# ── the pool ──

HELD = 100_000
"""Rows of a pool kept in memory; a longer one is read from its source again each time."""
HELD_CHARACTERS = 2**28
"""Characters of all those rows together: a few long texts fill the memory of many short ones."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Unlabelled examples without empty rows, repeated rows, or texts that are kept apart.

    What a long pool keeps in memory while it is read is 64 bits of each name it has met.
    """

    source: Iterable[Example]
    size: int
    apart: frozenset[str] = frozenset()
    """The gists of labelled, dev and test texts."""
    sifted: bool = False
    """Whether the source is held in memory and already clean."""

    def __iter__(self) -> Iterator[Example]:
        return iter(self.source) if self.sifted else _sift(self.source, self.apart, Notes())

    def __len__(self) -> int:
        return self.size


def sift(source: Iterable[Example], apart: frozenset[str] = frozenset(), *, notes: Notes) -> Pool:
    """Go through a source once: count what it holds, note what is dropped, keep it if short."""
    held: list[Example] = []
    size, room = 0, HELD_CHARACTERS
    for size, example in enumerate(_sift(source, apart, notes), 1):
        room -= len(example.uid) + len(example.text) + len(example.pair or "")
        if size <= HELD and room >= 0:
            held.append(example)
    if len(held) < size:
        return Pool(source, size, apart)
    return Pool(tuple(held), size, apart, sifted=True)


def _sift(source: Iterable[Example], apart: frozenset[str], notes: Notes) -> Iterator[Example]:
    met = Marks()
    for example in source:
        if is_empty(example):
            notes.add("empty pool rows dropped")
            continue
        marks = {mark_of(example.uid), mark_of(uid_of(example.text, example.pair))}
        if any(mark in met for mark in marks):
            notes.add("duplicate pool rows dropped")
            continue
        for mark in marks:
            met.add(mark)
        if not apart or gist(example) not in apart:
            yield example


def mark_of(name: str) -> int:
    """64 bits that stand for a name, never 0."""
    # Among n names two share a mark with a chance of about n² / 2^65: one in 37 million for a
    # million of them. The later row would be dropped as a duplicate, in every run alike.
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1


class Marks:
    """A set of marks in 11 to 16 bytes each, where a set of strings takes about 150.

    Many small tables, each with open addressing: the next free slot is taken. A table is made
    half as large again when three quarters are full, so growing never holds two copies of all.
    """

    TABLES = 256

    def __init__(self) -> None:
        self._tables = [array("Q", bytes(8 * 8)) for _ in range(self.TABLES)]
        self._counts = [0] * self.TABLES

    def __len__(self) -> int:
        return sum(self._counts)

    def __contains__(self, mark: int) -> bool:
        table = self._tables[mark % self.TABLES]
        return table[self._slot(table, mark)] == mark

    def add(self, mark: int) -> None:
        """Keep a mark; one that is there stays there once."""
        number = mark % self.TABLES
        table = self._tables[number]
        slot = self._slot(table, mark)
        if table[slot]:
            return
        table[slot] = mark
        self._counts[number] += 1
        if 4 * self._counts[number] > 3 * len(table):
            self._tables[number] = self._grown(table)

    def _slot(self, table: array[int], mark: int) -> int:
        """Where the mark is, or would be put: 0 is a free slot."""
        slot = mark // self.TABLES % len(table)
        while table[slot] and table[slot] != mark:
            slot = (slot + 1) % len(table)
        return slot

    def _grown(self, table: array[int]) -> array[int]:
        larger = array("Q", bytes(8 * (len(table) * 3 // 2)))
        for mark in filter(None, table):
            larger[self._slot(larger, mark)] = mark
        return larger


def remove_overlap(
    pool: Iterable[Example],
    others: Iterable[Example | Labeled],
    notes: Notes,
    what: str = "labelled",
) -> Pool:
    """The pool without the texts of others: what is labelled or tested on is not learnt from."""
    clean = pool if isinstance(pool, Pool) else sift(pool, notes=notes)
    apart = clean.apart | {gist(other) for other in others}
    rest = sift(clean.source, apart, notes=Notes())  # its other drops are noted already
    notes.add(f"{what} texts inside the pool removed", len(clean) - len(rest))
    return rest


def gist(row: Example | Labeled) -> str:
    """What makes two texts the same reading: neither case nor blanks nor how accents are coded."""
    example = row.example if isinstance(row, Labeled) else row
    sides = [example.text] if example.pair is None else [example.text, example.pair]
    plain = (" ".join(unicodedata.normalize("NFKC", side).casefold().split()) for side in sides)
    return uid_of("\x1f".join(plain))


# ── the split ──


def make_split(
    labelled: Sequence[Labeled],
    unlabelled: Iterable[Example],
    dev: Sequence[Labeled] = (),
    *,
    notes: Notes,
) -> Split:
    """What a run may see, checked: classes that can be learnt, and a pool apart from them."""
    gold = _distinct(labelled, "labelled", notes)
    _check_classes(gold)
    notes.add("numeric labels kept as strings", sum(_is_number(row.label) for row in gold))
    held_out = _without(_distinct(dev, "dev", notes), gold, notes)
    check_labels(held_out, {row.label for row in gold}, "dev")
    pool = remove_overlap(unlabelled, [*gold, *held_out], notes, "labelled or dev")
    if not len(pool):
        raise DataError(
            "the pool is empty: every row is empty, repeated, or also labelled",
            "give other texts: --unlabelled FILE",
        )
    check_pairs([*(row.example for row in (*gold, *held_out)), next(iter(pool))])
    return Split(tuple(gold), pool, tuple(held_out))


def check_labels(rows: Iterable[Labeled], known: Collection[str], where: str) -> None:
    """Every label of dev or test must have been seen in training."""
    strange = next((row.label for row in rows if row.label not in known), None)
    if strange is not None:
        near = closest(strange, known)
        raise DataError(
            f"label `{strange}` in {where} was never seen in training; "
            f"it has {listing(sorted(known))}",
            f"did you mean `{near}`?" if near else f"label some training rows `{strange}`",
        )


def check_kind(examples: Sequence[Example], *, pair: bool, who: str) -> None:
    """Whoever was trained on pairs answers pairs, and single texts otherwise."""
    given = any(example.pair is not None for example in examples)
    if examples and given != pair:
        kinds = ("single texts", "pairs of texts")
        raise DataError(
            f"{who} was trained on {kinds[pair]}, these rows are {kinds[given]}",
            "name the columns: --text COLUMN" + " --pair COLUMN" * pair,
        )


def _distinct(rows: Iterable[Labeled], where: str, notes: Notes) -> list[Labeled]:
    first: dict[str, Labeled] = {}
    for row in rows:
        text, label = row.example.text, row.label
        kept = first.setdefault(uid_of(text, row.example.pair), row)
        if kept.label != label:
            raise DataError(
                f"the {where} text {text!r:.60} has two labels: `{kept.label}` and `{label}`",
                "keep one of the two rows",
            )
        notes.add(f"duplicate {where} rows dropped", int(kept is not row))
    return list(first.values())


def _check_classes(gold: Sequence[Labeled]) -> None:
    counts = Counter(row.label for row in gold)
    if len(counts) < 2:
        found = "".join(f"one class: `{label}`" for label in counts) or "no class"
        raise DataError(
            f"the labelled rows have {found}; expected at least 2",
            "add rows of another class, or name the right column: --label COLUMN",
        )
    label, count = min(counts.items(), key=lambda item: (item[1], item[0]))
    if count < 2:
        raise DataError(
            f"class `{label}` has {count} labelled example; expected at least 2",
            f"label one more text as `{label}`, or leave the class out",
        )


def _without(dev: list[Labeled], gold: Iterable[Labeled], notes: Notes) -> list[Labeled]:
    """Dev rows that were not learnt from: measured on its own lessons, any model looks good."""
    learnt = {gist(row) for row in gold}
    rest = [row for row in dev if gist(row) not in learnt]
    if dev and not rest:
        raise DataError("every dev row is also a labelled row", "give other rows, or no dev set")
    notes.add("labelled texts inside dev removed", len(dev) - len(rest))
    return rest


def check_pairs(found: Iterable[Example]) -> None:
    """Raise where some examples are pairs and others are not."""
    if len({example.pair is None for example in found}) > 1:
        raise DataError(
            "some rows are pairs of texts and others single texts",
            "name the columns that all files share: --text COLUMN --pair COLUMN",
        )


def _is_number(label: str) -> bool:
    return re.fullmatch(r"[+-]?\d+(\.\d+)?", label) is not None
