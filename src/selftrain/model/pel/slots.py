"""A prefix for attention modules that compute everything in their own code (DeBERTa, MPNet)."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selftrain.model.families import Family


class Overwritten(nn.Module):
    """A frozen projection; the next call replaces the last rows of its output by ``pending``.

    Only the next call: DeBERTa's ``share_att_key`` sends its relative positions through the
    same projection afterwards, and those must stay as they are.
    """

    pending: Tensor | None = None  # [I, D]

    def __init__(self, frozen: nn.Module) -> None:
        super().__init__()
        self.frozen = frozen

    def forward(self, states: Tensor) -> Tensor:
        """[B, L + I, D] to [B, L + I, D]."""
        projected: Tensor = self.frozen(states)
        if self.pending is None:
            return projected
        rows, self.pending = self.pending, None
        learned = rows.expand(projected.shape[0], -1, -1)
        return torch.cat([projected[:, : -rows.shape[0]], learned], dim=1)


class Slotted(nn.Module):
    """Attention over L states and I learned keys and values.

    The attention is called with I empty states behind the real ones; their keys and values are
    overwritten, every position sees them at no distance, and their own outputs are cut off.
    """

    def __init__(self, attention: nn.Module, prefix: nn.Module, family: Family) -> None:
        super().__init__()
        assert family.slots is not None
        self.attention = attention
        self.prefix = prefix
        self.slots = family.slots
        self.key = Overwritten(_inside(attention, family, family.key))
        self.value = Overwritten(_inside(attention, family, family.value))
        attention.set_submodule(_local(family, family.key), self.key)
        attention.set_submodule(_local(family, family.value), self.value)

    def forward(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Like the attention it wraps: [B, L, D] to [B, L, D] and its other outputs."""
        self.key.pending, self.value.pending = self.prefix()
        length, extra = hidden_states.shape[1], self.key.pending.shape[0]
        call = inspect.signature(self.attention.forward).bind(hidden_states, *args, **kwargs)
        call.arguments["hidden_states"] = F.pad(hidden_states, (0, 0, 0, extra))
        for name, seen in self.slots.items():
            if call.arguments.get(name) is not None:
                call.arguments[name] = _widen(call.arguments[name], length, extra, seen)
        output, *others = self.attention(*call.args, **call.kwargs)
        return (output[:, :length], *others)


def _widen(scores: Tensor, length: int, extra: int, seen: int) -> Tensor:
    """[.., L or 1, L] to [.., L + I, L + I]."""
    rows = scores.expand(*scores.shape[:-2], length, length)
    return F.pad(rows, (0, extra, 0, extra), value=seen)


def _local(family: Family, path: str) -> str:
    return path.removeprefix(f"{family.attention}.")


def _inside(attention: nn.Module, family: Family, path: str) -> nn.Module:
    return attention.get_submodule(_local(family, path))
