"""The steps of a fit: the lesson as rows, and which rows make a batch.

A step trains on some rows and encodes a few more beside them: partners and hard rows of the same
classes for the contrast, neighbours for smoothness. Each is encoded once and shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean

import torch
from torch import Tensor

from selftrain.data.rows import Labelled, Lesson
from selftrain.method.losses import EasyHard
from selftrain.method.spec import Tune
from selftrain.model.batches import Row
from selftrain.model.classifier import Classifier


@dataclass(frozen=True, slots=True)
class Table:
    """The lesson tokenised once: gold, then easy, then hard."""

    rows: list[Row]
    labels: Tensor  # [N] class indices
    soft: Tensor  # [N, C] the teacher's probabilities; one-hot for gold
    weights: Tensor  # [N]
    gold: range
    easy: range
    hard: range
    by_class: dict[str, dict[int, list[int]]]  # "easy" and "hard": class → rows
    near: tuple[tuple[int, ...], ...] = ()  # of each easy row, its neighbours: places among easy

    @property
    def learn(self) -> range:
        """The rows that batches are drawn from: easy, or gold where there are none (teacher)."""
        return self.easy or self.gold

    def gold_in_batch(self, tune: Tune) -> int:
        """How many rows of a batch come from D_l beside easy rows; at least one row is easy."""
        if not self.easy or not self.gold:
            return 0
        return min(round(tune.gold_share * tune.batch_size), tune.batch_size - 1)

    @staticmethod
    def of(model: Classifier, lesson: Lesson) -> Table:
        """The lesson's rows as this model reads them."""
        items: list[Labelled] = [*lesson.gold, *lesson.easy, *lesson.hard]
        place = {label: c for c, label in enumerate(model.labels)}
        labels = torch.tensor([place[item.label] for item in items])
        onehot = torch.eye(len(place))[labels]
        given = [item.soft for item in items]
        soft = torch.stack(
            [torch.tensor(s) if s is not None else onehot[i] for i, s in enumerate(given)]
        ).float()
        first, second = len(lesson.gold), len(lesson.gold) + len(lesson.easy)
        spans = {"easy": range(first, second), "hard": range(second, len(items))}
        by_class: dict[str, dict[int, list[int]]] = {"easy": {}, "hard": {}}
        for kind, span in spans.items():
            for i in span:
                by_class[kind].setdefault(int(labels[i]), []).append(i)
        return Table(
            model.encode([item.example for item in items]),
            labels,
            soft,
            torch.tensor([item.weight for item in items]),
            range(first),
            spans["easy"],
            spans["hard"],
            by_class,
            lesson.near,
        )

    def tied(self, rows: Sequence[int]) -> Tensor:
        """Which two of these easy rows are neighbours of one pseudo label, [B, B].

        Where an epoch ends a batch may have a row twice: it is a neighbour of itself.
        """
        first = self.easy.start
        near = [{i, *(first + place for place in self.near[i - first])} for i in rows]
        links = torch.tensor([[j in neighbours for j in rows] for neighbours in near])
        labels = self.labels[torch.tensor(rows)]
        return (links | links.T) & (labels[:, None] == labels)


@dataclass(frozen=True, slots=True)
class Step:
    """The rows of one step: all are encoded, the first ``learn`` have a loss."""

    rows: list[int]
    learn: int
    anchors: list[tuple[int, int, list[int]]]  # places in rows: anchor, positive, negatives
    easy: int
    """How many of the first rows are easy."""
    neighbours: tuple[int, ...] = ()
    """Places in rows of those that smoothness pulls together or pushes apart."""
    weights: Tensor | None = None
    """The weight of each of the first ``learn`` rows; None takes the lesson's."""


def final_mean(values: Sequence[float]) -> float:
    """The mean over the last tenth of the steps, of which there is at least one.

    >>> final_mean([4.0] * 18 + [1.0, 2.0])
    1.5
    """
    return fmean(values[-max(1, len(values) // 10) :])


def cycle(items: Sequence[int], random: Random) -> Iterator[int]:
    """The items in random order, again and again, each time in a new order."""
    while True:
        yield from random.sample(items, len(items))


def pairs(rows: Sequence[int], labels: Tensor, random: Random, *, by_turns: bool) -> Iterator[int]:
    """The rows without end, two of one class at a time, so that a contrast finds a partner.

    The classes take turns, or each comes as often as its rows do. A class with a single row is its
    own partner: it is encoded twice, under two dropout masks.
    """
    of_class: dict[int, list[int]] = {}
    for row in rows:
        of_class.setdefault(int(labels[row]), []).append(row)
    members = {c: cycle(of_class[c], random) for c in sorted(of_class)}
    classes = list(members) if by_turns else [int(labels[row]) for row in rows]
    for c in cycle(classes, random):
        yield next(members[c])
        yield next(members[c])


def steps_of(table: Table, tune: Tune, random: Random) -> Iterator[Step]:
    """Batches without end: a share of gold rows, the others in epochs over the easy rows.

    Rows for the contrast and for smoothness come from separate generators, so that a method without
    them trains on the same batches as one with them.
    """
    for_batches, for_contrast, for_smoothness = (
        Random(random.getrandbits(64))  # noqa: S311
        for _ in range(3)
    )
    gold_count = table.gold_in_batch(tune)
    learn, gold = cycle(table.learn, for_batches), cycle(table.gold, for_batches)
    if tune.supcon is not None:  # pseudo classes keep their shares: equal ones flood a skewed pool
        learn = pairs(table.learn, table.labels, for_batches, by_turns=not table.easy)
    hard = {c: cycle(rows, for_contrast) for c, rows in table.by_class["hard"].items()}
    while True:
        easy = [next(learn) for _ in range(tune.batch_size - gold_count)]
        rows = easy + [next(gold) for _ in range(gold_count)]
        step = Step(rows, len(rows), [], len(easy))
        if tune.contrast is not None and table.easy:
            step = with_contrast(step, table, hard, tune.contrast, for_contrast)
        if tune.smooth and table.near:
            step = with_neighbour_rows(step, table, for_smoothness)
        yield step


def with_contrast(
    step: Step,
    table: Table,
    hard: dict[int, Iterator[int]],
    contrast: EasyHard,
    random: Random,
) -> Step:
    """Add the rows of the contrast: a partner where a class has one easy row, N_n hard of each.

    An anchor has no term only when D_h lacks its class, never because of an unlucky batch. The only
    easy row of a class is its own partner: it is encoded twice, under two dropout masks.
    """
    easy = step.rows[: step.easy]
    places: dict[int, list[int]] = {}
    for place, row in enumerate(easy):
        places.setdefault(int(table.labels[row]), []).append(place)
    anchors: list[tuple[int, int, list[int]]] = []
    rows = list(step.rows)
    for c, of_class in places.items():
        if c not in hard:
            continue
        partners = list(of_class)
        # A batch that reaches into the next epoch may hold a row twice: that is no partner.
        if len({easy[place] for place in of_class}) == 1:
            others = [row for row in table.by_class["easy"][c] if row != easy[of_class[0]]]
            if others or len(of_class) == 1:
                partners.append(len(rows))
                rows.append(random.choice(others) if others else easy[of_class[0]])
        negatives = list(range(len(rows), len(rows) + contrast.negatives))
        rows += [next(hard[c]) for _ in range(contrast.negatives)]
        for number, anchor in enumerate(of_class):
            ring = partners[number + 1 :] + partners[:number]
            other = (place for place in ring if rows[place] != rows[anchor])
            anchors.append((anchor, next(other, ring[0]), negatives))
    return replace(step, rows=rows, anchors=anchors)


def with_neighbour_rows(step: Step, table: Table, random: Random) -> Step:
    """Add a neighbour of each easy row that has none in the batch, so that some lie close."""
    first = table.easy.start
    present = set(step.rows[: step.easy])
    added: list[int] = []
    for row in step.rows[: step.easy]:
        near = [first + place for place in table.near[row - first]]
        if near and present.isdisjoint(near):
            added.append(random.choice(near))
            present.add(added[-1])
    places = (*range(step.easy), *range(len(step.rows), len(step.rows) + len(added)))
    return replace(step, rows=step.rows + added, neighbours=places)
