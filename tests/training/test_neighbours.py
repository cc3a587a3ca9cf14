"""Who lies next to whom, and what CEST's reconstruction makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from by_hand import GOLD, MACHINE, POOL, STUDENT, TASK, steps
from selftrain.data.rows import Labelled, Lesson
from selftrain.method.losses import Smooth, smoothness
from selftrain.model.architecture import Architecture
from selftrain.model.build import build
from selftrain.model.pel import Adapter
from selftrain.training import neighbours
from selftrain.training.fit import History, fit, step_loss
from selftrain.training.neighbours import nearest, with_neighbours
from selftrain.training.steps import Table

quick = settings(max_examples=40, deadline=None, derandomize=True)
SMOOTH = replace(STUDENT, contrast=None, smooth=Smooth(neighbours=2))


def test_the_closest_by_angle_come_first():
    points = torch.tensor([[1.0, 0.0], [9.0, 0.9], [1.0, 1.0], [-1.0, 0.0]])
    assert nearest(points, 2) == ((1, 2), (0, 2), (1, 0), (2, 1))


@quick
@given(n=st.integers(1, 12), k=st.integers(1, 5), seed=st.integers(0, 99))
def test_nobody_is_its_own_neighbour_and_none_stands_twice(n, k, seed):
    features = torch.randn(n, 3, generator=torch.manual_seed(seed))
    found = nearest(features, k)
    assert len(found) == n
    for place, mine in enumerate(found):
        assert len(mine) == len(set(mine)) == min(k, n - 1)
        assert place not in mine


def test_pieces_of_the_comparison_change_nothing(monkeypatch):
    features = torch.randn(30, 4, generator=torch.manual_seed(1))
    whole = nearest(features, 3)
    monkeypatch.setattr(neighbours, "ROWS_AT_ONCE", 7)
    assert nearest(features, 3) == whole


def test_a_lesson_is_linked_only_where_a_student_asks_for_it(tiny_backbone):
    teacher = build(TASK, tiny_backbone("bert"), Architecture(Adapter(width=4)), seed=1)
    lesson = Lesson(gold=GOLD, easy=tuple(Labelled(example, "bad") for example in POOL[:6]))
    assert with_neighbours(lesson, teacher, (STUDENT,)) is lesson
    features = teacher.read(POOL[:6]).features
    assert with_neighbours(lesson, teacher, (STUDENT, SMOOTH)).near == nearest(features, 2)
    assert with_neighbours(Lesson(gold=GOLD), teacher, (SMOOTH,)).near == ()


# ── the loss ─────────────────────────────────────────────────────────────────────────────────


def test_smoothness_by_hand():
    """Three unit vectors: at 0, 90 and 180 degrees; distances √2, 2, √2; margin 1.5."""
    features = torch.tensor([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]])
    tied = torch.zeros(3, 3, dtype=torch.bool)
    tied[0, 1] = tied[1, 0] = True
    gap = (1.5 - 2**0.5) ** 2
    assert float(smoothness(features, tied, 1.5)) == pytest.approx((2 + 0 + gap) / 3, abs=1e-6)


def test_two_equal_rows_have_a_slope():
    features = torch.ones(2, 3, requires_grad=True)
    smoothness(features, torch.zeros(2, 2, dtype=torch.bool), 1.0).backward()
    assert bool(features.grad.isfinite().all())


def test_neighbours_of_one_label_are_pulled_together(tiny_backbone):
    easy = tuple(Labelled(example, "bad") for example in POOL[:4])
    near = ((1,), (0,), (3,), (2,))
    model = build(TASK, tiny_backbone("bert"), Architecture(Adapter(width=4)), seed=1)
    how = replace(
        SMOOTH,
        gold_share=0.0,
        batch_size=4,
        steps=40,
        smooth=Smooth(weight=10.0),
        learning_rate=3e-3,
    )

    def apart() -> float:
        unit = torch.nn.functional.normalize(model.read(POOL[:4]).features, dim=1)
        return float((unit[0] - unit[1]).norm() + (unit[2] - unit[3]).norm())

    before = apart()
    fit(model, Lesson(gold=GOLD, easy=easy, near=near), how, seed=1, machine=MACHINE)
    assert apart() < 0.8 * before


def test_lambda_zero_is_the_loss_alone(tiny_backbone):
    """Neighbours are read, and count nothing."""
    model = build(TASK, tiny_backbone("bert"), Architecture(Adapter(width=4)), seed=1)
    easy = tuple(Labelled(example, "bad") for example in POOL[:4])
    of = Table.of(model, Lesson(gold=(), easy=easy, near=((1,), (0,), (3,), (2,))))
    (step,) = steps(of, replace(SMOOTH, batch_size=4), 1)
    values = [
        step_loss(model, of, step, replace(SMOOTH, smooth=smooth), History()).item()
        for smooth in (None, Smooth(weight=0.0), Smooth(weight=1.0))
    ]
    assert values[0] == values[1] != values[2]
