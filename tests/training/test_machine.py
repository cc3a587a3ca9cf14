"""Models on the same frozen weights, of which one was moved to another device."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import torch

import small_run
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.build import build
from selftrain.model.pel import Adapter


def test_a_model_whose_frozen_weights_were_moved_follows_them(
    tiny_backbone: Callable[[str], Backbone],
) -> None:
    model = build(small_run.TASK, tiny_backbone("bert"), Architecture(Adapter(width=2)), seed=1)
    before = {name: tensor.clone() for name, tensor in model.state().items()}
    model.gather()
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state().items())

    model.encoder.to("meta")  # as another model's `.to` would have done to what both share
    model.gather()
    parts = chain(model.parameters(), model.buffers())
    assert {part.device.type for part in parts} == {"meta"}
