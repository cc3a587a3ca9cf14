"""The ladder of a run: simple models beside its own, so that one sees what the rest is worth.

Each rung has an accuracy that needs no test set, where the labels tell enough, and the seconds
that its training took from the start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Annotated, Literal, Protocol

import torch
from pydantic import Field
from torch import Tensor

from selftrain.data.pool import text_key
from selftrain.data.rows import Example, Labelled
from selftrain.model.classifier import Classifier
from selftrain.seeds import child
from selftrain.training.baselines import Majority, TfidfLogistic
from selftrain.training.estimate import Estimate
from selftrain.training.evaluate import Predictor, evaluate
from selftrain.training.expected import Share, wilson
from selftrain.training.folds import cuts_of, hits
from selftrain.training.job import Job
from selftrain.training.loop import Round, last_accepted
from selftrain.training.machine import Machine
from selftrain.training.probe import logits_of

MAJORITY, TFIDF = "majority", "tf-idf"
FROZEN, FROZEN_SELF_TRAINED = "frozen", "frozen self-trained"
TEACHER = "teacher"
SIMPLE = (MAJORITY, TFIDF, FROZEN, FROZEN_SELF_TRAINED)
"""The simplest first."""
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Rung:
    """One model of a ladder."""

    name: str
    accuracy: Share | None
    """On texts like the pool's, found without a test set; None where the labels tell too little."""
    low: Share | None
    """The interval around it; None where there is none."""
    high: Share | None
    how: Literal["out of fold", "expected"]
    """From labels that the model did not see, or from what the folds and their prior believe."""
    seconds: Seconds
    """What its training took from the start; of a round with all rounds before it."""
    measured: Share | None = None
    """The accuracy on test rows; None without them."""


@dataclass(frozen=True, slots=True)
class Models:
    """The rounds of a run, and what is expected of them."""

    rounds: Sequence[Round]
    estimate: Estimate | None


def has_frozen_rungs(job: Job) -> bool:
    """Whether a frozen encoder is another model than the run's own, with a pool to learn from.

    A method that reads by a prompt is compared with one too: the folds read the same vectors, so a
    backbone on which they say nothing shows it, by no estimate or by a low one.
    """
    return not job.method.is_frozen and any(True for _ in job.split.unlabelled)


def names_of(job: Job, rounds: Sequence[Round]) -> list[str]:
    """The rungs of a run, the simplest first."""
    simple = SIMPLE if has_frozen_rungs(job) else SIMPLE[:2]
    return [*simple, *(name_of(round_) for round_ in rounds if round_.accepted)]


class Numbered(Protocol):
    """A round, or the record of one."""

    @property
    def number(self) -> int:
        """0 for the teacher, then 1, 2 and so on."""


def name_of(round_: Numbered) -> str:
    """The name of a round as a rung."""
    return f"round {round_.number}" if round_.number else TEACHER


def climb(
    job: Job, models: Models, frozen: Models | None, scorer: Scorer, done: Sequence[Rung] = ()
) -> Iterator[Rung]:
    """The rungs of a run, the simplest first; continues after ``done``.

    ``frozen`` are the models of the method of that name on the same split and seed.
    """
    makers: list[Callable[[], Rung]] = [
        partial(majority, job, models.estimate, scorer),
        partial(tfidf, job, models.estimate, scorer),
    ]
    if frozen is not None:
        final = last_accepted(frozen.rounds)
        makers += [
            partial(frozen_rung, frozen, scorer),
            partial(expected_rung, FROZEN_SELF_TRAINED, final, frozen, scorer),
        ]
    makers += [
        partial(expected_rung, name_of(round_), round_, models, scorer)
        for round_ in models.rounds
        if round_.accepted
    ]
    yield from done
    for make in makers[len(done) :]:
        yield make()


def majority(job: Job, estimate: Estimate | None, scorer: Scorer) -> Rung:
    """Always the class with the largest share of the pool, else of the labels."""
    labelled, share = job.split.labelled, None
    if estimate is not None:
        share = max(estimate.prior)
        largest = job.task.labels[estimate.prior.index(share)]
        labelled = tuple(row for row in labelled if row.label == largest)
    measured = scorer.accuracy(Majority(job.task, labelled))
    return Rung(MAJORITY, share, None, None, "expected", 0.0, measured)


def tfidf(job: Job, estimate: Estimate | None, scorer: Scorer) -> Rung:
    """Regression on the words of the labelled texts; out of fold by the cuts of the folds."""
    rows = job.split.labelled
    started = time.perf_counter()
    model = TfidfLogistic(job.task, rows)
    seconds = time.perf_counter() - started
    rung = Rung(TFIDF, None, None, None, "out of fold", seconds, scorer.accuracy(model))
    if estimate is None:
        return rung
    labels = torch.tensor([job.task.labels.index(row.label) for row in rows])
    answers = torch.zeros_like(labels)
    seed, keys = child(job.seed, "folds"), [*map(text_key, rows)]
    for seen, unseen in cuts_of(labels, len(job.task.labels), seed=seed, keys=keys):
        fold = TfidfLogistic(job.task, [rows[at] for at in seen])
        answers[unseen] = fold.probabilities([rows[at].example for at in unseen]).argmax(1)
    prior = torch.tensor(estimate.prior, dtype=torch.float64)
    return with_hits(rung, *hits(answers, labels, prior))


def frozen_rung(frozen: Models, scorer: Scorer) -> Rung:
    """Regression on the frozen encoder's vectors: the folds are its models without some labels."""
    teacher = frozen.rounds[0]
    measured = scorer.of_round(FROZEN, teacher)
    rung = Rung(FROZEN, None, None, None, "out of fold", seconds_of(frozen, teacher), measured)
    estimate = frozen.estimate
    return rung if estimate is None else with_hits(rung, estimate.hits, estimate.hit_rows)


def with_hits(rung: Rung, share: float, rows: float) -> Rung:
    """The rung with this share of hits in so many labels as its accuracy."""
    low, high = wilson(share, rows)
    return replace(rung, accuracy=share, low=low, high=high)


def expected_rung(name: str, round_: Round, models: Models, scorer: Scorer) -> Rung:
    """The model of a round, with its expected accuracy."""
    accuracy = low = high = None
    if models.estimate is not None:
        expected = models.estimate.of(round_.number).expected
        accuracy, low, high = expected.accuracy, expected.low, expected.high
    measured = scorer.of_round(FROZEN if name in SIMPLE else "", round_)
    return Rung(name, accuracy, low, high, "expected", seconds_of(models, round_), measured)


def seconds_of(models: Models, round_: Round) -> float:
    """What the training of a round took, with all rounds before it."""
    seconds = (each.numbers.get("seconds") for each in models.rounds[: round_.number + 1])
    return sum(max(0.0, float(each)) for each in seconds if isinstance(each, int | float))


AS_GOOD = 0.01
"""How far below the chosen rung the accuracy of a simpler one may be, to be called as good.

Not the whole interval: with few labels it is so wide that nearly every run would hear it, and the
simpler model was 3 points worse (benchmarks/development/README.md, section 12).
"""


TEACHER_LOOKED_BETTER = (42, 46)
"""In how many runs the last round was no worse, of those that expected more of the teacher.

The folds learn from the same labels as the teacher, so they believe it more than a student that
outgrew it (test rows; benchmarks/development/README.md, section 10).
"""


def as_good(rungs: Sequence[Rung], chosen: str) -> list[Rung]:
    """The simpler rungs whose accuracy is at most a point below that of the chosen one."""
    (accuracy,) = [rung.accuracy for rung in rungs if rung.name == chosen]
    simpler = takewhile(lambda rung: rung.name in SIMPLE and rung.name != chosen, rungs)
    if accuracy is None:
        return []
    return [rung for rung in simpler if (rung.accuracy or 0.0) >= accuracy - AS_GOOD]


# ── measured accuracy ────────────────────────────────────────────────────────────────────────


class Scorer:
    """Scores models on the same test rows; models that share an encoder read them once."""

    def __init__(self, test: Sequence[Labelled], machine: Machine) -> None:
        self.test = test
        self.machine = machine
        self._encoder: tuple[str, int] | None = None
        self._features: Features = {}

    def accuracy(self, model: Predictor) -> float | None:
        """The accuracy on the test rows; None without any."""
        return evaluate(model, self.test, self.machine)["accuracy"] if self.test else None

    def of_round(self, run: str, round_: Round) -> float | None:
        """The accuracy of a round's model; the name of the run tells its encoders from others."""
        model = round_.model
        if model.head is None or not self.test:
            return self.accuracy(model)
        if self._encoder != (run, round_.encoder):
            self._encoder, self._features = (run, round_.encoder), {}
            model.to(self.machine.torch_device())
        return self.accuracy(HeadOnFeatures(model, self._features))


Features = dict[tuple[Example, ...], Tensor]


@dataclass(frozen=True, slots=True)
class HeadOnFeatures:
    """A model that reads the same rows once, for all heads on its encoder."""

    model: Classifier
    features: Features
    """Those that the encoder gave so far, by the rows of a reading, [N, D] each."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of the logits."""
        return self.model.labels

    def probabilities(self, examples: Sequence[Example]) -> Tensor:
        """The probability of each class for each example, [N, C]."""
        rows = tuple(examples)
        if rows not in self.features:
            self.features[rows] = self.model.read(rows).features
        return logits_of(self.model, self.features[rows]).softmax(1)
