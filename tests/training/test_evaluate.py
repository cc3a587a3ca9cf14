"""Scores on labelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from by_hand import example
from selftrain.data.rows import Example, Labelled
from selftrain.errors import DataError
from selftrain.training import evaluate as evaluate_room
from selftrain.training.evaluate import answered, evaluate, evaluation
from selftrain.training.machine import Machine


@dataclass(frozen=True)
class Table:
    """A predictor that looks its answers up."""

    labels: tuple[str, ...]
    answers: dict[str, list[float]]

    def probabilities(self, examples: Sequence[Example]) -> Tensor:
        return torch.tensor([self.answers[each.uid] for each in examples], dtype=torch.float64)


MODEL = Table(
    ("bad", "good"),
    {"uid-0": [0.75, 0.25], "uid-1": [0.25, 0.75], "uid-2": [0.25, 0.75], "uid-3": [0.75, 0.25]},
)


def gold(*labels: str) -> list[Labelled]:
    return [Labelled(example(i), label) for i, label in enumerate(labels)]


def test_scores_by_hand():
    """Answers bad good good bad, gold bad good bad bad: 3 of 4 right.

    F1 of bad: 2·2 / (2 + 3) = .8;  of good: 2·1 / (2 + 1) = .667;  macro .733.
    All four are .75 sure and .75 of them right: calibration error 0.
    """
    numbers = evaluate(MODEL, gold("bad", "good", "bad", "bad"))
    assert dict(numbers) == pytest.approx(
        {
            "accuracy": 0.75,
            "macro_f1": (0.8 + 2 / 3) / 2,
            "f1 bad": 0.8,
            "f1 good": 2 / 3,
            "calibration_error": 0,
            "rows": 4,
        },
        abs=1e-12,
    )


def test_errors_by_class_and_by_confidence_are_told_beside_the_scores():
    result = evaluation(MODEL, gold("bad", "good", "bad", "bad"))
    assert result["accuracy"] == 0.75
    assert result["confusion"] == {"bad": {"bad": 2, "good": 1}, "good": {"bad": 0, "good": 1}}
    assert result["reliability"] == [{"rows": 4, "confidence": 0.75, "accuracy": 0.75}]


def test_a_class_missing_from_the_test_rows_has_an_f1_of_zero():
    numbers = evaluate(Table(("bad", "good", "mixed"), {"uid-0": [0.8, 0.1, 0.1]}), gold("bad"))
    assert numbers["accuracy"] == 1
    assert numbers["f1 mixed"] == 0
    assert numbers["macro_f1"] == pytest.approx(1 / 3)


def test_answers_are_asked_for_slice_by_slice_and_come_in_order(monkeypatch):
    monkeypatch.setattr(evaluate_room, "ROWS_AT_ONCE", 5)
    shown, asked = [], []

    def progress(steps, what, total):
        shown.append((what, total))
        return steps

    class Lengths:
        labels = ("bad", "good")

        def probabilities(self, examples):
            asked.append(len(examples))
            return torch.tensor([[float(len(example.uid)), 0.0] for example in examples])

    rows = gold(*["bad", "good"] * 6)
    p, classes = answered(Lengths(), rows, Machine(progress=progress))
    assert asked == [5, 5, 2]
    assert torch.equal(p, Lengths().probabilities([row.example for row in rows]))
    assert classes.tolist() == [0, 1] * 6
    assert shown == [("evaluating", 3)]


def test_a_label_never_seen_in_training_is_an_error_that_names_it():
    with pytest.raises(DataError, match="`dreadful` is in the test rows") as caught:
        evaluate(MODEL, gold("bad", "dreadful"))
    assert caught.value.hint == "the model knows: bad, good"


def test_no_test_rows_is_an_error():
    with pytest.raises(DataError, match="no test rows"):
        evaluate(MODEL, [])
