"""Labels that are not as many of each class: what leans, and what takes it out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from by_hand import GOLD, MACHINE, POOL, TASK, TEACHER
from selftrain.data.rows import Example, Labelled, Lesson
from selftrain.model.architecture import Architecture
from selftrain.model.build import build
from selftrain.model.pel import Full
from selftrain.seeds import child
from selftrain.training.balance import balanced
from selftrain.training.fit import fit, regress_head
from selftrain.training.folds import Rows, folds_of, lean
from selftrain.training.regression import equal_classes, logistic


def two_clouds(counts: tuple[int, int], apart: float = 4.0) -> tuple[Tensor, ...]:
    """Gold rows of two classes and their labels, then 400 rows of each. Rows have 50 numbers."""
    generator = torch.Generator().manual_seed(1)
    middle = torch.full((50,), apart / 2 / 50**0.5)

    def rows(first: int, second: int) -> tuple[Tensor, Tensor]:
        labels = torch.tensor([0] * first + [1] * second)
        noise = torch.randn(len(labels), 50, generator=generator)
        return noise + middle * (2 * labels[:, None] - 1), labels

    return *rows(*counts), *rows(400, 400)


@pytest.mark.parametrize("counts", [(28, 8), (8, 28), (60, 12)])
def test_a_regression_of_uneven_labels_leans_until_its_lean_is_taken_out(
    counts: tuple[int, int],
) -> None:
    """In 50 directions these rows are few: the class with fewer of them is answered too rarely."""
    gold, labels, pool, _ = two_clouds(counts, apart=2.0)
    rare = 1 if counts[0] > counts[1] else 0
    weights = equal_classes(labels, torch.ones(sum(counts)))
    model = logistic(gold, labels, 2, strength=1.0, weights=weights)
    assert float((model(pool).argmax(1) == rare).double().mean()) < 0.45
    shifted = model.shifted(lean(Rows(gold, labels), 2, strength=1.0, seed=3))
    assert float((shifted(pool).argmax(1) == rare).double().mean()) == pytest.approx(0.5, abs=0.1)


def test_where_nothing_can_be_left_out_no_lean_is_taken_out() -> None:
    """Equal labels need none, and one row of a class cannot be asked of a regression without it."""
    gold = torch.randn(8, 5, generator=torch.Generator().manual_seed(1))
    for labels in ([0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0, 1]):
        found = lean(Rows(gold, torch.tensor(labels)), 2, strength=1.0, seed=3)
        assert found.tolist() == [0, 0]


@pytest.mark.parametrize("counts", [(24, 8), (8, 24), (40, 10)])
def test_folds_of_uneven_labels_lean_to_no_class(counts: tuple[int, int]) -> None:
    """Many numbers a vector: a regression leans to the class with more labels, weighed or not."""
    gold, labels, pool, truth = two_clouds(counts)
    folds = folds_of(Rows(gold, labels), pool, 2, seed=3)
    assert folds is not None
    assert float(folds.prior[0]) == pytest.approx(0.5, abs=0.15)
    assert float((folds.pool_belief.argmax(1) == truth).double().mean()) > 0.9


def test_the_head_of_uneven_labels_is_shifted_and_that_of_equal_ones_is_not(tiny_backbone):
    """By as much as regressions say that did not see the row. Pseudo labels need no shift."""
    model = build(TASK, tiny_backbone("bert"), Architecture(Full()), seed=1)
    items = tuple(Labelled(x, TASK.labels[i < 3]) for i, x in enumerate(POOL[:12]))
    features = model.read([item.example for item in items]).features
    labels = torch.tensor([TASK.labels.index(item.label) for item in items])
    expected = lean(Rows(features, labels), 2, strength=1.0, seed=child(5, "lean", 0))
    assert float(expected[0] - expected[1]) != 0

    def bias(lesson: Lesson) -> torch.Tensor:
        regress_head(model, lesson, seed=5)
        return model.head.out.bias.clone()

    weights = equal_classes(labels, torch.ones(12))
    plain = logistic(features, labels, 2, strength=1.0, weights=weights)
    torch.testing.assert_close(bias(Lesson(items)), plain.bias + expected)
    easy = logistic(features, labels, 2, strength=1.0)
    torch.testing.assert_close(bias(Lesson((), easy=items)), easy.bias)
    even = items[:3] + items[3:6]
    of_even = logistic(features[:6], labels[:6], 2, strength=1.0)
    torch.testing.assert_close(bias(Lesson(even)), of_even.bias)


def test_of_two_classes_as_many_rows_are_learnt_and_they_keep_their_order():
    rows = [Labelled(Example(f"{i}", f"text {i}"), "ab"[i % 3 == 0]) for i in range(30)]
    chosen = balanced(rows, seed=1)  # of 20 and 10
    assert Counter(row.label for row in chosen) == {"a": 10, "b": 10}
    assert [row for row in rows if row in chosen] == [*chosen]
    assert balanced(rows, seed=1) == chosen
    assert len({balanced(rows, seed=seed) for seed in range(9)}) > 1, "a seed draws them"
    assert balanced(chosen, seed=1) == chosen


def test_of_more_classes_one_may_have_as_many_rows_as_half_of_all_if_all_were_rare():
    counts = {"a": 40, "b": 25, "c": 12, "d": 10}
    rows = [Labelled(Example(f"{c}{i}", f"{c}{i}"), c) for c, n in counts.items() for i in range(n)]
    learnt = Counter(row.label for row in balanced(rows, seed=1))
    assert learnt == {"a": 20, "b": 20, "c": 12, "d": 10}


def test_a_class_with_few_labels_leaves_the_others_eight():
    rows = [Labelled(Example(f"{i}", f"text {i}"), "abc"[min(i // 2, 2)]) for i in range(30)]
    chosen = balanced(rows, seed=1)  # of 2, 2 and 26
    assert Counter(row.label for row in chosen) == {"a": 2, "b": 2, "c": 8}


def test_a_teacher_of_balanced_labels_learns_as_if_the_others_were_not_there(tiny_backbone):
    rows = (*GOLD, *(Labelled(x, GOLD[0].label) for x in POOL[:12]))
    how = replace(TEACHER, balance_labels=True)
    models = [build(TASK, tiny_backbone("bert"), how.architecture, seed=1) for _ in range(2)]
    fit(models[0], Lesson(rows), how, seed=1, machine=MACHINE)
    drawn = balanced(rows, child(1, "balance", 0))
    assert len(drawn) < len(rows)
    fit(models[1], Lesson(drawn), replace(how, balance_labels=None), seed=1, machine=MACHINE)
    assert models[0].digest() == models[1].digest()
