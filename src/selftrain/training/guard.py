"""Accept or refuse a round: self-training must not make a good model worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch

from selftrain.training.folds import Folds, drift

FEW = 5
"""A class with fewer answers may vanish from the slice by chance: that refuses no round."""
LESS_BELIEF = 0.02
"""How much less than round 0 the folds may believe a round that keeps its class shares.

A good round loses some: round 0 learnt from the labels alone, and so did the folds."""
BELIEF_PER_DRIFT = 0.6
"""How much more they must believe a round whose answers have other class shares."""
MOST_DRIFT = 0.17
"""How far the class shares of a round's answers may be from those of round 0.

The three limits were chosen on development tasks: benchmarks/development/README.md, section 2.
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a student may become the next teacher, and why not."""

    accept: bool
    why: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """What it rests on, by name."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of three models on the same fixed rows of the pool."""

    first: Sequence[str]
    """Of round 0."""
    before: Sequence[str]
    """Of the teacher of this round."""
    after: Sequence[str]
    """Of its student."""


class Guard(Protocol):
    """Judges a round by answers on the pool; no gold label of the pool is needed."""

    def __call__(self, labels: Sequence[str], answers: Answers) -> Verdict:
        """Whether the student may become the next teacher."""


def no_class_lost(labels: Sequence[str], answers: Answers) -> Verdict:
    """Refuse a student that never answers a class that its teacher answers (collapse alarm)."""
    teacher, student = Counter(answers.before), Counter(answers.after)
    lost = [label for label in labels if teacher[label] >= FEW and not student[label]]
    if not lost:
        return Verdict(True)
    names = ", ".join(f"`{label}` ({teacher[label]} before)" for label in lost)
    rows = len(answers.after)
    return Verdict(False, f"collapse: on {rows} pool rows the student never answers {names}")


@dataclass(frozen=True, slots=True)
class NotWorse:
    """Refuse a round that held-out labels support too little, or that shifts the class shares.

    Neither comes from the round's own beliefs. How many answers change does not matter: good
    rounds change a tenth of them.
    """

    folds: Folds | None
    """None where there are too few labels for folds: the shift alone decides then."""

    def __call__(self, labels: Sequence[str], answers: Answers) -> Verdict:
        """Whether the student may become the next teacher."""
        shift = drift(answers.first, answers.after)
        gain = self._gain(labels, answers)
        numbers = {"drift": shift} | ({} if gain is None else {"belief gain": gain})
        why = no_class_lost(labels, answers).why or too_far(shift) or too_little(gain, shift)
        return Verdict(not why, why, numbers)

    def _gain(self, labels: Sequence[str], answers: Answers) -> float | None:
        """How much more the folds believe the student than round 0; None without folds."""
        if self.folds is None:
            return None
        place = {label: c for c, label in enumerate(labels)}
        after, first = (
            self.folds.tilted(torch.tensor([place[answer] for answer in part]))
            for part in (answers.after, answers.first)
        )
        return after - first


def too_far(shift: float) -> str:
    """Why a shift of the class shares is too large; empty where it is not."""
    return f"its answers shift the class shares by {shift:.0%}" if shift > MOST_DRIFT else ""


def too_little(gain: float | None, shift: float) -> str:
    """Why the folds support a round too little; empty where they support it enough.

    >>> too_little(-0.03, 0.0)
    'held-out labels support its answers less than those of round 0 (-3.0 points)'
    >>> too_little(0.01, 0.1)
    'its answers shift the class shares by 10%, and held-out labels hardly support it (+1.0 points)'
    """
    if gain is None or gain >= BELIEF_PER_DRIFT * shift - LESS_BELIEF:
        return ""
    points = f"({100 * gain:+.1f} points)"
    if gain < -LESS_BELIEF:
        return f"held-out labels support its answers less than those of round 0 {points}"
    shifted = f"its answers shift the class shares by {shift:.0%}"
    return f"{shifted}, and held-out labels hardly support it {points}"
