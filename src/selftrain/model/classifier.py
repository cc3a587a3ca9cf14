"""A backbone, a tuning and a way to read it: batch in, logits and features out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor, nn

from selftrain.data.rows import Example
from selftrain.data.task import Task
from selftrain.errors import require
from selftrain.model import card as cards
from selftrain.model import tokens as reading
from selftrain.model.backbone import FALLBACK_DROPOUT, Backbone
from selftrain.model.batches import Batch, Row, grouped
from selftrain.model.card import Card
from selftrain.model.fast import one_position as onerow
from selftrain.model.fast.trunk import Trunk
from selftrain.model.heads import Head, Output, Verbalizer
from selftrain.model.pel import AnyTuning
from selftrain.model.pel.install import placeholders
from selftrain.model.prompt import template_of
from selftrain.model.surgery import dropout_rates

SHORTEST = 8  # tokens of a row: less leaves no room for a text


class Classifier(nn.Module):
    """A classifier on a twin of a backbone's frozen weights; made by ``build``.

    ``train()`` and ``eval()`` switch dropout, in the frozen part too: that is MC dropout.
    """

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
    def device(self) -> torch.device:
        """Where the parts that move are."""
        return next(iter(self.trainable().values())).device

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
        return Output(reader(features), features)

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
        batches, back = grouped(self.encode(examples), self.pad, self.device)
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
        return {name: p.detach() for name, p in self.trainable().items()}

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


def _override(card: Card, backbone: Backbone) -> float | None:
    """The dropout rate to set; a model without any gets one, or its passes would all agree."""
    if card.dropout is None and not any(dropout_rates(backbone.encoder)):
        return FALLBACK_DROPOUT
    return card.dropout


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in state.items()}
