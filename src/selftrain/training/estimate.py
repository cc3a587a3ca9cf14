"""After a run: how good each round's model probably is, and which labels look wrong.

Nothing here changes a model or needs a label of the pool. A run that was just trained has read
the pool already; of one that was loaded each encoder reads it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from selftrain.data.rows import Example
from selftrain.data.split import fewest_labels
from selftrain.training.draw import slice_rows
from selftrain.training.expected import (
    Expected,
    Judges,
    Share,
    Temperature,
    class_shares,
    expected_accuracy,
    temperature_for,
)
from selftrain.training.job import Job
from selftrain.training.label_check import Doubt, doubts
from selftrain.training.loop import Round, last_accepted
from selftrain.training.machine import Machine
from selftrain.training.readings import Readings

FEWEST_LABELS = 4
"""Of each class: with fewer the folds say too little of a model."""


@dataclass(frozen=True, slots=True)
class RoundEstimate:
    """What is expected of the model of a round."""

    number: int
    expected: Expected
    temperature: Temperature
    """Logits divided by it have the expected accuracy as their mean confidence on the pool."""
    belief: tuple[Share, ...] = ()
    """The mean calibrated probability of each class on the pool; empty in older estimates."""
    prior: tuple[Share, ...] = ()
    """The class shares of the pool, from the answers: what `--prior pool` corrects to."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is expected of the models of a run, and the labels that look wrong."""

    rounds: tuple[RoundEstimate, ...]
    hits: Share
    """The share of labelled rows that models without them answer right, by the pool's prior."""
    hit_rows: float
    """How many equal rows would say as much as these do."""
    doubts: tuple[Doubt, ...]
    prior: tuple[Share, ...] = ()
    """The shares of the classes in the pool, by the folds, in the order of the task."""

    frozen: bool = False
    """Whether its models have the pretrained encoder as it is."""

    def of(self, number: int) -> RoundEstimate:
        """The estimate of the round of this number."""
        return next(each for each in self.rounds if each.number == number)


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the folds say of one row."""

    uid: str
    label: str
    """Of a labelled row its label; of a pool row the answer of the last accepted model."""
    folds: tuple[Share, ...]
    """The probability of each class: of a labelled row by the fold that did not see it, of a pool
    row the mean of the folds, by the pool's prior."""
    model: tuple[Share, ...] = ()
    """Of a pool row the calibrated probabilities of the last accepted model."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The estimate of a run, and what it rests on: opinions of the labelled and of pool rows."""

    estimate: Estimate
    labelled: tuple[Opinion, ...]
    pool: tuple[Opinion, ...]


def estimate(job: Job, rounds: Sequence[Round], machine: Machine) -> Estimate | None:
    """The estimate of a run; None where the folds know nothing."""
    judged = judge(job, rounds, machine)
    return None if judged is None else judged.estimate


def judge(job: Job, rounds: Sequence[Round], machine: Machine) -> Judged | None:
    """What the folds say of a run; None where they know nothing: no pool, or labels that they miss.

    They must answer the labels they did not see better than by chance, by one standard error, and
    each class must have four labels.
    """
    if fewest_labels(job.split.labelled)[1] < FEWEST_LABELS:
        return None
    known = (round_.readings for round_ in reversed(rounds) if round_.readings is not None)
    readings = next(known, None) or Readings(job, slice_rows(job), rounds, machine)
    readings.machine = machine
    if not readings.rows:
        return None
    folds = readings.folds
    if folds is None or not folds.know_something:
        return None
    judges = Judges.of(folds, frozen=job.method.is_frozen)
    found = []
    for round_ in rounds:
        if not round_.failed:
            logits = readings.logits(round_)
            expected = expected_accuracy(logits.argmax(1), judges)
            temperature = temperature_for(logits, expected.accuracy)
            shares = class_shares((logits / temperature).softmax(1))
            believed, answered = (tuple(each.tolist()) for each in shares)
            found.append(RoundEstimate(round_.number, expected, temperature, believed, answered))
    wrong = doubts(job.split.labelled, job.task.labels, folds)
    prior = tuple(folds.prior.tolist())
    run = Estimate(tuple(found), *folds.hits(), tuple(wrong), prior, job.method.is_frozen)
    final = last_accepted(rounds)
    logits = readings.logits(final) / run.of(final.number).temperature
    gold = [row.label for row in job.split.labelled]
    return Judged(
        run,
        _opinions([row.example for row in job.split.labelled], gold, folds.gold),
        _opinions(readings.rows, readings.answers(final), folds.pool_belief, logits.softmax(1)),
    )


def _opinions(
    rows: Sequence[Example], labels: Sequence[str], folds: Tensor, model: Tensor | None = None
) -> tuple[Opinion, ...]:
    """One for each row, from the probabilities of the folds and of a model, [N, C]."""
    of_model = [()] * len(rows) if model is None else map(tuple, model.tolist())
    parts = zip(rows, labels, map(tuple, folds.tolist()), of_model, strict=True)
    return tuple(Opinion(row.uid, label, belief, shares) for row, label, belief, shares in parts)
