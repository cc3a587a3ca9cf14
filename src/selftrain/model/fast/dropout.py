"""Dropout with cheaper draws on a CPU: one random number of 64 bits serves four elements.

torch draws a float for each element, one at a time, and its fused attention falls back to slow
code whenever probabilities are dropped (benchmarks/quick.py measures the ratio). The rate is met
to 1/65536; on other devices torch's own dropout is used.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward

STEPS = 1 << 16


def keep(shape: torch.Size, rate: float) -> Tensor:
    """True where an element stays, from torch's global generator."""
    count = shape.numel()
    draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None)
    return draws.view(torch.int16)[:count].view(shape) >= round(rate * STEPS) - STEPS // 2


def drop(x: Tensor, rate: float) -> Tensor:
    """The elements that stay, scaled up so that the mean stays the same."""
    share = 1 - round(rate * STEPS) / STEPS
    return torch.where(keep(x.shape, rate), x, 0.0).div_(share) if share else torch.zeros_like(x)


class Dropout(nn.Dropout):
    """``nn.Dropout``, faster on a CPU."""

    def forward(self, x: Tensor) -> Tensor:
        """x with elements dropped in training, and unchanged otherwise."""
        if self.training and self.p and x.device.type == "cpu":
            return drop(x, self.p)
        return super().forward(x)


def attend(
    module: nn.Module,
    query: Tensor,  # [B, H, L, d]
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,  # [B, 1, L, L], True where a key is seen
    dropout: float = 0.0,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Scaled dot product attention; torch's own if nothing is dropped or the device is no CPU."""
    if not dropout or query.device.type != "cpu":
        attended: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **options
        )
        return attended
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = (query * scale) @ key.transpose(2, 3)  # [B, H, L, L]
    if attention_mask is not None:
        # Not -inf: a padded query may see no key at all, and NaN would spread from it.
        scores.masked_fill_(~attention_mask, torch.finfo(scores.dtype).min)
    mixed = drop(scores.softmax(-1), dropout) @ value  # [B, H, L, d]
    return mixed.transpose(1, 2).contiguous(), None


def install(model: nn.Module) -> None:
    """Replace every ``nn.Dropout`` in a module tree, in place."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, Dropout(child.p).train(child.training))
