"""The pool: unlabelled examples without empty rows, duplicates, or texts used elsewhere.

A pool is cleaned in one pass over its source, which also counts it, takes its fingerprint and
draws the rows of all rounds. A short pool is kept in memory. Of a long one the drawn rows remain,
and a bit for each row of the source, so reading it again takes no hashes.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, compress
from typing import Protocol, runtime_checkable

from selftrain.data.draws import MAX_ROWS_DRAWN, Draw, Drawing, drawn_together
from selftrain.data.fewshot import fingerprint, fingerprint_of, row_hash
from selftrain.data.rows import Example, Labelled, Notes, uid_of

MAX_ROWS_IN_MEMORY = 100_000
"""A pool with more rows is read from its source each time."""
MAX_CHARACTERS_IN_MEMORY = 2**28
"""So is one with more characters: a few long texts need the memory of many short ones."""
Fields = tuple[str | None, str, str | None]
"""The uid, text and pair of a row; the uid is None where it is the hash of the text."""
Excluded = Sequence[tuple[str, Collection[str]]]
"""Texts, as ``plain_text`` gives them, that are no part of a pool, and what they are called."""
Draws = Callable[[], Iterable[Draw]]
"""What a run draws from its pool; only asked for a pool that is too long for memory."""


@runtime_checkable
class HasFields(Protocol):
    """A source that gives the fields of its rows faster than examples."""

    def fields(self) -> Iterator[Fields]:
        """The fields of each row."""


@runtime_checkable
class HasIds(Protocol):
    """A source whose ids may turn out not to name rows."""

    def with_unique_uids(self, notes: Notes) -> Iterable[Example]:
        """The same rows, named by their texts where an id names two of them."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Unlabelled examples that can be read again, without empty, repeated or excluded texts."""

    source: Iterable[Example]
    size: int
    fingerprint: str
    """The same for the same rows in any order."""
    in_pool: bytes | None = None
    """A bit for each row of the source; None where the source is the clean pool, in memory."""
    drawn: dict[Draw, list[Example]] = field(default_factory=dict, repr=False, compare=False)
    """Rows that were drawn, so that no draw reads the source twice."""

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in memory, and not read from a source each time."""
        return self.in_pool is None

    def __iter__(self) -> Iterator[Example]:
        if self.in_pool is None:
            return iter(self.source)
        return (Example(uid or uid_of(text, pair), text, pair) for uid, text, pair in self.fields())

    def __len__(self) -> int:
        return self.size

    def fields(self) -> Iterator[Fields]:
        """The fields of each row."""
        rows = _fields_of(self.source)
        return rows if self.in_pool is None else compress(rows, _unpacked(self.in_pool))

    def draw(self, wanted: Draw, others: Iterable[Draw] = ()) -> list[Example]:
        """The rows of a draw; in the same pass those of other draws, which are asked for later."""
        if wanted.size > MAX_ROWS_DRAWN:  # it is used once, and would take the memory of many
            return Drawing([wanted]).read(self)[wanted]
        if wanted not in self.drawn:
            missing = (draw for draw in others if draw not in self.drawn)
            self.drawn.update(Drawing(drawn_together([wanted, *missing])).read(self))
        return list(self.drawn[wanted])


def clean_pool(
    source: Iterable[Example], excluded: Excluded = (), *, notes: Notes, draws: Draws = tuple
) -> Pool:
    """Read a source once: clean, count and draw its rows, note what is dropped, keep few in memory.

    A source with ids of which some came twice is read again, to see whether they name rows.
    """
    pool, repeat, found = _cleaned(source, excluded, draws)
    if repeat and isinstance(source, HasIds):
        named = source.with_unique_uids(notes)
        if named is not source:
            pool, _, found = _cleaned(named, excluded, draws)
    for text, count in found:
        notes.add(text, count)
    return pool


def remove_overlap(
    pool: Iterable[Example],
    others: Iterable[Example | Labelled],
    notes: Notes,
    what: str = "labelled",
) -> Pool:
    """The pool without the texts of other rows, which are labelled or scored on."""
    return clean_pool(pool, [(what, frozenset(map(plain_of, others)))], notes=notes)


def fingerprint_of_pool(pool: Iterable[Example]) -> str:
    """The fingerprint of a pool; of one that is not cleaned yet all rows are read."""
    return pool.fingerprint if isinstance(pool, Pool) else fingerprint(pool)


# ── the same text ────────────────────────────────────────────────────────────────────────────


def text_key(row: Example | Labelled) -> str:
    """A key that two texts share if only case, blanks or the coding of accents differ."""
    return uid_of(plain_of(row))


def plain_of(row: Example | Labelled) -> str:
    """The text of a row without what may differ between two writings of it."""
    example = row.example if isinstance(row, Labelled) else row
    return plain_text(example.text, example.pair)


def plain_text(text: str, pair: str | None) -> str:
    """A text in one case, with single blanks and composed accents.

    >>> plain_text(" A  Fine\\tfilm", None)
    'a fine film'
    """
    if pair is not None:
        return f"{plain_text(text, None)}\x1f{plain_text(pair, None)}"
    if text.isascii():
        return " ".join(text.lower().split())
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


# ── one pass ─────────────────────────────────────────────────────────────────────────────────


def _cleaned(
    source: Iterable[Example], excluded: Excluded, draws: Draws
) -> tuple[Pool, bool, Notes]:
    """The clean pool of a source, whether some id came twice, and what was dropped."""
    cleaning, bits = _Cleaning(excluded), _Bits()
    rows: list[Example] = []
    drawing: Drawing | None = None  # once the pool is too long for memory
    size, total, room = 0, 0, MAX_CHARACTERS_IN_MEMORY
    is_in_pool = cleaning.is_in_pool
    for uid, text, pair in _fields_of(source):
        content = uid_of(text, pair)
        stays = is_in_pool(uid, text, pair, content)
        bits.add(stays)
        if not stays:
            continue
        size += 1
        name = uid or content
        total += row_hash(name, text, pair)
        if drawing is None:
            rows.append(Example(name, text, pair))
            room -= len(name) + len(text) + len(pair or "")
            if size > MAX_ROWS_IN_MEMORY or room < 0:
                drawing = Drawing(drawn_together(draws()))
                drawing.read(rows)
                rows.clear()
        else:
            drawing.add(name, text, pair)
    named = fingerprint_of(size, total)
    if drawing is None:
        pool = Pool(tuple(rows), size, named)
    else:
        pool = Pool(source, size, named, bits.packed(), drawing.read(()))
    return pool, cleaning.id_came_twice, cleaning.notes


class _Cleaning:
    """Which rows of a source are in its pool; in memory stay 64 bits of each uid and text."""

    def __init__(self, excluded: Excluded) -> None:
        self.notes = Notes()
        self.id_came_twice = False
        self._excluded = excluded
        plain = chain.from_iterable(texts for _, texts in excluded)
        self._first_words = {text.split(None, 1)[0] for text in plain if text.strip()}
        """Of the excluded texts: most rows start with another one, and need no closer look."""
        self._seen = HashSet()
        self._other_ids = HashSet()
        """Of rows that were dropped: to find an id that comes twice."""

    def is_in_pool(self, uid: str | None, text: str, pair: str | None, content: str) -> bool:
        """Whether the next row stays; ``content`` is the hash of its text and pair."""
        id = None
        if uid is not None and uid != content:
            id = hash_of(uid)
            self.id_came_twice |= id in self._seen or id in self._other_ids
        dropped = self._why_dropped(id, text, pair, content)
        if not dropped:
            return True
        self.notes.add(dropped)
        if id is not None:
            self._other_ids.add(id)
        return False

    def _why_dropped(self, id: int | None, text: str, pair: str | None, content: str) -> str:
        if not text or text.isspace() or (pair is not None and (not pair or pair.isspace())):
            return "empty pool rows dropped"
        key = hash_of_uid(content)
        if id is None:
            if not self._seen.add(key):
                return "duplicate pool rows dropped"
        else:
            if key in self._seen:
                return "duplicate pool rows dropped"
            if id in self._seen:
                return "pool rows with the id of another row dropped"
            self._seen.add(id)
            self._seen.add(key)
        if not text.isascii() or text.split(None, 1)[0].lower() in self._first_words:
            plain = plain_text(text, pair)
            for what, texts in self._excluded:
                if plain in texts:
                    return f"{what} texts inside the pool removed"
        return ""


def _fields_of(source: Iterable[Example]) -> Iterator[Fields]:
    if isinstance(source, HasFields):
        return source.fields()
    return ((row.uid, row.text, row.pair) for row in source)


class _Bits:
    """A bit for each row, collected one after the other."""

    BLOCK = 8192  # rows

    def __init__(self) -> None:
        self._packed = bytearray()
        self._digits = bytearray()  # of the last rows: the character 0 or 1 for each

    def add(self, bit: bool) -> None:
        """Add the bit of the next row."""
        self._digits.append(49 if bit else 48)
        if len(self._digits) == self.BLOCK:
            self._pack()

    def packed(self) -> bytes:
        """All bits, eight in a byte, the first in the lowest place."""
        if self._digits:
            self._pack()
        return bytes(self._packed)

    def _pack(self) -> None:
        size = -(-len(self._digits) // 8)
        self._packed += int(self._digits[::-1], 2).to_bytes(size, "little")
        self._digits.clear()


EIGHT_BITS = [tuple(byte >> place & 1 for place in range(8)) for byte in range(256)]


def _unpacked(packed: bytes) -> Iterator[int]:
    return chain.from_iterable(map(EIGHT_BITS.__getitem__, packed))


# ── many hashes in little memory ─────────────────────────────────────────────────────────────


def hash_of(name: str) -> int:
    """A 64-bit hash of a name, never 0."""
    # Among n names two have the same hash with a chance of about n² / 2^65: one in 37 million for
    # a million names. The later row would be dropped as a duplicate, the same in every run.
    if is_like_uid(name):
        return hash_of_uid(name)
    raw = name.encode() if name.isascii() else name.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "big") or 1


def hash_of_uid(uid: str) -> int:
    """The same for what ``uid_of`` gave: a hash already."""
    return int(uid, 16) % PRIME or 1


PRIME = 2**64 - 59
"""The largest of 64 bits. Ids of twenty digits that count up differ in it as hashes do."""
is_like_uid = re.compile("[0-9a-f]{20}").fullmatch


class HashSet:
    """A set of 64-bit hashes in 11 to 16 bytes each, where a set of strings takes about 150.

    Many small tables with open addressing: a hash goes to the next free slot. A table that is
    three quarters full grows by half, so growing never needs a second copy of everything.
    """

    TABLES = 256

    def __init__(self) -> None:
        self._tables = [array("Q", bytes(8 * 8)) for _ in range(self.TABLES)]
        self._counts = [0] * self.TABLES

    def __len__(self) -> int:
        return sum(self._counts)

    def __contains__(self, number: int) -> bool:
        table = self._tables[number % self.TABLES]
        return table[self._slot(table, number)] == number

    def add(self, number: int) -> bool:
        """Add a hash, and say whether it was not there; adding it again changes nothing."""
        place = number % self.TABLES
        table = self._tables[place]
        size = len(table)
        slot = number // self.TABLES % size  # as `_slot` does: a call for each row takes longer
        while present := table[slot]:
            if present == number:
                return False
            slot = (slot + 1) % size
        table[slot] = number
        self._counts[place] += 1
        if 4 * self._counts[place] > 3 * len(table):
            self._tables[place] = self._grown(table)
        return True

    def _slot(self, table: array[int], number: int) -> int:
        """The slot of this hash, or the free one where it would go; 0 means free."""
        slot = number // self.TABLES % len(table)
        while table[slot] and table[slot] != number:
            slot = (slot + 1) % len(table)
        return slot

    def _grown(self, table: array[int]) -> array[int]:
        larger = array("Q", bytes(8 * (len(table) * 3 // 2)))
        for number in filter(None, table):
            larger[self._slot(larger, number)] = number
        return larger
