"""How far probabilities can be believed: by bins, and above a threshold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from selftrain.training.estimate import Opinion

BINS = 10
GOLD_BINS = 5
"""Fewer: there are few labelled rows."""
THRESHOLDS = (0.0, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True, slots=True)
class Bin:
    """Rows of about the same confidence."""

    low: float
    high: float
    rows: int
    confidence: float
    """Their mean confidence."""
    right: float
    """How many of them are right: of labelled rows counted, of pool rows as the check models
    believe."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """What is left if texts below a probability get no label."""

    above: float
    share: float
    """Of the pool rows, those that get a label."""
    right: float
    """The mean calibrated probability of their labels."""


def answer_of(probabilities: Sequence[float], labels: Sequence[str]) -> str:
    """The most probable class."""
    return labels[_best(probabilities)]


def _best(probabilities: Sequence[float]) -> int:
    return max(range(len(probabilities)), key=probabilities.__getitem__)


def pool_bins(pool: Iterable[Opinion], labels: Sequence[str]) -> tuple[Bin, ...]:
    """The model's confidence on pool rows beside what the check models believe of its answers."""
    rows = [
        (row.model[best], row.folds[best])
        for row in pool
        if len(row.model) == len(labels)
        for best in [_best(row.model)]
    ]
    return _bins(rows, BINS)


def gold_bins(gold: Iterable[Opinion], labels: Sequence[str]) -> tuple[Bin, ...]:
    """The confidence of the check models on labels they did not see, beside how many are right."""
    rows = [(max(row.folds), float(answer_of(row.folds, labels) == row.label)) for row in gold]
    return _bins(rows, GOLD_BINS)


def _bins(rows: Sequence[tuple[float, float]], count: int) -> tuple[Bin, ...]:
    by_place: dict[int, list[tuple[float, float]]] = {}
    for confidence, right in rows:
        by_place.setdefault(min(count - 1, int(confidence * count)), []).append((confidence, right))
    return tuple(
        Bin(
            at / count,
            (at + 1) / count,
            len(found),
            fmean(confidence for confidence, _ in found),
            fmean(right for _, right in found),
        )
        for at, found in sorted(by_place.items())
    )


def thresholds(pool: Iterable[Opinion]) -> tuple[Threshold, ...]:
    """How many pool rows have a probability above each threshold, and how right they should be."""
    confidences = [max(row.model) for row in pool if row.model]
    found = []
    for above in THRESHOLDS:
        left = [confidence for confidence in confidences if confidence >= above]
        if left:
            found.append(Threshold(above, len(left) / len(confidences), fmean(left)))
    return tuple(found)


def found_by_class(gold: Iterable[Opinion], labels: Sequence[str]) -> Mapping[str, float]:
    """The share of each class's labels that check models without them answer right."""
    right: dict[str, list[bool]] = {}
    for row in gold:
        right.setdefault(row.label, []).append(answer_of(row.folds, labels) == row.label)
    share: Callable[[list[bool]], float] = fmean
    return {label: share(hits) for label, hits in right.items()}
