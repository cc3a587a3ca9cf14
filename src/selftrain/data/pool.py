"""The pool: unlabelled examples without empty rows, duplicates, or texts used elsewhere.

A short pool is kept in memory. A long one is read from its source again in each round, and only
64 bits of each uid and text are remembered, to find duplicates.
"""

from __future__ import annotations

import hashlib
import unicodedata
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from selftrain.data.rows import Example, Labelled, Notes, is_empty, uid_of

MAX_ROWS_IN_MEMORY = 100_000
"""A pool with more rows is read from its source each time."""
MAX_CHARACTERS_IN_MEMORY = 2**28
"""So is one with more characters: a few long texts need the memory of many short ones."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Unlabelled examples that can be read again, without empty, repeated or excluded texts."""

    source: Iterable[Example]
    size: int
    excluded: frozenset[str] = frozenset()
    """Text keys of labelled, dev and test rows."""
    in_memory: bool = False
    """Whether ``source`` is already clean and in memory."""

    def __iter__(self) -> Iterator[Example]:
        return (
            iter(self.source) if self.in_memory else _cleaned(self.source, self.excluded, Notes())
        )

    def __len__(self) -> int:
        return self.size


def clean_pool(
    source: Iterable[Example], excluded: frozenset[str] = frozenset(), *, notes: Notes
) -> Pool:
    """Read a source once: count its rows, note what is dropped, keep the rows if they are few."""
    rows: list[Example] = []
    size, room = 0, MAX_CHARACTERS_IN_MEMORY
    for size, example in enumerate(_cleaned(source, excluded, notes), 1):
        room -= len(example.uid) + len(example.text) + len(example.pair or "")
        if size <= MAX_ROWS_IN_MEMORY and room >= 0:
            rows.append(example)
    if len(rows) < size:
        return Pool(source, size, excluded)
    return Pool(tuple(rows), size, excluded, in_memory=True)


def remove_overlap(
    pool: Iterable[Example],
    others: Iterable[Example | Labelled],
    notes: Notes,
    what: str = "labelled",
) -> Pool:
    """The pool without the texts of other rows, which are labelled or scored on."""
    clean = pool if isinstance(pool, Pool) else clean_pool(pool, notes=notes)
    excluded = clean.excluded | {text_key(other) for other in others}
    smaller = clean_pool(clean.source, excluded, notes=Notes())  # other drops are noted already
    notes.add(f"{what} texts inside the pool removed", len(clean) - len(smaller))
    return smaller


def text_key(row: Example | Labelled) -> str:
    """A key that two texts share if only case, blanks or the coding of accents differ."""
    example = row.example if isinstance(row, Labelled) else row
    sides = [example.text] if example.pair is None else [example.text, example.pair]
    plain = (" ".join(unicodedata.normalize("NFKC", side).casefold().split()) for side in sides)
    return uid_of("\x1f".join(plain))


def _cleaned(
    source: Iterable[Example], excluded: frozenset[str], notes: Notes
) -> Iterator[Example]:
    seen = HashSet()
    for example in source:
        if is_empty(example):
            notes.add("empty pool rows dropped")
            continue
        id, content = hash_of(example.uid), hash_of(uid_of(example.text, example.pair))
        if content in seen:
            notes.add("duplicate pool rows dropped")
            continue
        if id in seen:
            notes.add("pool rows with the id of another row dropped")
            continue
        seen.add(id)
        seen.add(content)
        if not excluded or text_key(example) not in excluded:
            yield example


# ── many hashes in little memory ─────────────────────────────────────────────────────────────


def hash_of(name: str) -> int:
    """A 64-bit hash of a name, never 0."""
    # Among n names two have the same hash with a chance of about n² / 2^65: one in 37 million for
    # a million names. The later row would be dropped as a duplicate, the same in every run.
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1


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

    def add(self, number: int) -> None:
        """Add a hash; adding it again changes nothing."""
        place = number % self.TABLES
        table = self._tables[place]
        slot = self._slot(table, number)
        if table[slot]:
            return
        table[slot] = number
        self._counts[place] += 1
        if 4 * self._counts[place] > 3 * len(table):
            self._tables[place] = self._grown(table)

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
