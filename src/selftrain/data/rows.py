"""The values that pass between the rooms: examples, labelled rows, splits and lessons.

An ``Example`` has no label and a ``Labelled`` has one. A pool is made of examples, so it cannot
leak a label: its type has no field for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol, TypeVar

from selftrain.errors import DataError

T = TypeVar("T")

# ── values ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Example:
    """One text, or a pair of texts, with a unique name and no label."""

    uid: str
    """The id column, else a hash of text and pair; never a row number."""
    text: str
    """The text, or the first of a pair."""
    pair: str | None = None
    """The second text of a pair; None for a single text."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """An example with a label: gold, or given by a teacher."""

    example: Example
    """The text."""
    label: str
    """Its class, by name."""
    weight: float = 1.0
    """How much the row counts in the loss."""
    soft: tuple[float, ...] | None = None
    """The teacher's probability for each class, in the task's order; None for gold."""


@dataclass(frozen=True, slots=True)
class Split:
    """What a run may see: labelled rows, an optional dev set, and the pool without labels."""

    labelled: tuple[Labelled, ...]
    """The gold rows, D_l."""
    unlabelled: Iterable[Example]
    """The pool, D_u: any iterable that can be read again."""
    dev: tuple[Labelled, ...] = ()
    """Rows to report on by round; they choose nothing."""


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line of the audit: the teacher's votes on an example, and the role it was given."""

    uid: str
    label: str
    confidence: float
    certainty: float
    weight: float
    """The selection weight s_i before normalisation (Eq. 5)."""
    role: str
    """``easy`` (drawn for training), ``hard`` (used for contrast) or ``left`` (not used)."""


@dataclass(slots=True)
class Gap:
    """Rows of a file that are passed before the next one is read; who reads it counts them."""

    rows: int = 0

    def after(self, rows: Iterable[T]) -> Iterator[T]:
        """The rows that are not passed; the gap may grow while they are read."""
        for row in rows:
            if self.rows:
                self.rows -= 1
            else:
                yield row


class AuditLines(Protocol):
    """The lines of an audit, with their number; they can be read again and again."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[AuditLine]: ...


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one student learns from: D_r (easy), D_h (hard) and D_l (gold)."""

    gold: tuple[Labelled, ...]
    """D_l: the rows with gold labels."""
    easy: tuple[Labelled, ...] = ()
    """D_r: the reliable rows, with their pseudo labels."""
    hard: tuple[Labelled, ...] = ()
    """D_h: the doubtful rows, for the contrast."""
    audit: AuditLines = ()
    """A tuple sorted by uid; for a long pool, lines read from a file in the order of the pool."""
    near: tuple[tuple[int, ...], ...] = ()
    """For each easy row, the places of its neighbours among the easy rows; empty if not used."""


@dataclass
class Notes:
    """Warnings collected while reading, with counts."""

    counts: dict[str, int] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    """Which columns of each file were taken."""
    remarks: list[str] = field(default_factory=list)
    """What was found out about a file: worth a line, but no warning."""

    def add(self, text: str, count: int = 1) -> None:
        """Add to the count of a warning; a count of 0 adds no warning."""
        if count:
            self.counts[text] = self.counts.get(text, 0) + count

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self.counts.items())


# ── examples from plain strings ──────────────────────────────────────────────────────────────


def uid_of(text: str, pair: str | None = None) -> str:
    """The uid of an example without an id: a hash of its text and pair."""
    content = text if pair is None else f"{text}\x1f{pair}"
    raw = content.encode() if content.isascii() else content.encode("utf-8", "surrogatepass")
    return blake2b(raw, digest_size=10).hexdigest()


def examples(texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Example]:
    """Examples from plain strings, with uids from hashes.

    >>> examples(["it rains"], ["it is wet"])[0].pair
    'it is wet'
    """
    seconds: Sequence[str | None] = pairs if pairs is not None else [None] * len(texts)
    return [Example(uid_of(a, b), a, b) for a, b in zip(texts, seconds, strict=True)]


def example_of(number: int, row: object) -> Example:
    """An example from one string or a pair of strings; ``number`` is its place, for an error.

    >>> example_of(1, ("it rains", "it is wet")).pair
    'it is wet'
    """
    is_pair = isinstance(row, tuple | list) or getattr(row, "ndim", 0) == 1  # or a numpy array
    sides = tuple(row) if is_pair else (row,)  # type: ignore[arg-type]
    if len(sides) not in (1, 2) or not all(isinstance(side, str) for side in sides):
        raise DataError(
            f"text {number} is {row!r:.40}; expected a string, or a pair of strings",
            'give a list of strings: ["a fine film", …]',
        )
    plain = tuple(map(str, sides))  # numpy has another type of string
    try:
        "".join(plain).encode()
    except UnicodeEncodeError:
        raise DataError(
            f"text {number} holds half a character: {row!a:.40}", "leave it out"
        ) from None
    return Example(uid_of(*plain), *plain)


def is_empty(example: Example) -> bool:
    """Whether there is nothing to read; in a pair, one blank side is enough."""
    return not example.text.strip() or (example.pair is not None and not example.pair.strip())


def missing(value: object) -> bool:
    """Whether a cell or a label is not there: None, NaN, or pandas' NA.

    >>> missing(None), missing(float("nan")), missing(""), missing(0)
    (True, True, False, False)
    """
    try:
        return value is None or bool(value != value)  # noqa: PLR0124  (NaN is not itself)
    except TypeError:  # pandas' NA is neither true nor false
        return True
    except ValueError:  # nor is an array, but that is a value
        return False
