"""Small models with a trunk: their encoder is cut below the tuned layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from by_hand import FILMS as TASK
from selftrain.data.rows import Example, examples
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.build import build
from selftrain.model.classifier import Classifier
from selftrain.model.pel import Adapter, Tuning

LONG = "a great film the story was long and dull but fine no good day of news terrible"


TEXTS = examples([LONG[i : i + 4 + 7 * (i % 9)].strip() for i in range(12)])


def cut_model(backbone: Backbone, tuning: Tuning = Adapter(width=4, layers=1)) -> Classifier:
    model = build(TASK, backbone, Architecture(tuning), seed=1)
    train_a_little(model)
    return model


def train_a_little(model: Classifier) -> None:
    """As after training: a tuning that starts as the identity would hide a mistake."""
    torch.manual_seed(7)
    for p in model.trainable().values():
        p.data += 0.1 * torch.randn_like(p)


def planned(model: Classifier, rows: Sequence[Example], **changes: Any) -> int:
    assert model.trunk is not None
    assert model.trunk.memory is not None
    options = {"limit": 10**9, **changes}
    return model.trunk.memory.plan(model.encode(rows), model.backbone.width, **options)
