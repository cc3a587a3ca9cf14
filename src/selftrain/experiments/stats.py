"""Whether a difference could be chance: spread over seeds, sign-flip test, Holm correction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, isnan, nan
from statistics import fmean, stdev

import torch


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


MISSING = "–"


def mean_of(values: Sequence[float | None]) -> str:
    """Mean ± sd in percent; of how many values, where some are missing.

    >>> mean_of([0.80, 0.82]), mean_of([0.80, None, 0.82]), mean_of([None, None])
    ('81.0 ± 1.4', '81.0 ± 1.4 (2 of 3)', '–')
    """
    known = [100 * value for value in values if value is not None]
    if not known:
        return MISSING
    some = f" ({len(known)} of {len(values)})" if len(known) < len(values) else ""
    return f"{spread(known)}{some}"


# ── better, or luck? ─────────────────────────────────────────────────────────────────────────

EXACT = 16  # pairs: up to here every choice of signs is tried, 2^16 of them
DRAWS = 2**16 - 1  # with more pairs this many are drawn, always the same
SEED = 20_231_206


def sign_flip(differences: Sequence[float]) -> float:
    """How often chance alone moves the mean of paired differences this far from 0: a p value.

    If two methods are equally good, each difference is as likely to be d as -d. The p value is the
    share of all choices of signs whose mean is at least as far from 0 as the observed one
    (two-sided). With more than ``EXACT`` pairs it is (b + 1) / (m + 1), where b of m = ``DRAWS``
    drawn choices are that far. Neither the order of the pairs nor which method is named first
    changes it. It is NaN where a difference is.

    >>> sign_flip([1.0, 2.0, 3.0])  # all signs alike: 2 of 8
    0.25
    """
    sizes = torch.tensor(sorted(map(abs, differences)), dtype=torch.float64)  # [N]
    # Sums of the same numbers in another order differ in their last bits, and must count as ties.
    observed = abs(fsum(differences)) - 1e-9 * float(sizes.sum())
    if isnan(observed):
        return nan
    if len(sizes) <= EXACT:
        sums = torch.zeros(1, dtype=torch.float64)
        for size in sizes:
            sums = torch.cat([sums + size, sums - size])
        return float((sums.abs() >= observed).double().mean())
    generator = torch.Generator().manual_seed(SEED)
    sums = torch.zeros(DRAWS, dtype=torch.float64)
    for size in sizes:
        sums += size * (2 * torch.randint(2, (DRAWS,), generator=generator) - 1)
    return (int((sums.abs() >= observed).sum()) + 1) / (DRAWS + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """p values of several comparisons, corrected for their number (Holm's method).

    The smallest of m is multiplied by m, the next by m - 1, and so on; none falls below one that
    was smaller, none exceeds 1. So one false discovery among them stays as rare as with one test.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return corrected
