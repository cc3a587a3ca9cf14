"""The losses of a model: cross entropy, soft labels, PHCE, the two contrasts, smoothness.

Every loss returns one value for each row; ``fit`` weighs and averages. Losses are frozen
dataclasses that can be called, so a method can hold them as data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from selftrain.errors import require


@dataclass(frozen=True, slots=True)
class CrossEntropy:
    """-log p of the label (Eq. 8; the paper prints it without the minus)."""

    kind: Literal["cross-entropy"] = "cross-entropy"
    """Names this loss."""

    def __call__(self, logits: Tensor, labels: Tensor, _soft: Tensor) -> Tensor:
        """The loss of each row, [B]."""
        return F.cross_entropy(logits, labels, reduction="none")


@dataclass(frozen=True, slots=True)
class Soft:
    """Cross entropy against all of the teacher's probabilities instead of its best class."""

    kind: Literal["soft"] = "soft"
    """Names this loss."""

    def __call__(self, logits: Tensor, _labels: Tensor, soft: Tensor) -> Tensor:
        """The loss of each row, [B]."""
        return -(soft * F.log_softmax(logits, 1)).sum(1)


@dataclass(frozen=True, slots=True)
class PHCE:
    """Partially Huberised cross entropy (Eq. 9, 14): the pull of a wrong label is limited.

    Where the label's probability p is at most 1/tau the loss is a straight line,
    ``-tau p + log tau + 1``, and elsewhere it is ``-log p``; value and slope meet at 1/tau.
    The slope, and so the pull of one example, never exceeds tau. tau → ∞ is cross entropy.
    """

    tau: float = 10.0
    """The steepest slope, above 1. A smaller tau lets a wrong label pull less."""
    kind: Literal["phce"] = "phce"
    """Names this loss."""

    def __post_init__(self) -> None:
        require(self.tau > 1, "tau", self.tau, "a number above 1", "tau = 10 is the paper's")

    def __call__(self, logits: Tensor, labels: Tensor, _soft: Tensor) -> Tensor:
        """The loss of each row, [B]."""
        return phce(F.log_softmax(logits, 1).gather(1, labels[:, None]).squeeze(1), self.tau)


def phce(log_p: Tensor, tau: float) -> Tensor:
    """PHCE of log-probabilities, elementwise (Eq. 14)."""
    over = log_p + math.log(tau)  # log of tau p: the joint is at 0
    # Clamped, because where() multiplies the side not taken by zero, and 0 · inf is not a number.
    line = 1 + math.log(tau) - over.clamp(max=0).exp()
    return torch.where(over <= 0, line, -log_p)


AnyLoss = Annotated[CrossEntropy | Soft | PHCE, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True)
class EasyHard:
    """Easy-hard contrast (Eq. 10): easy rows of a class together, away from its doubtful ones.

    For an easy anchor of class c the positive is another easy row of c, the negatives are hard
    rows with the same pseudo label c:

        -log[ e^g(x,x+) / ( e^g(x,x+) + mean_k e^g(x,x-_k) ) ],   g = cosine / temperature

    The paper prints the bare ratio and adds it; minimising that would push positives apart.
    """

    weight: float = 0.1
    """lambda of Eq. 11: how much the contrast counts beside the loss."""
    negatives: int = 4
    """N_n: hard rows of each class present in a batch."""
    temperature: float = 0.1
    """Divides every cosine; smaller is sharper."""

    def __post_init__(self) -> None:
        require(self.weight >= 0, "lambda (contrast weight)", self.weight, "0 or more")
        require(self.negatives >= 1, "N_n (contrast negatives)", self.negatives, "1 or more")
        require(self.temperature > 0, "temperature", self.temperature, "a number above 0")


def contrast(anchors: Tensor, positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    """The contrast of each anchor (Eq. 10): anchors and positives [A, D], negatives [A, K, D].

    Computed as softplus(logmeanexp(g-) - g+), which is the same and cannot overflow.
    """
    near = F.cosine_similarity(anchors, positives, dim=-1) / temperature  # [A]
    far = F.cosine_similarity(anchors[:, None], negatives, dim=-1) / temperature  # [A, K]
    far_mean = torch.logsumexp(far, 1) - math.log(negatives.shape[1])
    return F.softplus(far_mean - near)


@dataclass(frozen=True, slots=True)
class SupCon:
    """Supervised contrast (Khosla et al., 2020): rows of one label together, all others apart.

    For a row x of a batch, with P the other rows of its label and A all other rows:

        -mean_p∈P log[ e^g(x,p) / sum_a∈A e^g(x,a) ],   g = cosine / temperature

    SetFit trains its encoder by pairs of labels too. With a few labels a class it moves the encoder
    further than cross entropy does, whose loss is soon zero.
    """

    temperature: float = 0.1
    """Divides every cosine; smaller is sharper."""

    def __post_init__(self) -> None:
        require(self.temperature > 0, "temperature", self.temperature, "a number above 0")


def supcon(features: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """The supervised contrast of each row, [B]: features [B, D], labels [B].

    A row without another of its label has a contrast of 0.
    """
    unit = F.normalize(features, dim=1)
    itself = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    similarity = (unit @ unit.T / temperature).masked_fill(itself, -torch.inf)  # [B, B]
    log_p = similarity.log_softmax(1).masked_fill(itself, 0)
    partners = (labels[:, None] == labels) & ~itself
    return -(log_p * partners).sum(1) / partners.sum(1).clamp(min=1)


@dataclass(frozen=True, slots=True)
class Smooth:
    """Neighbours get close features (CEST, a reconstruction: its graph formula was not at hand).

    Over the pairs of a batch with distance d between their vectors of length 1:

        mean[ W d² + (1 - W) max(0, margin - d)² ],   W = 1 for neighbours of one pseudo label
    """

    weight: float = 0.1
    """lambda: how much it counts beside the loss."""
    neighbours: int = 2
    """k: nearest easy rows of each easy row, by the teacher's vectors."""
    margin: float = 1.0
    """Rows that are no neighbours are pushed apart up to this distance."""

    def __post_init__(self) -> None:
        require(self.weight >= 0, "lambda (smooth weight)", self.weight, "0 or more")
        require(self.neighbours >= 1, "k (neighbours)", self.neighbours, "1 or more")
        require(self.margin > 0, "margin", self.margin, "a number above 0")


def smoothness(features: Tensor, tied: Tensor, margin: float) -> Tensor:
    """The mean over all pairs of rows: features [B, D], tied [B, B] True where W is 1."""
    unit = F.normalize(features, dim=1)
    one, other = torch.triu_indices(len(unit), len(unit), offset=1, device=unit.device)
    # The root of zero has no slope: two equal rows get a distance of a millionth instead.
    distance = ((unit[one] - unit[other]).square().sum(1) + 1e-12).sqrt()
    gap = (margin - distance).clamp(min=0)
    pairs = torch.where(tied[one, other], distance.square(), gap.square())
    return pairs.mean()
