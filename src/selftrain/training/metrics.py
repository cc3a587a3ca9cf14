"""How good an answer is: accuracy, F1, calibration, mean ± sd over seeds, and luck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, isnan, nan
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


def reliability(p: Tensor, gold: Tensor, bins: int = 10) -> list[tuple[int, float, float]]:
    """How many answers fall into each equal bin of confidence, how sure and how right they are.

    Empty bins are left out.
    """
    sure, answers = p.double().max(1)
    right = (answers == gold).double()
    bin_of = (sure * bins).long().clamp(max=bins - 1)
    inside = [bin_of == b for b in range(bins)]
    return [
        (int(rows.sum()), float(sure[rows].mean()), float(right[rows].mean()))
        for rows in inside
        if bool(rows.any())
    ]


def calibration_error(p: Tensor, gold: Tensor, bins: int = 10) -> float:
    """Expected calibration error: how far confidence and accuracy lie apart, over equal bins.

    0 means that of the answers given with confidence 0.8, 80 % are right.
    """
    parts = reliability(p, gold, bins)
    return sum(rows * abs(sure - right) for rows, sure, right in parts) / len(gold)


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


# ── better, or luck? ─────────────────────────────────────────────────────────────────────────

EXACT = 16  # pairs: up to here every choice of signs is tried, 2^16 of them
DRAWS = 2**16 - 1  # beyond it this many are drawn, always the same
SEED = 20_231_206


def sign_flip(differences: Sequence[float]) -> float:
    """How often chance alone moves the mean of paired differences this far from 0: a p value.

    If two methods are equally good, each difference is as likely to be d as -d. The p value is the
    share of all choices of signs whose mean is at least as far from 0 as the one seen (two-sided);
    beyond ``EXACT`` pairs it is (b + 1) / (m + 1), where b of m = ``DRAWS`` drawn ones are. Neither
    the order of the pairs nor which method is named first changes it. NaN where a difference is.

    >>> sign_flip([1.0, 2.0, 3.0])  # all signs alike: 2 of 8
    0.25
    """
    sizes = torch.tensor(sorted(map(abs, differences)), dtype=torch.float64)  # [N]
    # Sums of the same numbers in another order differ in their last bits, and must count as ties.
    seen = abs(fsum(differences)) - 1e-9 * float(sizes.sum())
    if isnan(seen):
        return nan
    if len(sizes) <= EXACT:
        sums = torch.zeros(1, dtype=torch.float64)
        for size in sizes:
            sums = torch.cat([sums + size, sums - size])
        return float((sums.abs() >= seen).double().mean())
    generator = torch.Generator().manual_seed(SEED)
    sums = torch.zeros(DRAWS, dtype=torch.float64)
    for size in sizes:
        sums += size * (2 * torch.randint(2, (DRAWS,), generator=generator) - 1)
    return (int((sums.abs() >= seen).sum()) + 1) / (DRAWS + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """p values of several comparisons, corrected so that one false find among them stays as rare.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none falls below one that
    was smaller, none exceeds 1 (Holm's method).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return corrected
