"""The same answers with and without each speed trick, on the real encoder."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from by_hand import FILMS as TASK
from selftrain.data.rows import examples
from selftrain.model import fast
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone, load
from selftrain.model.batches import collate
from selftrain.model.build import build, with_dropout_in
from selftrain.model.classifier import Classifier
from selftrain.model.heads import Output
from selftrain.model.pel import Adapter

TEXT = "a moving , witty film with great actors that is never dull , though it ends too soon ."
TEXTS = examples([TEXT[i:][: 12 + 9 * i].strip() for i in range(8)])


@pytest.fixture(scope="module")
def backbone() -> Backbone:
    return load("minilm-mlm")


def model_of(backbone: Backbone, reader: str, layers: int | None = None) -> Classifier:
    """A model that has learnt something: its module is no identity, its head no noise."""
    model = build(TASK, backbone, Architecture(Adapter(width=64, layers=layers), reader), seed=1)
    torch.manual_seed(7)
    for p in model.trainable().values():
        p.data += 0.02 * torch.randn_like(p)
    return model


def plainly(model: Classifier) -> Output:
    """One batch, padded to its longest row, all positions of all layers, nothing remembered."""
    with torch.no_grad():
        return model(collate(model.encode(TEXTS), model.pad))


def remembered(model: Classifier) -> Output:
    assert model.trunk is not None
    assert model.trunk.memory is not None
    model.trunk.memory.plan(model.encode(TEXTS), model.backbone.width, limit=10**9)
    model.read(TEXTS)
    found = model.read(TEXTS)
    model.trunk.memory.forget()
    return found


TRICKS: dict[str, tuple[int | None, Callable[[Classifier], Output]]] = {
    "rows of like length together": (None, lambda model: model.read(TEXTS)),
    "a remembered trunk": (3, remembered),
    "a cut for passes above it": (None, lambda model: with_dropout_in(model, 1).read(TEXTS)),
}


@pytest.mark.parametrize("reader", ["head", "prompt"])
@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_moves_no_answer(
    backbone: Backbone, name: str, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prompt's by the last layer for the mask alone, against that of all positions."""
    layers, trick = TRICKS[name]
    model = model_of(backbone, reader, layers)
    found = trick(model)
    monkeypatch.setattr(fast, "install", lambda _: None)
    expected = plainly(model_of(backbone, reader, layers))
    assert distance(found.features, expected.features) < 1e-5
    assert distance(found.logits.softmax(1), expected.logits.softmax(1)) < 1e-5
    middle = expected.logits.median(0).values  # so that each class is the answer somewhere
    answers = (expected.logits - middle).argmax(1)
    assert len(set(answers.tolist())) == 2
    assert torch.equal((found.logits - middle).argmax(1), answers)


def distance(one: Tensor, other: Tensor) -> float:
    """The largest difference, for vectors scaled to length 1."""
    scale = other.norm(dim=1).mean()
    return float((one - other).abs().max() / scale)
