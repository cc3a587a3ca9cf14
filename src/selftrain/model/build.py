"""A classifier from a backbone, a tuning and a reader."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from selftrain.data.task import Task
from selftrain.errors import ModelError
from selftrain.model import backbone as backbones
from selftrain.model import card as cards
from selftrain.model.backbone import Backbone
from selftrain.model.card import Card, Source
from selftrain.model.classifier import Classifier, _override
from selftrain.model.fast import one_position as onerow
from selftrain.model.fast.dropout import make_cheap
from selftrain.model.fast.trunk import Trunk, memory_of
from selftrain.model.heads import Head, Verbalizer
from selftrain.model.mlm import MLMHead
from selftrain.model.pel import AnyTuning, Full, Layers, layers_of
from selftrain.model.pel.install import all_layers, install, owned
from selftrain.model.pel.seams import depth, top, wavering
from selftrain.model.prompt import HEAD_METHOD, word_ids
from selftrain.model.surgery import cut, dropout_rates, set_dropout, twin

COMMIT = re.compile("[0-9a-f]{40}")


def build(
    task: Task,
    backbone: Backbone,
    tuning: AnyTuning,
    *,
    reader: Literal["head", "prompt"],
    head: Literal["linear", "dense"] = "linear",
    lm_head: Literal["frozen", "tuned"] = "frozen",
    dropout: float | None = None,
    seed: int,
) -> Classifier:
    """A fresh classifier on a twin of the backbone: the same seed gives the same model."""
    source = Source(backbone.name, backbone.revision, backbone.sha256)
    card = Card(task, tuning, reader, source, head, lm_head, dropout)
    return _seeded(card, backbone, seed)


def load(folder: Path, backbone: Backbone | str | None = None) -> Classifier:
    """Read a saved model, from anyone: see ``card.py`` for what is checked.

    A backbone given by the name in the card is that of the card's revision.
    """
    card = cards.read_card(folder)
    source = card.backbone
    if isinstance(backbone, str):
        same = backbone == source.name and COMMIT.fullmatch(source.revision or "")
        backbone = backbones.load(backbone, revision=source.revision if same else None)
    if backbone is None and source.name not in backbones.EMBEDDED:
        # A saved model may come from anyone, and the name in it lead anywhere on this disk
        # or on the hub: only its reader may say that it should be followed.
        raise ModelError(
            f"`{folder}` was trained on `{source.name}`, which is not embedded; "
            "a place that a model names is not followed by itself",
            f"give it yourself: --backbone {shlex.quote(source.name)}",
        )
    backbone = backbone or backbones.load(source.name)
    if backbone.sha256 != source.sha256:
        raise ModelError(
            f"`{folder}` was trained on `{source.name}` with sha256 {source.sha256[:12]}; "
            f"`{backbone.name}` has {backbone.sha256[:12]}",
            "load it with the backbone it was trained on",
        )
    with torch.device("meta"):  # a plan without memory: a forged size allocates nothing
        plan = _assemble(card, backbone).state()
    state = cards.read_tensors(folder, plan)
    model = _seeded(card, backbone, seed=0)
    model.load_state(state)
    return model


def copy(model: Classifier) -> Classifier:
    """A second model with its own copy of what moves, on the same frozen weights."""
    other = _seeded(model.card, model.backbone, seed=0).to(model.device)
    other.load_state(model.state())
    return other


def narrowed(model: Classifier, layers: Layers) -> Classifier:
    """The model on the same tensors, with dropout in the chosen layers only.

    What is below them is computed once for all passes, from this model's weights.
    """
    family, here = model.backbone.family, depth(model.encoder, model.backbone.family)
    below = 0 if model.trunk is None else depth(model.trunk.layers, family)
    at = here - min(here, wavering(layers, family, below + here))
    if not at:
        return model
    lower, upper = cut(model.encoder, family, at)
    reader = model.head or model.verbalizer
    assert reader is not None
    trunk = Trunk(lower, model.pad, below=model.trunk)
    return Classifier(model.card, model.backbone, upper, reader, trunk)


def _seeded(card: Card, backbone: Backbone, seed: int) -> Classifier:
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: it would also reseed the accelerators, which are not forked.
        torch.default_generator.manual_seed(seed)
        return _assemble(card, backbone)


def _assemble(card: Card, backbone: Backbone) -> Classifier:
    encoder, mlm = _twins(card, backbone)
    rate = _override(card, backbone)
    if rate is not None:
        set_dropout(encoder, rate)
    make_cheap(encoder)
    behind = max(dropout_rates(encoder))
    trunk, encoder = _cut(card, backbone, encoder)
    tuning = card.tuning if trunk is None else all_layers(card.tuning)  # of what is left above
    install(tuning, encoder, backbone.family)
    onerow.install(encoder, backbone.family)
    reader = (
        Verbalizer(mlm, word_ids(card.task, backbone))
        if mlm is not None
        else Head(backbone.width, len(card.task.labels), card.head, behind)
    )
    return Classifier(card, backbone, encoder, reader, trunk)


def _cut(card: Card, backbone: Backbone, encoder: nn.Module) -> tuple[Trunk | None, nn.Module]:
    """Where only the top layers are tuned, the rest as a trunk, which is computed once."""
    layers = layers_of(card.tuning)
    count = depth(encoder, backbone.family)
    at = count - top(layers, backbone.family, count)
    if not at:
        return None, encoder
    lower, upper = cut(encoder, backbone.family, at)
    return Trunk(lower, backbone.tokenizer.pad_token_id, memory_of(backbone, at)), upper


def _twins(card: Card, backbone: Backbone) -> tuple[nn.Module, MLMHead | None]:
    """The encoder and its MLM head on shared tensors, with own copies of what will move.

    Both in one twin, so that a decoder tied to the word embeddings stays tied to their copy.
    """
    parts = nn.ModuleDict({"encoder": backbone.encoder})
    own = {f"encoder.{name}" for name in owned(card.tuning, backbone.encoder, backbone.family)}
    if card.reader == "prompt":
        if backbone.mlm is None:
            raise ModelError(
                f"`{backbone.name}` has no pretrained MLM head; prompts need one",
                f"try --backbone minilm-mlm, train one with tools/train_mlm.py, or {HEAD_METHOD}",
            )
        parts["mlm"] = backbone.mlm
        own |= {f"mlm.{name}" for name in _moving_mlm(card, backbone.mlm)}
    pair = twin(parts, own)
    for name, parameter in pair.named_parameters():
        parameter.requires_grad_(name in own)
    mlm = pair["mlm"] if card.reader == "prompt" else None
    assert mlm is None or isinstance(mlm, MLMHead)
    return pair["encoder"], mlm


def _moving_mlm(card: Card, mlm: MLMHead) -> list[str]:
    names = [name for name, _ in mlm.named_parameters()]
    if isinstance(card.tuning, Full):
        return names
    # The decoder's rows are the word embeddings: a tuned LM head leaves them frozen.
    return [name for name in names if name != "weight"] if card.lm_head == "tuned" else []
