"""What we learn from: examples, labels, splits and lessons, and reading them from files.

An ``Example`` has no label and a ``Labelled`` has one, so a pool cannot leak what it was
never given: the type of the pool has no field for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Example:
    """One text, or a pair of texts, with a name of its own and no label."""

    uid: str
    """The id column, else a hash of text and pair; never a row number."""
    text: str
    pair: str | None = None


@dataclass(frozen=True, slots=True)
class Labelled:
    """An example with a label: gold, or given by a teacher."""

    example: Example
    label: str
    weight: float = 1.0
    soft: tuple[float, ...] | None = None
    """The teacher's probability for each class, in the task's order; None for gold."""


@dataclass(frozen=True, slots=True)
class Split:
    """What a run may see: labelled rows, an optional dev set, and the pool without labels."""

    labelled: tuple[Labelled, ...]
    unlabelled: Iterable[Example]
    """The pool: any iterable that can be read again."""
    dev: tuple[Labelled, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line of the audit: what the teacher thought of an example, and what became of it."""

    uid: str
    label: str
    confidence: float
    certainty: float
    weight: float
    """The selection weight s_i before normalisation (Eq. 5)."""
    role: str
    """``easy`` (drawn), ``hard`` (kept for contrast) or ``left``."""


class AuditLines(Protocol):
    """The lines of an audit: how many, and each of them as often as asked."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[AuditLine]: ...


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one student learns from: D_r (easy), D_h (hard) and D_l (gold)."""

    gold: tuple[Labelled, ...]
    easy: tuple[Labelled, ...] = ()
    hard: tuple[Labelled, ...] = ()
    audit: AuditLines = ()
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


def is_empty(example: Example) -> bool:
    """Whether there is nothing to read: in a pair, one blank side is enough."""
    return not example.text.strip() or (example.pair is not None and not example.pair.strip())
