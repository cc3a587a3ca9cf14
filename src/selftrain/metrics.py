"""How good an answer is: accuracy, F1, calibration, and mean ± sd over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import torch
from torch import Tensor


def accuracy(answers: Tensor, gold: Tensor) -> float:
    """The share of rows answered right; both [N] class indices."""
    return float((answers == gold).double().mean())


def f1(answers: Tensor, gold: Tensor, c: int) -> float:
    """F1 of class c; 0 where the class is neither answered nor present."""
    right = float(((answers == c) & (gold == c)).sum())
    said_or_was = float((answers == c).sum() + (gold == c).sum())
    return 2 * right / said_or_was if said_or_was else 0.0


def macro_f1(answers: Tensor, gold: Tensor, classes: int) -> float:
    """The plain mean of every class's F1."""
    return fmean(f1(answers, gold, c) for c in range(classes))


def calibration_error(p: Tensor, gold: Tensor, bins: int = 10) -> float:
    """Expected calibration error: how far confidence and accuracy lie apart, over equal bins.

    0 means that of the answers given with confidence 0.8, 80 % are right.
    """
    sure, answers = p.max(1)
    right = (answers == gold).double()
    bin_of = (sure * bins).long().clamp(max=bins - 1)
    gaps = [
        float((right[rows].mean() - sure[rows].double().mean()).abs() * rows.sum())
        for rows in (bin_of == b for b in range(bins))
        if bool(rows.any())
    ]
    return sum(gaps) / len(gold)


def error_detection_area(trust: Tensor, right: Tensor) -> float:
    """The chance that a right answer is trusted more than a wrong one (ties count half).

    0.5 is blind, 1 is perfect; NaN when every answer is right, or every one is wrong.
    """
    good, bad = trust[right.bool()].double(), trust[~right.bool()].double()
    if not len(good) or not len(bad):
        return float("nan")
    bad = bad.sort().values
    below, up_to = torch.searchsorted(bad, good), torch.searchsorted(bad, good, right=True)
    return float((below + up_to).sum()) / (2 * len(good) * len(bad))  # whole numbers: exact


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation over seeds."""

    mean: float
    sd: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.sd:.1f}" if self.n > 1 else f"{self.mean:.1f}"


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation (ddof 1); sd is 0 for a single value."""
    return Spread(fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values))
