"""What passes between a run and an annotation tool, and what a tool's file has to say.

A ``Suggestion`` goes out: a text and the label that the run gave it. An ``AnnotatedRow`` comes
back: a text and what people answered. A ``Tool`` writes the first and reads the second.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from selftrain.data.delimited import Row
from selftrain.data.files import Records, records
from selftrain.data.names import LABEL_NAMES
from selftrain.data.rows import Example

UID, TEXT, PAIR, LABEL = "uid", "text", "pair", "label"
"""The names of our columns in every tool; a reader of ours finds them without being asked."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One row for a person to check: its text, the label that the run gave it, and its numbers."""

    example: Example
    label: str
    role: str
    """``easy``, ``hard`` or ``left`` as in the lesson of its round; ``gold`` for a labelled row."""
    round: int | None = None
    """The last round that judged it; None for a labelled row."""
    confidence: float | None = None
    """The teacher's, over the dropout passes of that round; None for a labelled row."""
    certainty: float | None = None
    """How far the passes agree."""
    probability: float | None = None
    """The calibrated one of the label: for a pool row by the model of the run, where it is in the
    slice of the estimate; for a labelled row by the fold that did not see it."""
    probabilities: tuple[float, ...] = ()
    """The same of each class, in the order of the task's labels."""

    @property
    def score(self) -> float | None:
        """The number that a tool sorts by: on one scale for all rows of the pool."""
        return self.probability if self.confidence is None else self.confidence

    def numbers(self) -> dict[str, str | int | float]:
        """Role, round and numbers by name, without those that are unknown."""
        numbers = {
            "role": self.role,
            "round": self.round,
            "confidence": self.confidence,
            "certainty": self.certainty,
            "probability": self.probability,
        }
        return {
            name: round(value, 6) if isinstance(value, float) else value
            for name, value in numbers.items()
            if value is not None
        }

    def texts(self) -> dict[str, str]:
        """The text, or both texts of a pair, by name."""
        pair = self.example.pair
        return {TEXT: self.example.text, **({} if pair is None else {PAIR: pair})}


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What is written for a tool: the classes in the order of the task, and the rows."""

    labels: tuple[str, ...]
    rows: Sequence[Suggestion]

    @property
    def pair(self) -> bool:
        """Whether a row is a pair of texts."""
        return any(row.example.pair is not None for row in self.rows)


@dataclass(frozen=True, slots=True)
class AnnotatedRow:
    """One row of a tool's file: its fields, and what people answered."""

    fields: Mapping[str, object]
    """Texts and uid under the names that the file has for them."""
    labels: tuple[str, ...]
    """One for each person who answered with one label."""
    skipped: int = 0
    """How many people skipped the row."""
    several: int = 0
    """How many people gave it several labels at once."""
    suggested: str | None = None
    """The label that was suggested, where the file tells it from an answer."""


@dataclass(frozen=True, slots=True)
class Tool:
    """An annotation tool: how its files are written and read."""

    title: str
    """Its name in a sentence."""
    endings: tuple[str, ...]
    """Those of a file that we write; none: we write a folder."""
    write: Callable[[Path, Outgoing], None]
    """Write all rows to a path, or nothing: an error leaves what was there."""
    open: Callable[[Path], Records] | None = None
    """The rows of a file that comes back; None where none does."""
    fits: Callable[[Row], bool] | None = None
    """Whether a row looks like one of this tool; None where its columns alone tell."""
    row: Callable[[Records, int, Row, str | None], AnnotatedRow] | None = None
    """What a row says: the file, the row's number, the row, and the name of its label, if given."""
    has_suggestions: bool = False
    """Whether a file that comes back tells suggestions from answers of people."""
    has_texts: bool = True
    """Whether the texts are written; without them the labelled rows alone are."""


# ── shared by several tools ──────────────────────────────────────────────────────────────────


def open_json(path: Path) -> Records:
    """Rows of a JSON array, or of JSON lines, whatever the ending of the name."""
    return records(path, form="json")


def write_json(path: Path, rows: Iterable[object]) -> None:
    """Write a JSON array with a row on each line, in ASCII: no reader can mistake its coding."""
    with path.open("x", encoding="ascii") as file:
        file.write("[")
        for number, row in enumerate(rows):
            file.write(",\n" if number else "\n")
            file.write(json.dumps(row))
        file.write("\n]\n")


def label_value(row: Row, label: str | None) -> object:
    """What stands in a row's field of this name, else of a usual name; None where none does.

    >>> label_value({"text": "fine", "sentiment": "good"}, None)
    'good'
    """
    names = LABEL_NAMES if label is None else (label,)
    return next((row[name] for name in names if name in row), None)
