"""What a run learnt from: the rows it picked in each round, and how clear its answers were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from selftrain.data.rows import AuditLine
from selftrain.runs.lessons import read_lesson
from selftrain.runs.read import verified
from selftrain.runs.record import LESSON, Record
from selftrain.runs.saved import SavedRun
from selftrain.training.estimate import Estimate

BINS = 20
MOST_ROWS = 200_000
"""A longer lesson is not read again for a histogram."""
ROLES = ("easy", "hard", "left")


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """One round."""

    number: int
    accepted: bool
    why: str
    head_alone: bool
    """Whether it trained the head alone, on the encoder of an earlier round."""
    pool: int | None
    picked: int | None
    confidence: float | None
    certainty: float | None
    changed: float | None
    """The share of answers that differ from those of its teacher."""
    expected: float | None
    low: float | None
    high: float | None
    seconds: float | None
    picked_by_class: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LessonFacts:
    """The rows that one lesson judged, counted in bins from 0 to 1 for each role."""

    number: int
    rows: int
    confidence: Mapping[str, tuple[int, ...]]
    certainty: Mapping[str, tuple[int, ...]]


def rounds_of(run: SavedRun) -> tuple[RoundFacts, ...]:
    """The rounds of a run; numbers that are missing or of another kind are None."""
    return tuple(_round(record, run.estimate, run.labels) for record in run.records)


def _round(record: Record, estimate: Estimate | None, labels: Iterable[str]) -> RoundFacts:
    numbers = record.numbers
    known = None if estimate is None or record.failed else estimate.of(record.number).expected
    picked = numbers.get("classes picked")
    by_class = picked if isinstance(picked, dict) else {}
    return RoundFacts(
        record.number,
        record.accepted,
        record.why,
        record.encoder_of is not None,
        _whole(numbers.get("pool")),
        _whole(numbers.get("picked")),
        _number(numbers.get("confidence")),
        _number(numbers.get("certainty")),
        _number(numbers.get("changed")),
        None if known is None else known.accuracy,
        None if known is None else known.low,
        None if known is None else known.high,
        _number(numbers.get("seconds")),
        {label: count for label in labels if (count := _whole(by_class.get(label)))},
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def lesson_of(run: SavedRun) -> LessonFacts | None:
    """The last lesson of a run; None where it has none, or one too long to read again."""
    for record in reversed(run.records):
        pool = _whole(record.numbers.get("pool"))
        if pool and pool <= MOST_ROWS:
            place = verified(run.folder, record, [LESSON])
            return _counted(record.number, read_lesson(place / LESSON, run.labels))
    return None


def _counted(number: int, lines: Iterable[AuditLine]) -> LessonFacts:
    confidence = {role: [0] * BINS for role in ROLES}
    certainty = {role: [0] * BINS for role in ROLES}
    rows = 0
    for line in lines:
        rows += 1
        confidence[line.role][_place(line.confidence)] += 1
        certainty[line.role][_place(line.certainty)] += 1
    frozen = (
        {role: tuple(each) for role, each in counts.items()} for counts in (confidence, certainty)
    )
    return LessonFacts(number, rows, *frozen)


def _place(share: float) -> int:
    return min(BINS - 1, max(0, int(share * BINS)))
