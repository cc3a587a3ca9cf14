"""How far a teacher's answer can be trusted: votes of T dropout passes, and scores from them.

Sums, not stacks: a ``Tally`` adds one pass at a time, so nothing of shape T x N x C is in memory.
Everything here is a pure function on tensors in float64; E[p²]-E[p]² in float32 would be noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from selftrain.errors import no_number


@dataclass(frozen=True, slots=True)
class Votes:
    """The answers of T dropout passes and one plain pass on N examples, summed up."""

    plain: Tensor  # [N, C] probabilities with dropout off
    mean: Tensor  # [N, C] mean probability over the passes
    wins: Tensor  # [N, C] how many passes each class won
    variance: Tensor  # [N, C] of the probability over the passes, ddof 0
    entropy: Tensor  # [N] mean over the passes of each pass's entropy
    passes: int  # T


def joined(parts: Sequence[Votes], order: Tensor | None = None) -> Votes:
    """Several chunks of votes as one, then in the given order of rows."""

    def concatenated(tensors: Iterable[Tensor]) -> Tensor:
        rows = torch.cat(list(tensors))
        return rows if order is None else rows[order]

    return Votes(
        concatenated(part.plain for part in parts),
        concatenated(part.mean for part in parts),
        concatenated(part.wins for part in parts),
        concatenated(part.variance for part in parts),
        concatenated(part.entropy for part in parts),
        parts[0].passes,
    )


def entropy(p: Tensor) -> Tensor:
    """Shannon entropy in nats over the last dimension, with 0 log 0 = 0."""
    nats: Tensor = torch.special.xlogy(p, p).sum(-1)
    return -nats


class Tally:
    """Running sums over dropout passes (Welford), from which ``Votes`` are made."""

    def __init__(self, plain: Tensor) -> None:
        self.plain = plain.double()  # [N, C]
        self.mean = torch.zeros_like(self.plain)
        self.squares = torch.zeros_like(self.plain)  # sum of squared distances to the mean
        self.wins = torch.zeros_like(self.plain)
        self.entropy = self.plain.new_zeros(len(plain))  # [N]
        self.passes = 0
        self.identical = True

    def add(self, p: Tensor) -> None:
        """Count one pass of probabilities, [N, C]."""
        p = p.double()
        self.passes += 1
        step = p - self.mean
        # The first pass moves the mean onto itself: a later one that differs shows as a step.
        self.identical = self.identical and (self.passes == 1 or not bool(step.any()))
        self.mean = self.mean + step / self.passes
        self.squares = self.squares + step * (p - self.mean)
        self.wins = self.wins.scatter_add(1, p.argmax(1, keepdim=True), torch.ones_like(p[:, :1]))
        self.entropy = self.entropy + (entropy(p) - self.entropy) / self.passes

    def votes(self) -> Votes:
        """The votes of the passes so far; a probability that is no number is an error."""
        lost = self.plain.isnan().any(1) | self.mean.isnan().any(1)  # [N]
        if lost.any():
            raise no_number(int(lost.sum()), len(lost))
        variance = self.squares / max(self.passes, 1)
        return Votes(self.plain, self.mean, self.wins, variance, self.entropy, self.passes)


def information_gain(votes: Votes) -> Tensor:
    """What one would learn about the weights from the label: BALD (Eq. 2, 3), in [0, ln C].

    The entropy of the mean minus the mean of the entropies. It is never negative in exact
    arithmetic; rounding is clamped away. From T passes it comes out low by about (T-1)/T, so
    across different T compare ``gain * T / (T - 1)``.
    """
    return (entropy(votes.mean) - votes.entropy).clamp(min=0)  # [N]


def certainty(votes: Votes, *, normalised: bool = False) -> Tensor:
    """How far the passes agree on each example: 1 minus the information gain (Eq. 4).

    The gain reaches ln C, so with three classes or more the difference can fall below zero;
    it is clamped, because a sampling weight cannot be negative. ``normalised`` divides the
    gain by ln C instead, and needs no clamp.
    """
    gain = information_gain(votes)  # [N]
    if normalised:
        gain = gain / max(math.log(votes.mean.shape[1]), 1e-12)  # one class: 0 / 1e-12 is 0
    return (1 - gain).clamp(min=0, max=1)


def pseudo_label(votes: Votes, source: str = "mean") -> Tensor:
    """The class that the teacher gives each example (Eq. 1), as indices [N].

    ``deterministic`` is the paper's: the plain pass. ``mean`` (ours, the default) is the
    predictive mean over the passes (Eq. 12, 13); ``vote`` the class that won most passes.
    """
    return {"deterministic": votes.plain, "mean": votes.mean, "vote": votes.wins}[source].argmax(1)


def confidence(votes: Votes, labels: Tensor) -> Tensor:
    """The mean probability of the pseudo label, in [1/C, 1] when the label is the mean's."""
    return votes.mean.gather(1, labels[:, None]).squeeze(1)  # [N]


def tempered(p: Tensor, temperature: float, shift: Tensor | None = None) -> Tensor:
    """Probabilities [N, C] as if their logits had been divided by a temperature, then shifted [C].

    >>> tempered(torch.tensor([[0.8, 0.2]]), 2.0)
    tensor([[0.6667, 0.3333]])
    """
    if shift is not None:
        return (p.log() / temperature + shift).softmax(1)
    return p if temperature == 1 else (p.log() / temperature).softmax(1)


def aligned(p: Tensor, prior: Tensor) -> Tensor:
    """Probabilities [N, C] divided by how often the pool gives each class (distribution alignment).

    ``prior`` [C] is the pool's mean probability. Where classes are balanced by design, this brings
    a teacher that prefers one word or one class back to all of them.
    """
    lifted = p / prior.clamp(min=1e-12)
    return lifted / lifted.sum(1, keepdim=True).clamp(min=1e-300)


def ranks(x: Tensor) -> Tensor:
    """Each value's place among all, from 0 (lowest) to 1 (highest); ties share their mean place."""
    if len(x) == 1:
        return torch.ones_like(x, dtype=torch.float64)
    _, inverse, counts = torch.unique(x, sorted=True, return_inverse=True, return_counts=True)
    ends = counts.cumsum(0).double()  # last place of each distinct value, counted from 1
    middle: Tensor = ends - (counts.double() + 1) / 2  # mean place, counted from 0
    places: Tensor = middle[inverse] / (len(x) - 1)
    return places
