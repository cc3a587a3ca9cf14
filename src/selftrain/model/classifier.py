"""A backbone, a tuning and a way to read it: batch in, logits and features out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from selftrain.data.rows import Example
from selftrain.data.task import Task
from selftrain.errors import ModelError, require
from selftrain.model import backbone as backbones
from selftrain.model import card as cards
from selftrain.model import tokens as reading
from selftrain.model.backbone import (
    FALLBACK_DROPOUT,
    Backbone,
    cut,
    dropout_rates,
    set_dropout,
    twin,
)
from selftrain.model.batches import Batch, Row, grouped
from selftrain.model.card import Card, Source
from selftrain.model.fast import one_position as onerow
from selftrain.model.fast.dropout import Dropout, make_cheap
from selftrain.model.fast.trunk import Trunk, memory_of
from selftrain.model.mlm import MLMHead
from selftrain.model.pel import AnyTuning, Full, Layers, layers_of
from selftrain.model.pel.install import all_layers, install, owned, placeholders
from selftrain.model.pel.seams import depth, top, wavering
from selftrain.model.prompt import HEAD_METHOD, template_of, word_ids

COMMIT = re.compile("[0-9a-f]{40}")
SHORTEST = 8  # tokens of a row: less leaves no room for a text


class Output(NamedTuple):
    """What one forward pass gives."""

    logits: Tensor  # [B, C]
    features: Tensor  # [B, D]: the pooled vector, or the hidden state at the mask


class Head(nn.Module):
    """Features to logits: one Linear, or dense, tanh and a Linear (Eq. 6)."""

    def __init__(self, width: int, classes: int, shape: Literal["linear", "dense"], rate: float):
        super().__init__()
        self.dropout = Dropout(rate)
        self.dense = nn.Linear(width, width) if shape == "dense" else None
        self.out = nn.Linear(width, classes)
        for linear in (self.dense, self.out):
            if linear is not None:
                nn.init.normal_(linear.weight, std=0.02)
                nn.init.zeros_(linear.bias)

    def forward(self, features: Tensor) -> Tensor:
        """[B, D] to [B, C]."""
        state = self.dropout(features)
        if self.dense is not None:
            state = self.dropout(torch.tanh(self.dense(state)))
        logits: Tensor = self.out(state)
        return logits


class Verbalizer(nn.Module):
    """The hidden state at the mask to logits: pretrained MLM head, label words (Eq. 7)."""

    ids: Tensor  # [W], the label words of all classes, class by class

    def __init__(self, mlm: MLMHead, words: tuple[tuple[int, ...], ...]) -> None:
        super().__init__()
        self.mlm = mlm
        self.counts = [len(group) for group in words]
        ids = torch.tensor([word for group in words for word in group])
        self.register_buffer("ids", ids, persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """[B, D] to [B, C]: probabilities of a class's words add, so their logits log-sum-exp."""
        scores: Tensor = self.mlm(features, self.ids)  # [B, W]
        if max(self.counts) == 1:
            return scores
        groups = torch.split(scores, self.counts, dim=1)
        return torch.stack([group.logsumexp(1) for group in groups], dim=1)


class Classifier(nn.Module):
    """A classifier on a twin of a backbone's frozen weights; made by ``build``.

    ``train()`` and ``eval()`` switch dropout, in the frozen part too: that is MC dropout.
    """

    offset: Tensor  # [C], added to the logits: the place of a prior correction

    def __init__(
        self,
        card: Card,
        backbone: Backbone,
        encoder: nn.Module,
        reader: Head | Verbalizer,
        trunk: Trunk | None = None,
    ) -> None:
        super().__init__()
        self.card = card
        self.backbone = backbone
        self.pad: int = backbone.tokenizer.pad_token_id
        self.trunk = trunk
        self.encoder = encoder
        self.head = reader if isinstance(reader, Head) else None
        self.verbalizer = reader if isinstance(reader, Verbalizer) else None
        self.register_buffer("offset", torch.zeros(len(card.task.labels)))
        self._tuned = [name for name, p in self.named_parameters() if p.requires_grad]
        room = min(card.task.max_length, backbone.max_length - placeholders(card.tuning))
        require(
            room >= SHORTEST,
            f"the room for a text in `{backbone.name}`",
            room,
            f"at least {SHORTEST} tokens",
            "raise max_length, or shorten what is learned at the input",
        )
        self._frame = reading.frame(backbone.tokenizer, room=room, types=backbone.segments)
        self._template = None if self.head is not None else template_of(card.task)
        self.encode([Example("", "", "")])  # a template that leaves no room is found out here
        self.eval()

    @property
    def task(self) -> Task:
        """What is told apart."""
        return self.card.task

    @property
    def tuning(self) -> AnyTuning:
        """What may change in the encoder."""
        return self.card.tuning

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of the logits."""
        return self.card.task.labels

    @property
    def dropout_added(self) -> float | None:
        """The rate that was set because the backbone has none and none was asked for."""
        return _override(self.card, self.backbone) if self.card.dropout is None else None

    def encode(self, examples: Sequence[Example]) -> list[Row]:
        """Examples as rows of token ids, cut to length, with a tuning's placeholders."""
        how = (self._frame, self._template, placeholders(self.tuning))
        return reading.once(examples, self.backbone.tokenizer, how, self._encode)

    def _encode(self, examples: Sequence[Example]) -> list[Row]:
        tokenizer = self.backbone.tokenizer
        if self._template is None:
            rows = reading.plain(examples, tokenizer, self._frame)
        else:
            rows = reading.prompted(self._template, examples, tokenizer, self._frame)
        slots = placeholders(self.tuning)
        return [reading.with_placeholders(row, slots) for row in rows] if slots else rows

    def forward(self, batch: Batch) -> Output:
        """Logits and features of a padded batch; the only call made in training."""
        return self.upper(batch, self.lower(batch))

    def lower(self, batch: Batch) -> Tensor | None:
        """What no dropout and no training changes: the states at the cut, [B, L, D], if any."""
        if self.trunk is None:
            return None
        states: Tensor = self.trunk(batch)
        return states

    def upper(self, batch: Batch, state: Tensor | None) -> Output:
        """The rest of the way."""
        reader = self.head or self.verbalizer
        assert reader is not None
        features = self._features(batch, batch.inputs(state))  # [B, D]
        return Output(reader(features) + self.offset, features)

    def _features(self, batch: Batch, inputs: dict[str, Tensor]) -> Tensor:
        if self.head is not None and self.backbone.pooling == "mean":
            return self._mean(self.encoder(**inputs).last_hidden_state, batch.attention)
        at = torch.zeros_like(batch.mask_at) if self.verbalizer is None else batch.mask_at
        return onerow.states_at(self.encoder, self.backbone.family, inputs, at)

    def _mean(self, hidden: Tensor, attention: Tensor) -> Tensor:
        # Learned vectors at the input are instructions, not text: averaged in, they would make
        # up most of a short sentence's vector and shift it the same way for every example.
        slots = placeholders(self.tuning)
        weight = attention.clone()
        weight[:, 1 : 1 + slots] = 0
        weight = weight.unsqueeze(2).to(hidden.dtype)  # [B, L, 1]
        return (hidden * weight).sum(1) / weight.sum(1)

    @torch.no_grad()
    def read(self, examples: Sequence[Example]) -> Output:
        """Logits [N, C] and features [N, D] with dropout off, in the order of the examples."""
        was_training = self.training
        self.eval()
        self.gather()
        batches, back = grouped(self.encode(examples), self.pad, self.offset.device)
        parts = [self(batch) for batch in batches]
        self.train(was_training)
        return Output(*(torch.cat(part).float().cpu()[back] for part in zip(*parts, strict=True)))

    def gather(self) -> None:
        """Bring all parts to one device: a model on the same frozen weights may have moved them."""
        devices = {part.device for part in chain(self.parameters(), self.buffers())}
        if len(devices) > 1:
            self.to(next(device for device in devices if device.type != "cpu"))

    def probabilities(self, examples: Sequence[Example]) -> Tensor:
        """Class probabilities [N, C] with dropout off, in the order of the examples."""
        if not examples:
            return torch.zeros(0, len(self.labels))
        return self.read(examples).logits.softmax(1)

    def trainable(self) -> dict[str, nn.Parameter]:
        """The parameters that move, by name; those of a head start with ``head.``."""
        return {name: self.get_parameter(name) for name in self._tuned}

    def state(self) -> dict[str, Tensor]:
        """Everything that makes this model differ from its backbone: live tensors, no copies."""
        moved = {name: p.detach() for name, p in self.trainable().items()}
        return moved | {"offset": self.offset}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take over a state of the same names, shapes and types; anything else is an error."""
        mine = self.state()
        cards.compare(_shapes(state), _shapes(mine), "the state")
        for name, tensor in mine.items():
            tensor.copy_(state[name])

    def digest(self) -> str:
        """Names what this model answers: its card, and all that differs from its backbone."""
        return cards.digest(self.card, self.state())

    def save(self, folder: Path) -> None:
        """Write what differs from the backbone, and a card that says how it was built."""
        cards.write(folder, self.card, self.state())

    @classmethod
    def load(cls, folder: Path, backbone: Backbone | str | None = None) -> Classifier:
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


def build(
    task: Task,
    backbone: Backbone,
    tuning: AnyTuning,
    *,
    reads: Literal["head", "prompt"],
    head: Literal["linear", "dense"] = "linear",
    lm_head: Literal["frozen", "tuned"] = "frozen",
    dropout: float | None = None,
    seed: int,
) -> Classifier:
    """A fresh classifier on a twin of the backbone: the same seed gives the same model."""
    source = Source(backbone.name, backbone.revision, backbone.sha256)
    card = Card(task, tuning, reads, source, head, lm_head, dropout)
    return _seeded(card, backbone, seed)


def copy(model: Classifier) -> Classifier:
    """A second model with its own copy of what moves, on the same frozen weights."""
    other = _seeded(model.card, model.backbone, seed=0).to(model.offset.device)
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
    other = Classifier(model.card, model.backbone, upper, reader, trunk)
    other.offset = model.offset
    return other


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


def _override(card: Card, backbone: Backbone) -> float | None:
    """The dropout rate to set; a model without any gets one, or its passes would all agree."""
    if card.dropout is None and not any(dropout_rates(backbone.encoder)):
        return FALLBACK_DROPOUT
    return card.dropout


def _twins(card: Card, backbone: Backbone) -> tuple[nn.Module, MLMHead | None]:
    """The encoder and its MLM head on shared tensors, with own copies of what will move.

    Both in one twin, so that a decoder tied to the word embeddings stays tied to their copy.
    """
    parts = nn.ModuleDict({"encoder": backbone.encoder})
    own = {f"encoder.{name}" for name in owned(card.tuning, backbone.encoder, backbone.family)}
    if card.reads == "prompt":
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
    mlm = pair["mlm"] if card.reads == "prompt" else None
    assert mlm is None or isinstance(mlm, MLMHead)
    return pair["encoder"], mlm


def _moving_mlm(card: Card, mlm: MLMHead) -> list[str]:
    names = [name for name, _ in mlm.named_parameters()]
    if isinstance(card.tuning, Full):
        return names
    # The decoder's rows are the word embeddings: a tuned LM head leaves them frozen.
    return [name for name in names if name != "weight"] if card.lm_head == "tuned" else []


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in state.items()}
