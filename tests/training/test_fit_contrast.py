"""What moves the encoder by its vectors: supervised contrast, and how much of the way is kept."""

from __future__ import annotations

from dataclasses import replace

import torch

from by_hand import GOLD, MACHINE, TASK, TEACHER
from selftrain.data.rows import Lesson
from selftrain.method.losses import SupCon
from selftrain.model.build import build
from selftrain.training.fit import fit, groups, regress_head


def test_a_contrast_of_labels_trains_the_encoder_and_ends_with_a_regression(tiny_backbone):
    """After it the rows of a class lie closer together, and the head is that of a regression."""
    how = replace(TEACHER, supcon=SupCon(), steps=60, head_learning_rate=None)
    model = build(TASK, tiny_backbone("bert"), how.architecture, seed=1)
    examples = [row.example for row in GOLD]
    same_class = torch.tensor([[a.label == b.label for a in GOLD] for b in GOLD])

    def closeness() -> float:
        unit = torch.nn.functional.normalize(model.read(examples).features, dim=1)
        similarity = unit @ unit.T
        return float(similarity[same_class].mean() - similarity[~same_class].mean())

    before = closeness()
    fitted = fit(model, Lesson(GOLD), how, seed=1, machine=MACHINE)
    assert fitted.steps == 60
    assert closeness() > 3 * before > 0
    trained = model.head.out.weight.clone()
    regress_head(model, Lesson(tuple(GOLD)))
    torch.testing.assert_close(model.head.out.weight, trained)
    moving = {id(p) for group in groups(model, how) for p in group["params"]}
    assert moving.isdisjoint({id(p) for p in model.head.parameters()})
    assert all(p.requires_grad for p in model.head.parameters())


def test_trained_weights_keep_a_share_of_their_way(tiny_backbone):
    """The encoder ends between its start and where it would have ended; the head fits it there."""
    whole = replace(TEACHER, supcon=SupCon(), head_learning_rate=None)
    ends = {}
    for share in (None, 0.25, 1.0):
        model = build(TASK, tiny_backbone("bert"), whole.architecture, seed=1)
        start = {name: tensor.clone() for name, tensor in model.state().items()}
        fit(model, Lesson(GOLD), replace(whole, interpolation=share), seed=1, machine=MACHINE)
        ends[share] = model
    for name, tensor in ends[0.25].state().items():
        assert torch.equal(ends[1.0].state()[name], ends[None].state()[name])
        if not name.startswith("head."):
            between = start[name].lerp(ends[None].state()[name], 0.25)
            assert torch.equal(tensor, between), name
    trained = ends[0.25].head.out.weight.clone()
    regress_head(ends[0.25], Lesson(tuple(GOLD)))
    torch.testing.assert_close(ends[0.25].head.out.weight, trained)
    assert not torch.equal(trained, ends[None].head.out.weight)


def test_a_head_that_is_trained_keeps_the_same_share(tiny_backbone):
    model = build(TASK, tiny_backbone("bert"), TEACHER.architecture, seed=1)
    other = build(TASK, tiny_backbone("bert"), TEACHER.architecture, seed=1)
    start = model.head.out.weight.clone()
    how = replace(TEACHER, head_start="random")
    fit(model, Lesson(GOLD), how, seed=1, machine=MACHINE)
    fit(other, Lesson(GOLD), replace(how, interpolation=0.5), seed=1, machine=MACHINE)
    torch.testing.assert_close(other.head.out.weight, (start + model.head.out.weight.detach()) / 2)
