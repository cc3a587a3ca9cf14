"""How good answers are: accuracy, F1, calibration, and how well a score finds errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor


def accuracy(answers: Tensor, gold: Tensor) -> float:
    """The share of rows answered right; both [N] class indices."""
    return float((answers == gold).double().mean())


def f1(answers: Tensor, gold: Tensor, c: int) -> float:
    """F1 of class c; 0 where the class is neither answered nor present."""
    right = float(((answers == c) & (gold == c)).sum())
    answered_and_present = float((answers == c).sum() + (gold == c).sum())
    return 2 * right / answered_and_present if answered_and_present else 0.0


def macro_f1(answers: Tensor, gold: Tensor, classes: int) -> float:
    """The plain mean of every class's F1."""
    return fmean(f1(answers, gold, c) for c in range(classes))


def confusion(answers: Tensor, gold: Tensor, classes: int) -> Tensor:
    """How many rows of each gold class (first index) got each answer, [C, C]."""
    return (gold * classes + answers).bincount(minlength=classes**2).reshape(classes, classes)


def reliability(p: Tensor, gold: Tensor, bins: int = 10) -> list[tuple[int, float, float]]:
    """Of each equal bin of confidence the number of answers, their confidence and accuracy.

    Empty bins are left out.
    """
    confidence, answers = p.double().max(1)
    right = (answers == gold).double()
    bin_of = (confidence * bins).long().clamp(max=bins - 1)
    inside = [bin_of == b for b in range(bins)]
    return [
        (int(rows.sum()), float(confidence[rows].mean()), float(right[rows].mean()))
        for rows in inside
        if bool(rows.any())
    ]


def calibration_error(p: Tensor, gold: Tensor, bins: int = 10) -> float:
    """Expected calibration error: the gap between confidence and accuracy, over equal bins.

    0 means that of the answers given with confidence 0.8, 80 % are right.
    """
    parts = reliability(p, gold, bins)
    return sum(rows * abs(confidence - right) for rows, confidence, right in parts) / len(gold)


def debiased_calibration_error(p: Tensor, gold: Tensor, bins: int = 10) -> float:
    """The expected calibration error over bins of as many rows each, without the share of chance.

    Even where every confidence is true, the rows of a bin are right a little more or less often:
    the plain error is never 0. What chance adds is subtracted, by the normal approximation (Kumar
    et al., 2019).
    """
    error = 0.0
    for part, hits in equal_parts(p, gold, bins):
        gap, share = float((part - hits).mean()), float(hits.mean())
        spread = math.sqrt(share * (1 - share) / len(part))
        error += len(part) / len(gold) * (abs(gap) - added_by_chance(gap, spread))
    return max(0.0, error)


def equal_parts(p: Tensor, gold: Tensor, bins: int = 10) -> Iterator[tuple[Tensor, Tensor]]:
    """The confidence of answers and whether each is right, in bins of as many, lowest first.

    Fewer rows than bins leave no bin empty: there are fewer.
    """
    confidence, answers = p.double().max(1)
    order = confidence.argsort(stable=True)
    right = (answers == gold).double()[order]
    parts = zip(confidence[order].tensor_split(bins), right.tensor_split(bins), strict=True)
    yield from ((part, hits) for part, hits in parts if len(part))


def added_by_chance(gap: float, spread: float) -> float:
    """How much larger |gap + noise| is on the mean than |gap|, with normal noise of this spread.

    >>> round(added_by_chance(0.0, 0.1), 4), round(added_by_chance(0.5, 0.1), 4)
    (0.0798, 0.0)
    """
    if not spread:
        return 0.0
    ratio = abs(gap) / spread
    density = math.sqrt(2 / math.pi) * math.exp(-(ratio**2) / 2)
    return spread * (density - ratio * math.erfc(ratio / math.sqrt(2)))


def error_detection_area(trust: Tensor, right: Tensor) -> float:
    """The chance that a right answer is trusted more than a wrong one (ties count half).

    0.5 is chance, 1 is perfect; NaN when every answer is right, or every one is wrong.
    """
    good, bad = trust[right.bool()].double(), trust[~right.bool()].double()
    if not len(good) or not len(bad):
        return float("nan")
    bad = bad.sort().values
    below, up_to = torch.searchsorted(bad, good), torch.searchsorted(bad, good, right=True)
    return float((below + up_to).sum()) / (2 * len(good) * len(bad))  # whole numbers: exact


MOST = 2**53
"""No count is larger: up to here a float holds every whole number."""

Share = Annotated[float, Field(ge=0, le=1)]
Several = Annotated[int, Field(ge=1, le=MOST)]


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers given with about the same confidence, and how many of them were right."""

    rows: Several
    confidence: Share
    accuracy: Share
