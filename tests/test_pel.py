"""Every tuning, read by head and by prompt, on every family: one build, all promises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter
from tiny import RECIPES
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoModelForMaskedLM, RobertaConfig

from selftrain.backbone import FAMILIES, Backbone
from selftrain.batches import collate
from selftrain.classifier import Classifier, build
from selftrain.data import examples
from selftrain.errors import ConfigError, SelftrainError
from selftrain.mlm import pretrained_head
from selftrain.pel import IA3, Adapter, AnyTuning, BitFit, Full, LoRA, Prefix, PTuning, Tuning
from selftrain.task import Task

TASK = Task(
    "films",
    ("negative", "positive"),
    template="{text} It was {mask} .",
    words={"negative": ("terrible",), "positive": ("great",)},
    max_length=32,
)
ROWS = examples(["a great film", "the story was long and dull , but the acting was fine", "no"])
MORE = examples(["a terrible film with a good story and a great day of news , but it is no film"])

TUNINGS: dict[str, tuple[Tuning, str]] = {  # and what every tensor it adds has in its name
    "full": (Full(), ""),
    "bitfit": (BitFit(), "bias"),
    "adapter": (Adapter(width=4), ".adapter."),
    "prefix": (Prefix(length=3), "prefix."),
    "prefix-mlp": (Prefix(length=3, encoder="mlp"), "prefix."),
    "ptuning": (PTuning(length=3), ".vectors"),
    "ptuning-mlp": (PTuning(length=3, encoder="mlp"), "embeddings."),
    "ptuning-lstm": (PTuning(length=3, encoder="lstm"), "embeddings."),
    "lora": (LoRA(rank=2), ".lora_"),
    "ia3": (IA3(), ".ia3_"),
}
STARTS_ELSEWHERE = ("prefix", "ptuning")
"""Learned keys, values and vectors take attention from the first step on: with no neutral value
to start from, these alone do not begin as the plain model."""


@pytest.mark.parametrize("name", TUNINGS)
@pytest.mark.parametrize("reads", ["head", "prompt"])
@pytest.mark.parametrize("family", RECIPES)
def test_a_tuning_keeps_every_promise(
    family: str,
    reads: Any,
    name: str,
    tiny_backbone: Callable[[str], Backbone],
    tmp_path: Path,
) -> None:
    backbone = tiny_backbone(family)
    tuning, mark = TUNINGS[name]
    if (family, name) == ("modernbert", "bitfit"):
        with pytest.raises(ConfigError, match="no biases"):
            build(TASK, backbone, tuning, reads=reads, seed=1)
        return
    model = build(TASK, backbone, tuning, reads=reads, seed=1)
    if not name.startswith(STARTS_ELSEWHERE):
        starts_as_the_plain_model(model)
    only_what_is_tuned_moves(model, mark)
    padding_and_company_change_nothing(model)
    reload_answers_the_same(model, tmp_path)


def starts_as_the_plain_model(model: Classifier) -> None:
    batch = collate(model.encode(ROWS), model.pad)
    with torch.no_grad():
        hidden: Tensor = model.backbone.encoder(
            input_ids=batch.ids, attention_mask=batch.attention
        ).last_hidden_state
        at = batch.mask_at if model.reads == "prompt" else torch.zeros(len(ROWS), dtype=torch.long)
        assert torch.equal(model(batch).features, hidden[torch.arange(len(ROWS)), at])


def only_what_is_tuned_moves(model: Classifier, mark: str) -> None:
    """Three steps: behind a zero up-projection nothing has a gradient before the second."""
    tuned = model.trainable()
    assert tuned
    assert all(mark in n or n.startswith(("head.", "verbalizer.mlm.")) for n in tuned)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = torch.optim.Adam(tuned.values(), lr=0.01)
    batch = collate(model.encode(ROWS), model.pad)
    model.train()
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(model(batch).logits, torch.tensor([1, 0, 0])).backward()
        optimizer.step()
    model.eval()
    still = f"{model.backbone.family.key}.bias"
    for name, parameter in model.named_parameters():
        assert (parameter.grad is not None) == (name in tuned), name
        if name.endswith(still):
            continue  # softmax does not see what is added to all keys alike: no gradient but noise
        assert torch.equal(parameter, before[name]) == (name not in tuned), name


def padding_and_company_change_nothing(model: Classifier) -> None:
    rows = model.encode([*ROWS, *MORE])
    with torch.no_grad():
        together = model(collate(rows, model.pad)).logits
        for row, logits in zip(rows, together, strict=True):
            alone = model(collate([row], model.pad)).logits[0]
            torch.testing.assert_close(alone, logits, atol=1e-5, rtol=1e-4)


def reload_answers_the_same(model: Classifier, folder: Path) -> None:
    model.offset += torch.tensor([0.25, -0.25])
    model.save(folder)
    again = Classifier.load(folder, model.backbone)
    batch = collate(model.encode(ROWS), model.pad)
    with torch.no_grad():
        assert torch.equal(model(batch).logits, again(batch).logits)
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "model.safetensors"]
