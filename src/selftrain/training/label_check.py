"""Labels that look wrong: gold rows that a model without them answers otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from selftrain.data.rows import Labelled
from selftrain.training.expected import Share
from selftrain.training.folds import Folds


@dataclass(frozen=True, slots=True)
class Doubt:
    """A label that a model which did not see it would not give."""

    row: int
    """The place of the row among the labelled ones, from 1."""
    uid: str
    label: str
    answer: str
    """What that model says."""
    probability: Share
    """How far it believes that."""


def doubts(labelled: Sequence[Labelled], labels: Sequence[str], folds: Folds) -> list[Doubt]:
    """The labelled rows that a fold without them answers otherwise, the surest answer first."""
    probability, answers = folds.gold.max(1)
    order = probability.argsort(descending=True, stable=True).tolist()
    return [
        Doubt(
            row=at + 1,
            uid=labelled[at].example.uid,
            label=labelled[at].label,
            answer=labels[int(answers[at])],
            probability=float(probability[at]),
        )
        for at in order
        if answers[at] != folds.labels[at]
    ]
