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
LESS_BELIEF = 0.006
"""How much less than round 0 the folds may believe a round."""
MOST_DRIFT = 0.14
"""How far the class shares of a round's answers may be from those of round 0.

Both limits were chosen on development tasks: benchmarks/development/README.md, section 2.
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
    """Refuse a round that the folds believe less than round 0, or that shifts the classes.

    Neither comes from the round's own beliefs. How many answers change does not matter: good
    rounds change a tenth of them.
    """

    folds: Folds | None
    """None where there are too few labels for folds: the shift alone decides then."""

    def __call__(self, labels: Sequence[str], answers: Answers) -> Verdict:
        """Whether the student may become the next teacher."""
        shifted = drift(answers.first, answers.after)
        numbers = {"drift": shifted}
        gain = 0.0
        if self.folds is not None:
            gain = self._belief(labels, answers.after) - self._belief(labels, answers.first)
            numbers["belief gain"] = gain
        verdict = no_class_lost(labels, answers)
        why = verdict.why
        if not why and shifted > MOST_DRIFT:
            why = f"the class shares of its answers moved by {shifted:.0%} from the teacher's"
        if not why and gain < -LESS_BELIEF:
            why = f"held-out labels support its answers less than the teacher's, by {-gain:.1%}"
        return Verdict(not why, why, numbers)

    def _belief(self, labels: Sequence[str], answers: Sequence[str]) -> float:
        assert self.folds is not None
        place = {label: c for c, label in enumerate(labels)}
        return self.folds.tilted(torch.tensor([place[answer] for answer in answers]))
