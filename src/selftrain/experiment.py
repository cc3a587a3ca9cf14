"""A method on a task over seeds, beside the references that keep it honest.

The test rows are read here once, after the run, by ``evaluate``; nothing is chosen by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from selftrain.backbone import Backbone
from selftrain.baselines import FrozenLogistic, Majority
from selftrain.data import Labeled, Split
from selftrain.evaluate import evaluate
from selftrain.loop import Round, self_train
from selftrain.machine import Machine
from selftrain.method import Method
from selftrain.runs import Manifest, Run
from selftrain.task import Task


@dataclass(frozen=True, slots=True)
class Cell:
    """The score of one system with one seed."""

    system: str
    seed: int
    accuracy: float


def train(
    folder: Path,
    task: Task,
    split: Split,
    method: Method,
    *,
    backbone: Backbone,
    seed: int,
    on: Machine,
) -> Iterator[Round]:
    """Self-training with every round on disk before it is handed on; goes on where it stopped.

    Rounds already in the folder are handed on first.
    """
    manifest = Manifest.of(task, split, method, backbone=backbone, seed=seed)
    with Run.start(folder, manifest) as run:
        done = run.done(backbone)
        yield from done
        for round_ in self_train(
            task, split, method, backbone=backbone, seed=seed, done=done, on=on
        ):
            run.save(round_)
            yield round_


def cells(
    rounds: Sequence[Round],
    task: Task,
    split: Split,
    test: Sequence[Labeled],
    *,
    backbone: Backbone,
    seed: int,
) -> Iterator[Cell]:
    """Majority, frozen encoder + logistic regression, teacher, and each round, on the test rows."""
    yield Cell("majority", seed, score(Majority(task, split.labeled), test))
    frozen = FrozenLogistic(task, backbone, split.labeled)
    yield Cell("frozen encoder + logistic regression", seed, score(frozen, test))
    for round_ in rounds:
        name = "teacher" if round_.number == 0 else f"round {round_.number}"
        yield Cell(name, seed, score(round_.model, test))


def score(model: Majority | FrozenLogistic | object, test: Sequence[Labeled]) -> float:
    """The accuracy on the test rows."""
    return evaluate(model, test)["accuracy"]  # type: ignore[arg-type]
