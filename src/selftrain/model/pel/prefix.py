"""Prefix tuning: learned keys and values that every position can attend to.

No position is shifted and no token is added. In seven families the prefix is added by an
attention function of transformers' AttentionInterface. DeBERTa and MPNet compute attention in
their own code: their input gets a few more states, and the keys and values of those are
overwritten (``pel/slots.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from selftrain.model.families import Family
from selftrain.model.pel import Prefix
from selftrain.model.pel.layers import layer_names
from selftrain.model.pel.slots import Slotted

Attend = Callable[..., tuple[Tensor, None]]

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

    A family with shared layers runs the same module at every depth, ``calls`` times in a forward
    pass. Each of these calls has its own prefix (see ``rewind``).
    """

    def __init__(self, tuning: Prefix, size: int, calls: int, shared: Shared | None) -> None:
        super().__init__()
        self.shape = (calls, 2, tuning.length, size)
        self.shared = shared
        self.call = 0
        self.dropout = nn.Dropout(tuning.dropout)
        if shared is None:
            self.vectors = nn.Parameter(torch.empty(self.shape))
            nn.init.normal_(self.vectors, std=0.02)
        else:
            self.out = nn.Linear(HIDDEN, calls * 2 * size)

    def forward(self) -> tuple[Tensor, Tensor]:
        """Keys [I, D] and values [I, D] of the next call."""
        keys, values = self.dropout(self._all()[self.call % self.shape[0]])
        self.call += 1
        return keys, values

    def _all(self) -> Tensor:
        """The keys and values of every call, [calls, 2, I, D]."""
        if self.shared is None:
            return self.vectors
        calls, _, length, size = self.shape
        vectors: Tensor = self.out(self.shared())
        return vectors.view(length, calls, 2, size).permute(1, 2, 0, 3)

    @torch.no_grad()
    def fix(self) -> None:
        """Compute the vectors once and for all, for a model that learns no more."""
        if self.shared is not None:
            self.vectors = nn.Parameter(self._all().contiguous(), requires_grad=False)
            self.shared = None
            del self.out


def with_prefix(attend: Attend) -> Attend:
    """An attention function that puts the module's prefix before its keys and values."""

    def attend_with_prefix(
        module: nn.Module,
        query: Tensor,  # [B, H, L, d]
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,  # [B, 1, L, L], True where a key is seen
        **options: Any,
    ) -> tuple[Tensor, None]:
        prefix = getattr(module, "prefix", None)
        if prefix is not None:
            keys, values = prefix()
            key = torch.cat([_heads(keys, key), key], dim=2)  # [B, H, I + L, d]
            value = torch.cat([_heads(values, value), value], dim=2)
            if attention_mask is not None:
                attention_mask = F.pad(attention_mask, (keys.shape[0], 0), value=True)
        return attend(module, query, key, value, attention_mask, **options)

    return attend_with_prefix


def _heads(vectors: Tensor, like: Tensor) -> Tensor:
    """[I, D] to [B, H, I, d]."""
    rows, heads, _, size = like.shape
    return vectors.view(-1, heads, size).transpose(0, 1).expand(rows, -1, -1, -1)


def rewind(encoder: nn.Module, *_: Any) -> None:
    """Before a forward pass: start counting the calls of every prefix again."""
    for module in encoder.modules():
        if isinstance(module, KeysValues):
            module.call = 0


def install(tuning: Prefix, encoder: nn.Module, family: Family) -> None:
    """Give every chosen layer its learned keys and values."""
    config: Any = encoder.config
    layers = layer_names(encoder, family, tuning.layers)
    size = config.hidden_size
    shared = Shared(tuning.length, size) if tuning.encoder == "mlp" else None
    calls = math.ceil(config.num_hidden_layers / len(layers)) if family.shares_layers else 1
    for layer in layers:
        path = f"{layer}.{family.attention}"
        attention = encoder.get_submodule(path)
        prefix = KeysValues(tuning, size, calls, shared)
        if family.slots is None:
            attention.prefix = prefix
        else:
            encoder.set_submodule(path, Slotted(attention, prefix, family))
    if family.shares_layers:
        encoder.register_forward_pre_hook(rewind)
    if family.slots is None:
        AttentionInterface.register(ATTENTION, with_prefix(sdpa_attention_forward))
        AttentionMaskInterface.register(ATTENTION, sdpa_mask)
        config._attn_implementation = ATTENTION
