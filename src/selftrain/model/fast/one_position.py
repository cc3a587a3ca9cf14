"""The last layer for one position of each row: keys and values of all, everything else of one.

Only a mask or a first token of a row is read, so the queries, feed-forward and norms of the other
positions need not be computed. Nothing is stored between calls: the position goes down an
encoder's forward as an argument, ``row``; a hook on the last layer makes the state at that
position its only input and gives the keys and values of all positions to the attention, as
``seen``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from selftrain.model.families import Family

Attend = Callable[..., tuple[Tensor, None]]
Call = tuple[tuple[Any, ...], dict[str, Any]]


def with_all_keys(attend: Attend) -> Attend:
    """An attention function that takes the keys and values of all positions as ``seen``."""

    def attend_to_all(
        module: nn.Module,
        query: Tensor,  # [B, H, L, d], or [B, H, 1, d] for one position
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        *,
        seen: tuple[Tensor, Tensor] | None = None,  # [B, L, D] each
        **options: Any,
    ) -> tuple[Tensor, None]:
        if seen is not None:
            rows, heads, _, size = query.shape
            key, value = (states.view(rows, -1, heads, size).transpose(1, 2) for states in seen)
        return attend(module, query, key, value, attention_mask, **options)

    return attend_to_all


def install(encoder: nn.Module, family: Family) -> None:
    """Let the last layer compute one position, in place; the names of parameters stay."""
    *_, last = encoder.get_submodule(family.layers).children()
    hook = partial(_leave_one, family.key, family.value)
    last.register_forward_pre_hook(hook, with_kwargs=True)


def states_at(encoder: nn.Module, inputs: dict[str, Tensor], at: Tensor) -> Tensor:
    """The hidden states at one position of each row: [B] to [B, D]."""
    hidden: Tensor = encoder(**inputs, row=at).last_hidden_state  # [B, 1, D]
    assert hidden.shape[1] == 1, "one_position.install was not called for this encoder"
    return hidden[:, 0]


def _leave_one(
    key: str, value: str, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call | None:
    """The arguments of a layer, changed to one position; None leaves them as they are."""
    at = kwargs.get("row")
    if at is None:
        return None
    states, mask, *others = args  # [B, L, D], [B, 1, L, L] or None
    seen = (layer.get_submodule(key)(states), layer.get_submodule(value)(states))
    rows = torch.arange(at.shape[0], device=at.device)
    if mask is not None:
        mask = mask[rows, :, at].unsqueeze(2)  # [B, 1, 1, L]
    return (states[rows, at].unsqueeze(1), mask, *others), {**kwargs, "seen": seen}
