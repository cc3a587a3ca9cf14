"""Labels that look wrong: gold rows that models without them answer otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from selftrain.data.rows import Labelled
from selftrain.training.folds import Folds


@dataclass(frozen=True, slots=True)
class Doubt:
    """A label that models which did not see it would not give."""

    row: int
    """The place of the row among the labelled ones, from 1."""
    uid: str
    label: str
    answer: str
    """What the models say."""
    probability: float
    """How far they believe it."""

    def __str__(self) -> str:
        return (
            f"row {self.row} is labelled `{self.label}`; models that did not see it say "
            f"`{self.answer}`, {self.probability:.2f} ({self.uid})"
        )


def doubts(labelled: Sequence[Labelled], labels: Sequence[str], folds: Folds) -> list[Doubt]:
    """The labelled rows that the folds vote against, the least believed label first."""
    rows = torch.arange(len(labelled))
    in_label = folds.gold[rows, folds.labels]
    probability, answers = folds.gold.max(1)
    order = (probability - in_label).argsort(descending=True, stable=True).tolist()
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
