"""Probe rounds: the encoder reads each text once, and the head alone learns on its vectors.

A round is then a regression and T small matrix products: a fraction of a second. It is Algorithm 1
except for line 6: the student starts from its teacher and keeps its encoder.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor

from selftrain.data.rows import Example, Labelled, Lesson
from selftrain.errors import TrainingError
from selftrain.method.losses import CrossEntropy
from selftrain.method.scores import Tally, Votes
from selftrain.method.spec import ProbeRounds
from selftrain.model.classifier import Classifier
from selftrain.model.heads import Output, with_numbers
from selftrain.training.annotate import CHUNK
from selftrain.training.fit import Fitted, row_weights
from selftrain.training.machine import Machine, randomness
from selftrain.training.regression import logistic, minimised


class Vectors:
    """The pooled vectors of a run's texts under one encoder: each text is read once.

    Which rows are encoded together moves the last bits of a vector. The pool is read in blocks of
    its order, so a resumed run computes the same bits.
    """

    def __init__(
        self,
        model: Classifier,
        pool: Sequence[Example],
        gold: Sequence[Labelled],
        machine: Machine,
    ) -> None:
        model.to(machine.torch_device())
        starts = range(0, len(pool), CHUNK)

        def read(start: int) -> Tensor:
            return model.read(pool[start : start + CHUNK], machine.progress).features

        blocks = machine.progress(starts, "reading the pool", len(starts))
        parts = [features for _, features in machine.ranks.mapped(read, blocks)]
        self.pool = torch.cat(parts)  # [N, D]
        self.gold = model.read([row.example for row in gold]).features  # [K, D]
        self.places = {example.uid: place for place, example in enumerate(pool)}
        self.answered = shares(logits_of(model, self.pool).argmax(1), len(model.labels))
        """The share of each class in the answers of the model that read the pool, [C]."""

    def of(self, examples: Iterable[Example]) -> Tensor:
        """The vectors of these pool rows, [N, D]."""
        return self.pool[[self.places[example.uid] for example in examples]]

    def annotate(
        self,
        teacher: Classifier,
        pool: Iterable[Example],
        passes: int,
        *,
        seed: int,
        machine: Machine,  # noqa: ARG002  (the head is too small to be worth a progress bar)
    ) -> Iterator[tuple[list[Example], Votes]]:
        """Votes as ``annotate`` gives them, with dropout on the pooled vectors alone."""
        stream = iter(pool)
        number = 0
        while chunk := list(islice(stream, CHUNK)):
            vectors = self.of(chunk)
            with randomness(seed, "dropout", number):
                tally = Tally(logits_of(teacher, vectors).softmax(1))
                for _ in range(passes):
                    tally.add(logits_of(teacher, vectors, dropout=True).softmax(1))
            yield chunk, tally.votes()
            number += 1


@torch.no_grad()
def logits_of(model: Classifier, vectors: Tensor, *, dropout: bool = False) -> Tensor:
    """What the head answers to pooled vectors: [N, D] to [N, C]."""
    assert model.head is not None
    model.head.train(dropout)
    # Not model.device: a head may be on the CPU while the encoder it shares is not.
    logits: Tensor = model.head(vectors.to(model.head.out.weight.device)).cpu()
    model.head.eval()
    return with_numbers(Output(logits, vectors)).logits


def fit_probe(student: Classifier, lesson: Lesson, probe: ProbeRounds, vectors: Vectors) -> Fitted:
    """Train the head in place on the vectors of the lesson; the encoder stays as it is."""
    started = time.perf_counter()
    assert student.head is not None
    items = [*lesson.gold, *lesson.easy]
    x = torch.cat([vectors.gold, vectors.of(row.example for row in lesson.easy)])  # [N, D]
    place = {label: c for c, label in enumerate(student.labels)}
    labels = torch.tensor([place[item.label] for item in items])
    weights = row_weights(lesson, labels)
    strength = 1 / (probe.penalty * float(weights.sum()))
    head = logistic(x, labels, len(place), strength=strength, weights=weights)
    soft = torch.eye(len(place))[labels]
    for row, item in enumerate(items):
        if item.soft is not None:
            soft[row] = torch.tensor(item.soft)

    def losses(logits: Tensor) -> Tensor:
        return probe.loss(logits, labels, soft.to(logits))

    if not isinstance(probe.loss, CrossEntropy):
        head = minimised(head, x, losses, penalty=probe.penalty, weights=weights)
    loss = float((weights * losses(head(x))).sum() / weights.sum())
    head = head.shifted(probe.prior * shift_to(head(vectors.pool), vectors.answered))
    if not (head.bias.isfinite().all() and head.weight.isfinite().all()):
        raise TrainingError(f"the regression ended with a loss of {loss}", "try a higher penalty")
    head.write_to(student.head)
    return Fitted(
        steps=head.steps,
        loss=loss,
        contrast=None,
        anchors=None,
        tuned=sum(tensor.numel() for tensor in student.head_state().values()),
        total=sum(p.numel() for p in student.parameters()),
        seconds=time.perf_counter() - started,
    )


def shares(answers: Tensor, classes: int) -> Tensor:
    """The share of each class in answers [N], with one answer more of each: [C]."""
    counts = answers.bincount(minlength=classes) + 1
    return counts / counts.sum()


def shift_to(logits: Tensor, wanted: Tensor) -> Tensor:
    """What to add to logits [N, C] so that the mean belief has these shares of classes [C].

    >>> shift = shift_to(torch.zeros(4, 2), torch.tensor([0.2, 0.8]))
    >>> torch.softmax(shift, 0)
    tensor([0.2000, 0.8000])
    """
    shift = torch.zeros_like(wanted)
    for _ in range(50):
        shift = shift + (wanted / (logits + shift).softmax(1).mean(0)).log()
    return shift - shift.mean()
