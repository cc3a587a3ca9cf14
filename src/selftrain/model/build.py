"""Making a classifier: new from a backbone, loaded from a folder, or from another classifier.

``build``, ``load`` and ``copy`` all end in ``_assemble``, the order in which a model is put
together: twin, dropout rates, cut, tuning, reader, speed.
"""

from __future__ import annotations

import re
import shlex
from copy import deepcopy
from pathlib import Path

import torch
from torch import nn

from selftrain.data.task import Task
from selftrain.errors import ModelError
from selftrain.model import backbone as backbones
from selftrain.model import fast, saved
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.card import HINT, Card, Source, read_card
from selftrain.model.classifier import Classifier, dropout_override
from selftrain.model.embedded import EMBEDDED
from selftrain.model.heads import Head, Verbalizer
from selftrain.model.mlm import MLMHead
from selftrain.model.pel import Full, Layers, layers_of
from selftrain.model.pel.install import in_all_layers, install, trainable_names
from selftrain.model.pel.layers import depth, dropout_depth, top_layers
from selftrain.model.prompt import HEAD_METHOD, word_ids
from selftrain.model.surgery import cut, dropout_rates, set_dropout, twin
from selftrain.model.trunk import Trunk
from selftrain.seeds import TORCH_GENERATOR

COMMIT = re.compile("[0-9a-f]{40}")


def build(task: Task, backbone: Backbone, architecture: Architecture, *, seed: int) -> Classifier:
    """A new classifier on the backbone's frozen weights: the same seed gives the same model."""
    card = Card(
        task,
        architecture.tuning,
        architecture.reader,
        Source(backbone.name, backbone.revision, backbone.sha256),
        architecture.head,
        architecture.lm_head,
        architecture.dropout,
    )
    return _seeded(card, backbone, seed)


def load(folder: Path, backbone: Backbone | str | Path | None = None) -> Classifier:
    """Read a saved model, from anyone: ``card.py`` and ``saved.py`` say what is checked.

    A backbone given by the card's own name is loaded at the card's revision, unless it is a folder.
    """
    card = read_card(folder)
    source = card.backbone
    if isinstance(backbone, str | Path):
        same = str(backbone) == source.name and COMMIT.fullmatch(source.revision or "")
        at_commit = same and not Path(backbone).is_dir()
        backbone = backbones.load(backbone, revision=source.revision if at_commit else None)
    if backbone is None and source.name not in EMBEDDED:
        # A saved model may come from anyone, and the name in it may point anywhere on this disk
        # or on the hub: only the user may choose to follow it.
        raise ModelError(
            f"`{folder}` was trained on `{source.name}`, which is not embedded; "
            "a name in a model file is not followed automatically",
            f"give it yourself: --backbone {shlex.quote(source.name)}",
        )
    backbone = backbone or backbones.load(source.name)
    if backbone.sha256 != source.sha256:
        raise ModelError(
            f"`{folder}` was trained on `{source.name}` with sha256 {source.sha256[:12]}; "
            f"`{backbone.name}` has {backbone.sha256[:12]}",
            "load it with the backbone it was trained on",
        )
    with torch.device("meta"):  # takes no memory: a forged size allocates nothing
        expected = _assemble(card, backbone).state()
    state = saved.read_tensors(folder, expected)
    model = _seeded(card, backbone, seed=0)
    model.load_state(state)
    return model


def copy(model: Classifier) -> Classifier:
    """A second model on the same frozen weights, with its own copy of the trainable parameters."""
    second = _seeded(model.card, model.backbone, seed=0).to(model.device)
    second.load_state(model.state())
    return second


def with_copied_head(model: Classifier) -> Classifier:
    """A second model on the same encoder, tensors and all, with its own copy of the head."""
    assert model.head is not None
    head = deepcopy(model.head)
    second = Classifier(model.card, model.backbone, model.encoder, head, model.trunk)
    second.states_at, second.same_start = model.states_at, model.same_start
    return second


def with_saved_head(model: Classifier, folder: Path) -> Classifier:
    """A second model on the same encoder, with the head that a folder holds, from anyone."""
    if read_card(folder) != model.card:
        raise ModelError(f"`{folder}` is a head of another model than the encoder's", HINT)
    second = with_copied_head(model)
    head = second.head_state()
    for name, tensor in saved.read_tensors(folder, head).items():
        head[name].copy_(tensor)
    return second


def with_dropout_in(model: Classifier, layers: Layers) -> Classifier:
    """The same model, on the same tensors, with dropout in the chosen layers only.

    Its lower layers become a trunk, so several passes over a batch compute them once.
    """
    family = model.backbone.family
    above = depth(model.encoder, family)
    below = 0 if model.trunk is None else depth(model.trunk.layers, family)
    at = above - min(above, dropout_depth(layers, family, below + above))
    if not at:
        return model
    lower, upper = cut(model.encoder, family, at)
    reader = model.head or model.verbalizer
    assert reader is not None
    trunk = Trunk(lower, model.pad, below=model.trunk)
    cut_model = Classifier(model.card, model.backbone, upper, reader, trunk)
    cut_model.states_at, cut_model.same_start = model.states_at, model.same_start
    return cut_model


def _seeded(card: Card, backbone: Backbone, seed: int) -> Classifier:
    with TORCH_GENERATOR, torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: it would also reseed the accelerators, which are not forked.
        torch.default_generator.manual_seed(seed)
        return _assemble(card, backbone)


def _assemble(card: Card, backbone: Backbone) -> Classifier:
    encoder, mlm = _twins(card, backbone)
    rate = dropout_override(card, backbone)
    if rate is not None:
        set_dropout(encoder, rate)
    head_rate = max(dropout_rates(encoder))
    trunk, encoder = _split_off_trunk(card, backbone, encoder)
    # A cut encoder has only the tuned layers left.
    install(card.tuning if trunk is None else in_all_layers(card.tuning), encoder, backbone.family)
    reader = (
        Verbalizer(mlm, word_ids(card.task, backbone))
        if mlm is not None
        else Head(backbone.width, len(card.task.labels), card.head, head_rate)
    )
    model = Classifier(card, backbone, encoder, reader, trunk)
    fast.install(model)
    return model


def _split_off_trunk(
    card: Card, backbone: Backbone, encoder: nn.Module
) -> tuple[Trunk | None, nn.Module]:
    """Where only the top layers are tuned: the layers below them as a trunk, and those layers."""
    count = depth(encoder, backbone.family)
    at = count - top_layers(layers_of(card.tuning), backbone.family, count)
    if not at:
        return None, encoder
    lower, upper = cut(encoder, backbone.family, at)
    return Trunk(lower, backbone.tokenizer.pad_token_id), upper


def _twins(card: Card, backbone: Backbone) -> tuple[nn.Module, MLMHead | None]:
    """The encoder and its MLM head on shared tensors, with new copies of what will move.

    Both in one twin, so that a decoder tied to the word embeddings stays tied to their copy.
    """
    parts = nn.ModuleDict({"encoder": backbone.encoder})
    names = trainable_names(card.tuning, backbone.encoder, backbone.family)
    trainable = {f"encoder.{name}" for name in names}
    if card.reader == "prompt":
        parts["mlm"] = _mlm_head(backbone)
        trainable |= {f"mlm.{name}" for name in _trainable_of_mlm(card, parts["mlm"])}
    pair = twin(parts, copied=trainable)
    for name, parameter in pair.named_parameters():
        parameter.requires_grad_(name in trainable)
    mlm = pair["mlm"] if card.reader == "prompt" else None
    assert mlm is None or isinstance(mlm, MLMHead)
    return pair["encoder"], mlm


def _mlm_head(backbone: Backbone) -> MLMHead:
    if backbone.mlm is None:
        raise ModelError(
            f"`{backbone.name}` has no pretrained MLM head; prompts need one",
            f"try --backbone minilm-mlm, train one with tools/train_mlm.py, or {HEAD_METHOD}",
        )
    return backbone.mlm


def _trainable_of_mlm(card: Card, mlm: nn.Module) -> list[str]:
    names = [name for name, _ in mlm.named_parameters()]
    if isinstance(card.tuning, Full):
        return names
    # The decoder's rows are the word embeddings: a tuned LM head leaves them frozen.
    return [name for name in names if name != "weight"] if card.lm_head == "tuned" else []
