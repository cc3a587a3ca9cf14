"""How good a model probably is, without a test set; and probabilities that are as true.

The folds, regressions on the pretrained vectors that each miss a part of the labels, say how far
they believe a model's answers on the pool. For a model that trained its encoder belief is too
modest, because the model is better than the folds, and agreement too high where they know little:
constants weigh the two. For a frozen encoder, which answers as the folds do, the mean of their
belief and of the mixture over their scores needs no constant. Which is measured where:
benchmarks/development/README.md, sections 10 and 12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from selftrain.training.folds import Folds
from selftrain.training.mixture import mixture_belief

Share = Annotated[float, Field(ge=-1e-9, le=1 + 1e-9, allow_inf_nan=False)]
Temperature = Annotated[float, Field(gt=0.01, lt=100, allow_inf_nan=False)]
BELIEF, AGREEMENT = 0.51, 0.54
"""The weights of the folds' belief in a model's answers, and of their agreement with them."""
MARGIN, FROZEN_MARGIN = 0.06, 0.07
"""How far the estimate was off in nine of ten development runs of other tasks."""
TRAINED_INTERVALS, FROZEN_INTERVALS = (216, 229), (553, 648)
"""How many intervals had the truth in them, of how many models of development tasks: those that
trained their encoder, by constants of other tasks, and those of the encoder as it is."""
PRIOR_ROWS = 32.0
"""Rows of the model's own belief by which the class shares of its answers are shrunk."""
NINE_OF_TEN = NormalDist().inv_cdf(0.95)
"""Nine of ten normal draws are less than this many standard deviations from their mean."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The accuracy that a model probably has on texts like those of the pool."""

    accuracy: Share
    low: Share
    high: Share
    belief: Share
    """The mean belief of the folds in the model's answers."""
    agreement: Share
    """The share of answers that the folds give too."""
    mixture: Share | None = None
    """The mean belief of the mixture over the folds' scores; None in older estimates."""


@dataclass(frozen=True, slots=True)
class Judges:
    """Those that say how right the answers of a model are."""

    folds: Folds
    mixture: Tensor
    """The belief of the mixture over the folds' scores, [N, C]."""
    frozen: bool
    """Whether the models that are judged have the pretrained encoder as it is."""

    @classmethod
    def of(cls, folds: Folds, *, frozen: bool) -> Judges:
        """The judges of the models of a run."""
        return cls(folds, mixture_belief(folds), frozen)


def expected_accuracy(answers: Tensor, judges: Judges) -> Expected:
    """The expected accuracy of answers [N] to the pool rows that the folds were asked about.

    The interval is as wide as the labels leave it, or as chance among so few pool rows.
    """
    folds = judges.folds
    belief, agreement = folds.tilted(answers), folds.agreement(answers)
    mixture = float(judges.mixture.gather(1, answers[:, None]).mean())
    hits, rows = folds.hits()
    at_most = (rows + 0.5) / (rows + 1)  # so few labels never show that a model makes no error
    if judges.frozen:
        accuracy, margin = (belief + mixture) / 2, FROZEN_MARGIN
    else:
        accuracy, margin = BELIEF * belief + AGREEMENT * agreement, MARGIN
    accuracy = min(at_most, accuracy)
    half = max(margin, half_width(hits, rows), half_width(accuracy, len(answers)))
    low, high = max(0.0, accuracy - half), min(1.0, accuracy + half)
    return Expected(accuracy, low, high, belief, agreement, mixture)


def half_width(share: float, rows: float) -> float:
    """Half of Wilson's interval for the chance of a hit, after this share of hits in rows.

    >>> round(half_width(0.75, 32), 3)
    0.122
    """
    z = NINE_OF_TEN
    spread = math.sqrt(share * (1 - share) / rows + (z / (2 * rows)) ** 2)
    return z * spread / (1 + z**2 / rows)


def wilson(share: float, rows: float) -> tuple[float, float]:
    """Wilson's interval for the chance of a hit, after this share of hits in rows.

    >>> [round(end, 2) for end in wilson(0.75, 32)]
    [0.61, 0.85]
    """
    extra = NINE_OF_TEN**2 / rows
    middle, half = (share + extra / 2) / (1 + extra), half_width(share, rows)
    return max(0.0, middle - half), min(1.0, middle + half)


LOGS = torch.linspace(-2, 2, 401, dtype=torch.float64)
"""Logarithms of the temperatures that are tried."""


def temperature_for(logits: Tensor, accuracy: float) -> float:
    """The temperature at which the mean confidence of logits [N, C] is this accuracy.

    >>> round(temperature_for(torch.tensor([[2.0, 0.0]]), 0.731), 1)
    2.0
    """
    tried = LOGS.exp()
    means = torch.stack([(logits.double() / t).softmax(1).max(1).values.mean() for t in tried])
    return float(tried[(means - accuracy).abs().argmin()])


def class_shares(p: Tensor) -> tuple[Tensor, Tensor]:
    """The class shares of the pool that calibrated probabilities [N, C] believe, and that answer.

    Of the estimates tried, a correction from the mean belief to the shares of the answers loses
    least (benchmarks/development). They are shrunk to the belief, and no share is 0.

    >>> belief, answered = class_shares(torch.tensor([[0.75, 0.25]]).repeat(98, 1))
    >>> belief, answered
    (tensor([0.7450, 0.2550], dtype=torch.float64), tensor([0.9372, 0.0628], dtype=torch.float64))
    """
    rows, classes = p.shape
    belief = (p.double().sum(0) + 1) / (rows + classes)
    answers = p.argmax(1).bincount(minlength=classes)
    return belief, (answers + PRIOR_ROWS * belief) / (rows + PRIOR_ROWS)
