"""Prefix tuning: learned keys and values that every position can attend to.

No position is shifted and no token is added. In seven families transformers' AttentionInterface
is the way in; DeBERTa and MPNet compute attention in their own code, so theirs is given a few
more states and the keys and values of those are overwritten (``pel/slots.py``).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selftrain.model.families import Family
from selftrain.model.fast import dropout
from selftrain.model.fast import one_position as onerow
from selftrain.model.pel import Prefix
from selftrain.model.pel.seams import layer_names
from selftrain.model.pel.slots import Slotted

ATTENTION = "selftrain_prefix"
HIDDEN = 512  # of the shared network (Li and Liang)


class Shared(nn.Module):
    """The part of the reparameterisation that all layers share."""

    def __init__(self, length: int, size: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.empty(length, size))  # [I, D]
        self.dense = nn.Linear(size, HIDDEN)
        nn.init.normal_(self.vectors, std=0.02)

    def forward(self) -> Tensor:
        """[I, H]."""
        return torch.tanh(self.dense(self.vectors))


class KeysValues(nn.Module):
    """The learned keys and values of one attention module.

    A family with shared layers runs the same module at every depth: ``calls`` of them, each
    with its own prefix, counted from the start of a forward pass (see ``rewind``).
    """

    def __init__(self, how: Prefix, size: int, calls: int, shared: Shared | None) -> None:
        super().__init__()
        self.shape = (calls, 2, how.length, size)
        self.shared = shared
        self.call = 0
        self.dropout = dropout.Dropout(how.dropout)
        if shared is None:
            self.vectors = nn.Parameter(torch.empty(self.shape))
            nn.init.normal_(self.vectors, std=0.02)
        else:
            self.out = nn.Linear(HIDDEN, calls * 2 * size)

    def forward(self) -> tuple[Tensor, Tensor]:
        """Keys [I, D] and values [I, D] of the next call."""
        calls, _, length, size = self.shape
        if self.shared is None:
            vectors = self.vectors
        else:
            vectors = self.out(self.shared()).view(length, calls, 2, size).permute(1, 2, 0, 3)
        keys, values = self.dropout(vectors[self.call % calls])
        self.call += 1
        return keys, values


def attend(
    module: nn.Module,
    query: Tensor,  # [B, H, L, d]
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,  # [B, 1, L, L], True where a key is seen
    **rest: Any,
) -> tuple[Tensor, None]:
    """Scaled dot product attention, with the module's prefix before its keys and values."""
    prefix = getattr(module, "prefix", None)
    if prefix is not None:
        keys, values = prefix()
        key = torch.cat([_heads(keys, key), key], dim=2)  # [B, H, I + L, d]
        value = torch.cat([_heads(values, value), value], dim=2)
        if attention_mask is not None:
            attention_mask = F.pad(attention_mask, (len(keys), 0), value=True)
    return dropout.attend(module, query, key, value, attention_mask, **rest)


def _heads(vectors: Tensor, like: Tensor) -> Tensor:
    """[I, D] to [B, H, I, d]."""
    rows, heads, _, size = like.shape
    return vectors.view(-1, heads, size).transpose(0, 1).expand(rows, -1, -1, -1)


onerow.register(ATTENTION, attend)


def rewind(encoder: nn.Module, *_: Any) -> None:
    """Before a forward pass: the next call of every prefix is its first."""
    for module in encoder.modules():
        if isinstance(module, KeysValues):
            module.call = 0


def install(how: Prefix, encoder: nn.Module, family: Family) -> None:
    """Give every chosen layer its keys and values."""
    config: Any = encoder.config
    layers = layer_names(encoder, family, how.layers)
    size = config.hidden_size
    shared = Shared(how.length, size) if how.encoder == "mlp" else None
    calls = math.ceil(config.num_hidden_layers / len(layers)) if family.shared else 1
    for layer in layers:
        path = f"{layer}.{family.attention}"
        attention = encoder.get_submodule(path)
        prefix = KeysValues(how, size, calls, shared)
        if family.slots is None:
            attention.prefix = prefix
        else:
            encoder.set_submodule(path, Slotted(attention, prefix, family))
    if family.shared:
        encoder.register_forward_pre_hook(rewind)
    if family.slots is None:
        config._attn_implementation = ATTENTION
