"""The last layer for one position of each row: keys and values of all, the rest of one alone.

A mask or a first token is all that is read of a row, so queries, feed-forward and norms of the
other positions would be computed for nothing. Nothing is kept between calls: the position goes
down an encoder's forward as an argument, ``row``; a hook on the last layer leaves that position
alone as its input and hands the keys and values of all to the attention, as ``seen``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from selftrain.model.families import Family

Attend = Callable[..., tuple[Tensor, None]]
Call = tuple[tuple[Any, ...], dict[str, Any]]

_REGISTERED: set[str] = set()


def register(name: str, attend: Attend) -> None:
    """Name an attention function for transformers; from one position it sees all the others."""

    def attend_to_all(
        module: nn.Module,
        query: Tensor,  # [B, H, L, d], or [B, H, 1, d] where all is seen from one position
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        *,
        seen: tuple[Tensor, Tensor] | None = None,  # [B, L, D] each
        **rest: Any,
    ) -> tuple[Tensor, None]:
        if seen is not None:
            rows, heads, _, size = query.shape
            key, value = (each.view(rows, -1, heads, size).transpose(1, 2) for each in seen)
        return attend(module, query, key, value, attention_mask, **rest)

    AttentionInterface.register(name, attend_to_all)
    AttentionMaskInterface.register(name, sdpa_mask)
    _REGISTERED.add(name)


def acts(encoder: nn.Module, family: Family) -> bool:
    """Whether the last layer of an encoder can be asked for one position."""
    config: Any = encoder.config
    return family.one_row and config._attn_implementation in _REGISTERED


def install(encoder: nn.Module, family: Family) -> None:
    """Let the last layer be asked for one position, in place; its names stay as they are."""
    if acts(encoder, family):
        *_, last = encoder.get_submodule(family.layers).children()
        hook = partial(_leave_one, family.key, family.value)
        last.register_forward_pre_hook(hook, with_kwargs=True)


def states_at(encoder: nn.Module, family: Family, inputs: dict[str, Tensor], at: Tensor) -> Tensor:
    """What an encoder says at one position of each row: [B] to [B, D]."""
    if not acts(encoder, family):
        whole: Tensor = encoder(**inputs).last_hidden_state  # [B, L, D]
        return whole[_rows(at), at]
    one: Tensor = encoder(**inputs, row=at).last_hidden_state  # [B, 1, D]
    assert one.shape[1] == 1, "the encoder was not installed"
    return one[:, 0]


def _leave_one(
    key: str, value: str, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call | None:
    """The call of a layer, changed to one position; as it is where none is asked for."""
    at = kwargs.get("row")
    if at is None:
        return None
    states, mask, *more = args  # [B, L, D], [B, 1, L, L] or None
    seen = (layer.get_submodule(key)(states), layer.get_submodule(value)(states))
    if mask is not None:
        mask = mask[_rows(at), :, at].unsqueeze(2)  # [B, 1, 1, L]
    return (states[_rows(at), at].unsqueeze(1), mask, *more), {**kwargs, "seen": seen}


def _rows(at: Tensor) -> Tensor:
    return torch.arange(len(at), device=at.device)
