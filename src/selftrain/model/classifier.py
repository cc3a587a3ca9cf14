"""The model that is trained: a tuned encoder and a reader. Batch in, logits and features out.

``build.py`` makes one. ``model/fast`` replaces ``states_at`` and ``same_start`` of a classifier
by quicker ones with the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor, nn

from selftrain.data.rows import Example
from selftrain.data.task import Task
from selftrain.errors import require
from selftrain.model import saved, tokens
from selftrain.model.backbone import FALLBACK_DROPOUT, Backbone
from selftrain.model.batches import Batch, Row, grouped
from selftrain.model.card import Card
from selftrain.model.heads import Head, Output, Verbalizer, with_numbers
from selftrain.model.pel import AnyTuning, placeholders
from selftrain.model.precision import computing
from selftrain.model.prompt import template_of
from selftrain.model.surgery import dropout_rates
from selftrain.model.trunk import Trunk

MIN_TOKENS = 8  # of a row: less leaves no room for a text

Progress = Callable[[Iterable[int], str, int], Iterable[int]]
"""Shows how far a loop is: gets its steps, what they do, and how many there are."""
StatesAt = Callable[[nn.Module, dict[str, Tensor], Tensor], Tensor]
SameStart = Callable[[nn.Module, Tensor | None], AbstractContextManager[None]]


def states_at(encoder: nn.Module, inputs: dict[str, Tensor], at: Tensor) -> Tensor:
    """The hidden states of an encoder at one position of each row: [B] to [B, D]."""
    hidden: Tensor = encoder(**inputs).last_hidden_state  # [B, L, D]
    return hidden[torch.arange(at.shape[0], device=at.device), at]


def same_start(_encoder: nn.Module, _states: Tensor | None) -> AbstractContextManager[None]:
    """Surrounds several passes of an encoder that start from the same states."""
    return nullcontext()


class Classifier(nn.Module):
    """A classifier that shares the frozen weights of its backbone; ``build`` makes one.

    ``train()`` and ``eval()`` switch dropout, in the frozen layers too: that is MC dropout.
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
        self.precision = backbone.precision
        self.temperature = 1.0
        """``probabilities`` divides logits by it; a model that was just trained has 1."""
        self.prior_shift: Tensor | None = None
        """Added to the divided logits, [C]: answers for other class shares than it learnt."""
        self.states_at: StatesAt = states_at
        self.same_start: SameStart = same_start
        self._trainable_names = [name for name, p in self.named_parameters() if p.requires_grad]
        room = min(card.task.max_length, backbone.max_length - placeholders(card.tuning))
        require(
            room >= MIN_TOKENS,
            f"the room for a text in `{backbone.name}`",
            room,
            f"at least {MIN_TOKENS} tokens",
            "raise max_length, or shorten what is learned at the input",
        )
        self.frame = tokens.frame(backbone.tokenizer, room=room, types=backbone.segments)
        """The special tokens around a text, and the longest row."""
        self.template = None if self.head is not None else template_of(card.task)
        self.encode([Example("", "", "")])  # raises if the template leaves no room
        self.eval()

    @property
    def task(self) -> Task:
        """The classes, the template and the longest row."""
        return self.card.task

    @property
    def tuning(self) -> AnyTuning:
        """What moves in the encoder."""
        return self.card.tuning

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of the logits."""
        return self.card.task.labels

    @property
    def device(self) -> torch.device:
        """The device of the trainable parameters."""
        return next(iter(self.trainable().values())).device

    @property
    def dropout_added(self) -> float | None:
        """The rate that was set because the backbone has no dropout; None if it has some."""
        return dropout_override(self.card, self.backbone) if self.card.dropout is None else None

    def encode(self, examples: Sequence[Example]) -> list[Row]:
        """Examples as rows of token ids, cut to length, with a tuning's placeholders."""
        settings = (self.frame, self.template, placeholders(self.tuning))
        return self.backbone.token_cache.encode(examples, settings, self._tokenise)

    def _tokenise(self, examples: Sequence[Example]) -> list[Row]:
        tokenizer = self.backbone.tokenizer
        if self.template is None:
            rows = tokens.plain(examples, tokenizer, self.frame)
        else:
            rows = tokens.prompted(self.template, examples, tokenizer, self.frame)
        slots = placeholders(self.tuning)
        return [tokens.with_placeholders(row, slots) for row in rows] if slots else rows

    def forward(self, batch: Batch) -> Output:
        """Logits and features of a padded batch; the only call in training."""
        return self.upper(batch, self.lower(batch))

    def lower(self, batch: Batch) -> Tensor | None:
        """The states at the cut, [B, L, D], the same in every pass; None without a cut."""
        if self.trunk is None:
            return None
        with computing(self.precision, batch.ids.device):
            states: Tensor = self.trunk(batch)
        return states

    def upper(self, batch: Batch, state: Tensor | None) -> Output:
        """The layers above the cut and the reader; ``state`` is what ``lower`` gives."""
        reader = self.head or self.verbalizer
        assert reader is not None
        with computing(self.precision, batch.ids.device):
            features = self._features(batch, batch.inputs(state)).float()  # [B, D]
        return Output(reader(features), features)

    def _features(self, batch: Batch, inputs: dict[str, Tensor]) -> Tensor:
        if self.head is not None and self.backbone.pooling == "mean":
            return self._mean(self.encoder(**inputs).last_hidden_state, batch.attention)
        at = torch.zeros_like(batch.mask_at) if self.verbalizer is None else batch.mask_at
        return self.states_at(self.encoder, inputs, at)

    def _mean(self, hidden: Tensor, attention: Tensor) -> Tensor:
        # Learned vectors at the input are instructions, not text: averaged in, they would make
        # up most of a short sentence's vector and shift it the same way for every example.
        slots = placeholders(self.tuning)
        weight = attention.clone()
        weight[:, 1 : 1 + slots] = 0
        weight = weight.unsqueeze(2).to(hidden.dtype)  # [B, L, 1]
        return (hidden * weight).sum(1) / weight.sum(1)

    @torch.no_grad()
    def read(self, examples: Sequence[Example], progress: Progress | None = None) -> Output:
        """Logits [N, C] and features [N, D] with dropout off, in the order of the examples.

        A model whose answer is no number raises.
        """
        was_training = self.training
        self.eval()
        self.gather()
        batches, back = grouped(self.encode(examples), self.pad, self.device)
        places: Iterable[int] = range(len(batches))
        if progress is not None:
            places = progress(places, "reading texts", len(batches))
        parts = [self(batches[place]) for place in places]
        self.train(was_training)
        out = Output(*(torch.cat(part).float().cpu()[back] for part in zip(*parts, strict=True)))
        return with_numbers(out)

    def gather(self) -> None:
        """Move all parts to one device: another model may have moved the shared frozen weights."""
        devices = {part.device for part in chain(self.parameters(), self.buffers())}
        if len(devices) > 1:
            self.to(next(device for device in devices if device.type != "cpu"))

    def probabilities(
        self, examples: Sequence[Example], progress: Progress | None = None
    ) -> Tensor:
        """Class probabilities [N, C] with dropout off, calibrated, in the order of the examples."""
        if not examples:
            return torch.zeros(0, len(self.labels))
        logits = self.read(examples, progress).logits / self.temperature
        return (logits if self.prior_shift is None else logits + self.prior_shift).softmax(1)

    def trainable(self) -> dict[str, nn.Parameter]:
        """The parameters that training moves, by name; those of a head start with ``head.``."""
        return {name: self.get_parameter(name) for name in self._trainable_names}

    def state(self) -> dict[str, Tensor]:
        """The tensors in which this model differs from its backbone: no copies."""
        return {name: p.detach() for name, p in self.trainable().items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Copy a state of the same names, shapes and types; anything else is an error."""
        current = self.state()
        saved.compare(_shapes(state), _shapes(current), "the state")
        for name, tensor in current.items():
            tensor.copy_(state[name])

    def digest(self) -> str:
        """A hash of the card and the state: models with the same hash give the same answers."""
        return saved.digest(self.card, self.state())

    def head_state(self) -> dict[str, Tensor]:
        """The tensors of the head: no copies."""
        return {name: t for name, t in self.state().items() if name.startswith("head.")}

    def save(self, folder: Path, *, head_alone: bool = False) -> None:
        """Write the state, or its head alone, and the card: see ``saved.py``."""
        saved.write(folder, self.card, self.head_state() if head_alone else self.state())


def dropout_override(card: Card, backbone: Backbone) -> float | None:
    """The dropout rate to set; a backbone without dropout gets some, or all passes would agree."""
    if card.dropout is None and not any(dropout_rates(backbone.encoder)):
        return FALLBACK_DROPOUT
    return card.dropout


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in state.items()}
