"""Regressions that each miss a part of the gold labels: a second opinion on a model's answers.

They stand on the vectors of the pretrained encoder. The teacher's own vectors would not do: its
encoder has seen every label. Their beliefs are calibrated on the gold rows that each did not see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from selftrain.training.class_names import better_than_chance
from selftrain.training.regression import Linear, equal_classes, logistic

FOLDS = 4
STRENGTH = 10.0  # scikit-learn's C of a fold
Cut = tuple[Tensor, Tensor]
"""The places of the gold rows that a fold sees, and of those that it does not."""
SHRINK = 32.0  # rows of equal shares that the prior is shrunk by


@dataclass(frozen=True, slots=True)
class Folds:
    """What regressions on folds of the gold labels believe of some pool rows."""

    belief: Tensor
    """Mean calibrated probability over the folds, as if each class had as many labels, [N, C]."""
    prior: Tensor
    """The shares of the classes in the pool, by EM on the belief, [C]."""
    gold: Tensor
    """Calibrated probabilities of the gold rows, each by the fold that did not see it, [K, C]."""
    labels: Tensor
    """The gold classes, [K]."""

    @property
    def pool_belief(self) -> Tensor:
        """The belief multiplied by the pool's prior and normalised, [N, C]."""
        return normalised(self.belief * self.prior)

    def tilted(self, answers: Tensor) -> float:
        """The mean belief in answers [N], by the pool's prior."""
        return float(self.pool_belief.gather(1, answers[:, None]).mean())

    def agreement(self, answers: Tensor) -> float:
        """The share of answers [N] that the folds, by the pool's prior, give too."""
        return float((self.pool_belief.argmax(1) == answers).double().mean())

    def hits(self) -> tuple[float, float]:
        """The share of gold rows that a fold without them answers right, and from how many rows.

        The labels are as many of each class, the pool is not: a row counts by the pool's prior.
        The number is that of equal rows which would say as much.
        """
        return hits(self.gold.argmax(1), self.labels, self.prior)

    @property
    def know_something(self) -> bool:
        """Whether they answer gold rows better than by chance, by one standard error or more."""
        classes = len(self.prior)
        weights = 1 / (classes * self.labels.bincount(minlength=classes)[self.labels])
        return better_than_chance(self.gold.argmax(1) == self.labels, weights, classes)


@dataclass(frozen=True, slots=True)
class Rows:
    """Vectors of labelled rows, and their classes."""

    vectors: Tensor  # [K, D]
    labels: Tensor  # [K]
    keys: tuple[str, ...] = ()
    """Rows with the same key are the same text: no fold may learn what it is asked. [K] or none."""

    def __getitem__(self, at: Any) -> Rows:
        return Rows(self.vectors[at], self.labels[at])

    def __add__(self, other: Rows) -> Rows:
        vectors = torch.cat([self.vectors, other.vectors])
        return Rows(vectors, torch.cat([self.labels, other.labels]))


def folds_of(
    gold: Rows, pool: Tensor, classes: int, *, seed: int, names: Rows | None = None
) -> Folds | None:
    """Train the folds on parts of the gold rows; ask them about the vectors of the pool, [N, D].

    Every fold learns from the rows made of class ``names`` too. None where a class has fewer than
    two different texts: nothing can be left out.
    """
    cuts = cuts_of(gold.labels, classes, seed=seed, keys=gold.keys)
    if not cuts:
        return None
    models = regressions(gold, cuts, classes, strength=STRENGTH, names=names)
    out_of_fold = asked_of_others(models, cuts, gold.vectors)
    of_pool = [model(pool) for model in models]
    scale = fitted_scale(out_of_fold, gold.labels)
    belief = torch.stack([scale(logits) for logits in of_pool]).mean(0)
    return Folds(belief, pool_prior(belief), scale(out_of_fold), gold.labels)


def lean(
    gold: Rows, classes: int, *, strength: float, seed: int, names: Rows | None = None
) -> Tensor:
    """What to add to the logits of a regression on uneven gold rows, [C].

    A regression fits the rows it learns from, those of a class with few labels most, for each
    of them counts more. New rows of that class lie nearer to the others, so it answers it too
    rarely. How much is asked of regressions that did not see the row.
    """
    none = torch.zeros(classes)
    if even(gold.labels, classes):
        return none
    cuts = cuts_of(gold.labels, classes, seed=seed, keys=gold.keys)
    if not cuts:
        return none
    models = regressions(gold, cuts, classes, strength=strength, names=names)
    scale = fitted_scale(asked_of_others(models, cuts, gold.vectors), gold.labels)
    return scale.temperature * scale.shift


def regressions(
    gold: Rows, cuts: Sequence[Cut], classes: int, *, strength: float, names: Rows | None = None
) -> list[Linear]:
    """For each fold a regression on the gold rows that it sees, and on those of class names."""
    weighed = not even((gold if names is None else gold + names).labels, classes)
    models = []
    for seen, _ in cuts:
        learnt = gold[seen] if names is None else gold[seen] + names
        rows = torch.ones(len(learnt.labels))
        weights = equal_classes(learnt.labels, rows) if weighed else None
        models.append(
            logistic(learnt.vectors, learnt.labels, classes, strength=strength, weights=weights)
        )
    return models


def asked_of_others(models: Sequence[Linear], cuts: Sequence[Cut], vectors: Tensor) -> Tensor:
    """The logits of each gold row by the regression that did not see it, [K, C]."""
    out_of_fold = torch.zeros(len(vectors), len(models[0].bias))
    for model, (_, unseen) in zip(models, cuts, strict=True):
        out_of_fold[unseen] = model(vectors[unseen])
    return out_of_fold


def cuts_of(labels: Tensor, classes: int, *, seed: int, keys: Sequence[str] = ()) -> list[Cut]:
    """For each fold the places of the gold rows [K] that it sees, and of those it does not.

    Every fold learns from each class and is asked about each; rows of the same key go together.
    There are no folds where a class has fewer than two different texts: nothing can be left out.
    """
    from sklearn.model_selection import StratifiedKFold

    keys = keys or [*map(str, range(len(labels)))]
    first_of = {key: row for row, key in reversed([*enumerate(keys)])}
    firsts = torch.tensor(sorted(first_of.values()))  # a row for each text
    count = min(FOLDS, int(labels[firsts].bincount(minlength=classes).min()))
    if count < 2:
        return []
    by_text = torch.tensor([first_of[key] for key in keys])
    folds = StratifiedKFold(count, shuffle=True, random_state=seed % 2**32)
    unseen_rows = [
        torch.isin(by_text, firsts[asked])
        for _, asked in folds.split(firsts[:, None].numpy(), labels[firsts].numpy())
    ]
    return [((~unseen).nonzero()[:, 0], unseen.nonzero()[:, 0]) for unseen in unseen_rows]


def hits(answers: Tensor, labels: Tensor, prior: Tensor) -> tuple[float, float]:
    """The share of right answers [K], each counted by a prior of the classes [C]; of how many rows.

    The number is that of equal rows which would say as much.
    """
    weights = (prior / labels.bincount(minlength=len(prior)))[labels]
    weights = weights / weights.sum()
    right = (answers == labels).double()
    return float((weights * right).sum()), float(1 / weights.square().sum())


def normalised(weights: Tensor) -> Tensor:
    """Each row divided by its sum, [N, C]."""
    return weights / weights.sum(1, keepdim=True)


def fitted_temperature(logits: Tensor, labels: Tensor) -> float:
    """The temperature with the smallest loss on rows that were not trained on.

    One parameter, with a weak prior around 1: without an error the best one would be 0.
    """
    logs = torch.linspace(-3, 3, 601, dtype=torch.float64)  # [G]
    losses = [F.cross_entropy(logits.double() / log.exp(), labels, reduction="sum") for log in logs]
    return float(logs[(torch.stack(losses) + logs.square() / 2).argmin()].exp())


def even(labels: Tensor, classes: int) -> bool:
    """Whether there are as many labels of each class."""
    counts = labels.bincount(minlength=classes)
    return bool((counts == counts[0]).all())


@dataclass(frozen=True, slots=True)
class Scale:
    """From the logits of a fold to calibrated probabilities."""

    temperature: float
    shift: Tensor
    """Added to the divided logits, [C]."""

    def __call__(self, logits: Tensor) -> Tensor:
        """Probabilities [N, C] of logits [N, C]."""
        return (logits / self.temperature + self.shift).softmax(1)


def fitted_scale(logits: Tensor, labels: Tensor) -> Scale:
    """The scale with the smallest loss on rows that were not trained on, each class the same.

    With as many labels of each class it is a temperature. Else the folds lean to the classes with
    more labels, also where each class counted the same: a shift of each class takes it out. Both
    have a weak prior around none.
    """
    classes = logits.shape[1]
    temperature, shift = fitted_temperature(logits, labels), torch.zeros(classes)
    if even(labels, classes):
        return Scale(temperature, shift)
    weights = equal_classes(labels, torch.ones(len(labels), dtype=torch.float64))
    unknown = torch.zeros(classes + 1, dtype=torch.float64, requires_grad=True)
    solver = torch.optim.LBFGS([unknown], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        solver.zero_grad()
        scaled = logits.double() / unknown[0].exp() + unknown[1:]
        losses = F.cross_entropy(scaled, labels, reduction="none")
        value = (weights * losses).sum() + unknown.square().sum() / 2
        torch.autograd.backward(value)
        return value

    solver.step(loss)  # type: ignore[no-untyped-call]
    found = unknown.detach()
    return Scale(float(found[0].exp()), found[1:].float())


def pool_prior(belief: Tensor, rows: float = SHRINK) -> Tensor:
    """The class shares of the pool from calibrated beliefs [N, C]: EM (Saerens et al., 2002).

    The beliefs are those of labels of equal number. The estimate starts at equal shares and is
    shrunk to them by so many ``rows``.
    """
    classes = belief.shape[1]
    prior = torch.full((classes,), 1 / classes, dtype=torch.float64)
    for _ in range(200):
        weighed = belief.double() * prior
        weighed = weighed / weighed.sum(1, keepdim=True)
        prior = (weighed.sum(0) + rows / classes) / (len(belief) + rows)
    return prior


def drift(before: Sequence[str], after: Sequence[str]) -> float:
    """How far apart the class shares of two lists of answers are, from 0 to 1 (total variation).

    >>> drift(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    0.25
    """
    first, second = Counter(before), Counter(after)
    labels = first.keys() | second.keys()
    return sum(abs(first[label] - second[label]) for label in labels) / 2 / len(before)
