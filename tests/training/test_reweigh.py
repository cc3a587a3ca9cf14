"""LiST's weights: inner products of gradients, without a gradient of any single row."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from by_hand import GOLD, MACHINE, POOL, TASK
from selftrain.data.rows import Labelled, Lesson
from selftrain.method.losses import CrossEntropy, Soft
from selftrain.method.spec import Agreement, Tune
from selftrain.model.architecture import Architecture
from selftrain.model.batches import collate
from selftrain.model.build import build
from selftrain.model.pel import Adapter, Full
from selftrain.training.fit import History, fit, reweighed, step_loss
from selftrain.training.reweigh import agreement
from selftrain.training.steps import Step, Table
from tiny import RECIPES


def losses_on(model, rows, labels):
    batch = collate(model.encode(rows), model.pad)
    return lambda answering: F.cross_entropy(answering(batch).logits, labels, reduction="none")


def by_hand(model, rows, labels, gold, gold_labels):
    """The same weights, from the gradient of each row by itself."""
    model.eval()
    moving = list(model.trainable().values())

    def flat(value):
        return torch.cat([g.flatten() for g in torch.autograd.grad(value, moving)])

    down = flat(losses_on(model, gold, gold_labels)(model).mean())
    each = [
        flat(losses_on(model, [row], labels[i : i + 1])(model).sum()) @ down
        for i, row in enumerate(rows)
    ]
    inner = torch.stack(each).relu()
    return inner / (inner.sum() + 1e-6)


@pytest.mark.parametrize("family", RECIPES)
@pytest.mark.parametrize("reader", ["head", "prompt"])
def test_one_pass_gives_the_inner_product_of_every_row(tiny_backbone, family, reader):
    model = build(TASK, tiny_backbone(family), Architecture(Adapter(width=4), reader), seed=1)
    with torch.no_grad():  # an up-projection of zero would leave half of the gradient zero
        for parameter in model.trainable().values():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.manual_seed(0)))
    rows, labels = POOL[:5], torch.tensor([0, 1, 1, 0, 1])
    gold, gold_labels = [row.example for row in GOLD[:4]], torch.tensor([0, 1, 0, 1])
    found = agreement(model, losses_on(model, rows, labels), losses_on(model, gold, gold_labels))
    expected = by_hand(model, rows, labels, gold, gold_labels)
    assert torch.allclose(found, expected, atol=1e-4)
    assert int((expected > 0).sum()) > 0


def test_a_model_is_left_as_it_was(tiny_backbone):
    model = build(TASK, tiny_backbone("bert"), Architecture(Full()), seed=1)
    model.train()
    before = {name: p.detach().clone() for name, p in model.trainable().items()}
    on = losses_on(model, POOL[:2], torch.tensor([0, 1]))
    agreement(model, on, on)
    assert model.training
    assert all(torch.equal(before[name], p) for name, p in model.trainable().items())
    assert all(p.grad is None for p in model.trainable().values())


class AuditLines(nn.Module):
    """Row i answers with logit x_i · w: gradients that can be read off."""

    def __init__(self, points: list[list[float]]) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(2))
        self.points = torch.tensor(points)

    def trainable(self):
        return {"w": self.w}

    def forward(self, places):
        return self.points[places] @ self.w


def weights(points, rows, gold):
    """Losses are the answers themselves, so the gradient of row i is its point."""
    return agreement(AuditLines(points), lambda m: m(rows), lambda m: m(gold)).tolist()


def test_weights_are_shares_of_the_agreement():
    assert weights([[1.0, 0.0], [3.0, 0.0], [1.0, 0.0]], [0, 1], [2]) == pytest.approx([0.25, 0.75])


def test_orthogonal_gradients_give_no_weight():
    assert weights([[0.0, 1.0], [0.0, 5.0], [1.0, 0.0]], [0, 1], [2]) == [0.0, 0.0]


def test_a_row_that_points_the_other_way_gives_no_weight():
    found = weights([[-1.0, 0.0], [1.0, 7.0], [1.0, 0.0]], [0, 1], [2])
    assert found == pytest.approx([0.0, 1.0], abs=1e-5)


# ── in a fit ─────────────────────────────────────────────────────────────────────────────────


def lesson() -> Lesson:
    easy = tuple(
        Labelled(example, label, soft=(0.8, 0.2) if label == "bad" else (0.2, 0.8))
        for example, label in zip(POOL[:8], ["bad", "good"] * 4, strict=True)
    )
    return Lesson(gold=GOLD, easy=easy)


HOW = Tune(tuning=Adapter(width=4), loss=Soft(), steps=10, batch_size=4, learning_rate=1e-2)


def test_weights_begin_after_their_share_of_the_steps(tiny_backbone, monkeypatch):
    called = []

    def counted(step, *rest):
        called.append(step)
        return reweighed(step, *rest)

    monkeypatch.setattr("selftrain.training.fit.reweighed", counted)
    model = build(TASK, tiny_backbone("bert"), Architecture(HOW.tuning), seed=1)
    fit(model, lesson(), replace(HOW, reweigh=Agreement(after=0.6)), seed=1, machine=MACHINE)
    assert len(called) == 4


def test_a_reweighed_step_adds_its_losses_up(tiny_backbone):
    model = build(TASK, tiny_backbone("bert"), Architecture(HOW.tuning), seed=1)
    of = Table.of(model, lesson())
    step = Step(list(of.easy[:4]), 4, [], 4)
    new = reweighed(step, model, of, iter(of.gold), HOW)
    each = [
        float(step_loss(model, of, Step([row], 1, [], 1), HOW, History()).detach())
        for row in step.rows
    ]
    whole = step_loss(model, of, new, HOW, History())
    shares = new.weights / 4
    assert float(shares.sum()) == pytest.approx(1, abs=1e-2)
    assert float(whole.detach()) == pytest.approx(
        sum(w * one for w, one in zip(shares.tolist(), each, strict=True)), rel=1e-5
    )


@pytest.mark.parametrize("start", ["regression", "random"])
def test_only_gold_leaves_the_rest_of_the_lesson_unread(start, tiny_backbone):
    """Neither learnt from, nor read to start a head."""
    how = replace(HOW, train_on="gold", loss=CrossEntropy(), head_start=start)
    models = []
    for given in (lesson(), Lesson(gold=GOLD)):
        model = build(TASK, tiny_backbone("bert"), Architecture(how.tuning), seed=1)
        fit(model, given, how, seed=1, machine=MACHINE)
        models.append(model.state())
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])
