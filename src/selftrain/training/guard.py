"""Accept or refuse a round: self-training must not make a good model worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch

from selftrain.training.folds import Folds, drift

SHOWN = 8  # classes named in a verdict
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
LESS_BELIEF_DEEP = 0.03
"""In place of ``LESS_BELIEF`` for a student that trained an encoder: it changes more answers."""
LESS_THAN_TEACHER = 0.015
"""How much less than its teacher the folds may believe such a student.

How the last two limits were chosen: section 7 of the same page.
"""


LEAST_BELIEF = 0.4
"""Where the folds believe the answers of round 0 less than this, rounds only lost (section 9)."""


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
    deep: bool = False
    """Whether the student trained an encoder of its own, not the head alone."""


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
    names = ", ".join(f"`{label}` ({teacher[label]} before)" for label in lost[:SHOWN])
    names += f" and {len(lost) - SHOWN} more classes" if len(lost) > SHOWN else ""
    rows = len(answers.after)
    return Verdict(False, f"collapse: on {rows} pool rows the student never answers {names}")


@dataclass(frozen=True, slots=True)
class NotWorse:
    """Refuse a round that held-out labels support too little, or that shifts the class shares.

    Neither comes from the round's own beliefs. How many answers change does not matter: good
    rounds change a tenth of them.
    """

    folds: Folds | None
    """None where the labels are too few for folds or tell them nothing: the shift alone decides."""

    def __call__(self, labels: Sequence[str], answers: Answers) -> Verdict:
        """Whether the student may become the next teacher."""
        shift = drift(answers.first, answers.after)
        numbers = {"drift": shift}
        why = no_class_lost(labels, answers).why or too_far(shift)
        if self.folds is not None:
            first, after = (self._belief(labels, each) for each in (answers.first, answers.after))
            gain = after - first
            over_teacher = after - self._belief(labels, answers.before)
            numbers |= {"belief gain": gain, "belief gain over teacher": over_teacher}
            less = LESS_BELIEF_DEEP if answers.deep else LESS_BELIEF
            why = why or too_unsure(first) or too_little(gain, shift, less)
            why = why or (less_than_teacher(over_teacher) if answers.deep else "")
        return Verdict(not why, why, numbers)

    def _belief(self, labels: Sequence[str], answers: Sequence[str]) -> float:
        """How far the folds believe these answers."""
        assert self.folds is not None
        place = {label: c for c, label in enumerate(labels)}
        return self.folds.tilted(torch.tensor([place[answer] for answer in answers]))


def too_far(shift: float) -> str:
    """Why a shift of the class shares is too large; empty where it is not."""
    return f"its answers shift the class shares by {shift:.0%}" if shift > MOST_DRIFT else ""


def too_unsure(belief: float) -> str:
    """Why nothing can be learnt from answers that the folds believe so little; empty otherwise.

    >>> too_unsure(0.31)
    'held-out labels support the answers of round 0 by only 31%: too little to learn from'
    """
    if belief >= LEAST_BELIEF:
        return ""
    return (
        f"held-out labels support the answers of round 0 by only {belief:.0%}: "
        "too little to learn from"
    )


def less_than_teacher(gain: float) -> str:
    """Why the folds believe a student too much less than its teacher; empty where they do not."""
    if gain >= -LESS_THAN_TEACHER:
        return ""
    points = f"({100 * gain:+.1f} points)"
    return f"held-out labels support its answers less than those of its teacher {points}"


def too_little(gain: float, shift: float, less: float = LESS_BELIEF) -> str:
    """Why the folds support a round too little; empty where they support it enough.

    >>> too_little(-0.03, 0.0)
    'held-out labels support its answers less than those of round 0 (-3.0 points)'
    >>> too_little(0.01, 0.1)
    'its answers shift the class shares by 10%, and held-out labels hardly support it (+1.0 points)'
    """
    if gain >= BELIEF_PER_DRIFT * shift - less:
        return ""
    points = f"({100 * gain:+.1f} points)"
    if gain < -less:
        return f"held-out labels support its answers less than those of round 0 {points}"
    shifted = f"its answers shift the class shares by {shift:.0%}"
    return f"{shifted}, and held-out labels hardly support it {points}"
