"""The pool: unlabelled examples, without empty rows, duplicates, or labelled and tested texts."""

from __future__ import annotations

import hashlib
import unicodedata
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from selftrain.data.rows import Example, Labelled, Notes, is_empty, uid_of

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
    excluded: frozenset[str] = frozenset()
    """The gists of labelled, dev and test texts."""
    in_memory: bool = False
    """Whether the source is held in memory and already clean."""

    def __iter__(self) -> Iterator[Example]:
        return (
            iter(self.source) if self.in_memory else _cleaned(self.source, self.excluded, Notes())
        )

    def __len__(self) -> int:
        return self.size


def clean_pool(
    source: Iterable[Example], excluded: frozenset[str] = frozenset(), *, notes: Notes
) -> Pool:
    """Go through a source once: count what it holds, note what is dropped, keep it if short."""
    held: list[Example] = []
    size, room = 0, HELD_CHARACTERS
    for size, example in enumerate(_cleaned(source, excluded, notes), 1):
        room -= len(example.uid) + len(example.text) + len(example.pair or "")
        if size <= HELD and room >= 0:
            held.append(example)
    if len(held) < size:
        return Pool(source, size, excluded)
    return Pool(tuple(held), size, excluded, in_memory=True)


def _cleaned(
    source: Iterable[Example], excluded: frozenset[str], notes: Notes
) -> Iterator[Example]:
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
        if not excluded or text_key(example) not in excluded:
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
    others: Iterable[Example | Labelled],
    notes: Notes,
    what: str = "labelled",
) -> Pool:
    """The pool without the texts of others: what is labelled or tested on is not learnt from."""
    clean = pool if isinstance(pool, Pool) else clean_pool(pool, notes=notes)
    excluded = clean.excluded | {text_key(other) for other in others}
    rest = clean_pool(clean.source, excluded, notes=Notes())  # its other drops are noted already
    notes.add(f"{what} texts inside the pool removed", len(clean) - len(rest))
    return rest


def text_key(row: Example | Labelled) -> str:
    """What makes two texts the same reading: neither case nor blanks nor how accents are coded."""
    example = row.example if isinstance(row, Labelled) else row
    sides = [example.text] if example.pair is None else [example.text, example.pair]
    plain = (" ".join(unicodedata.normalize("NFKC", side).casefold().split()) for side in sides)
    return uid_of("\x1f".join(plain))
