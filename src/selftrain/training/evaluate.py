"""Scores on labelled rows: the only place where test rows are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from selftrain.data.rows import Example, Labelled
from selftrain.errors import DataError
from selftrain.training.machine import Machine
from selftrain.training.metrics import (
    accuracy,
    calibration_error,
    confusion,
    f1,
    macro_f1,
    reliability,
)

ROWS_AT_ONCE = 256


class Predictor(Protocol):
    """Anything that answers: a classifier, or a baseline."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of the columns of ``probabilities``."""

    def probabilities(self, examples: Sequence[Example]) -> Tensor:
        """The probability of each class for each example, [N, C]."""


def evaluate(
    model: Predictor, test: Sequence[Labelled], machine: Machine | None = None
) -> Mapping[str, float]:
    """Accuracy, macro F1, F1 of each class and calibration error, as shares from 0 to 1."""
    return score(*answered(model, test, machine), model.labels)


def answered(
    model: Predictor, test: Sequence[Labelled], machine: Machine | None = None
) -> tuple[Tensor, Tensor]:
    """The model's probabilities [N, C] for labelled rows, and the gold classes [N]."""
    unseen = sorted({item.label for item in test} - set(model.labels))
    if unseen:
        raise DataError(
            f"label `{unseen[0]}` is in the test rows but was never seen in training",
            f"the model knows: {', '.join(model.labels)}",
        )
    if not test:
        raise DataError("there are no test rows", "give a file with at least one labelled row")
    gold = torch.tensor([model.labels.index(item.label) for item in test])
    progress = (machine or Machine()).progress
    examples = [item.example for item in test]
    starts = range(0, len(examples), ROWS_AT_ONCE)
    p = torch.cat(
        [
            model.probabilities(examples[start : start + ROWS_AT_ONCE])
            for start in progress(starts, "evaluating", len(starts))
        ]
    )
    return p, gold


def evaluation(
    model: Predictor, test: Sequence[Labelled], machine: Machine | None = None
) -> dict[str, Any]:
    """The scores of ``evaluate``, and where the answers err; all plain data."""
    p, gold = answered(model, test, machine)
    return {**score(p, gold, model.labels), **errors(p, gold, model.labels)}


def errors(p: Tensor, gold: Tensor, labels: Sequence[str]) -> dict[str, Any]:
    """Where answers err: rows by gold class and answer, and by confidence; both plain data."""
    counts = confusion(p.argmax(1), gold, len(labels)).tolist()
    return {
        "confusion": {
            label: dict(zip(labels, row, strict=True))
            for label, row in zip(labels, counts, strict=True)
        },
        "reliability": [
            {"rows": rows, "confidence": confidence, "accuracy": right}
            for rows, confidence, right in reliability(p, gold)
        ],
    }


def score(p: Tensor, gold: Tensor, labels: Sequence[str]) -> Mapping[str, float]:
    """The scores of probabilities [N, C] against gold classes [N]."""
    answers = p.argmax(1)
    return {
        "accuracy": accuracy(answers, gold),
        "macro_f1": macro_f1(answers, gold, len(labels)),
        **{f"f1 {label}": f1(answers, gold, c) for c, label in enumerate(labels)},
        "calibration_error": calibration_error(p, gold),
        "rows": float(len(gold)),
    }
