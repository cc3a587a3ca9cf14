"""Queries, keys and values of the first layer above a cut: computed once for all passes.

Dropout passes that differ above a cut start from the same states, and in most families the first
layer there projects them before anything is dropped: the result is the same each time. It is
stored while one batch is read. A module with any other input than those very states, such as the
one position of ``one_position.py``, computes its output as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from selftrain.model.families import Family


@contextmanager
def same_start(family: Family, encoder: nn.Module, states: Tensor | None) -> Iterator[None]:
    """Within it, an encoder whose passes start from these states, [B, L, D], projects them once.

    ``states`` is None where passes already differ in the embeddings: then nothing is the same.
    """
    if states is None:
        yield
        return
    first: Any = next(encoder.get_submodule(family.layers).children())
    linears = [first.get_submodule(path) for path in (family.query, family.key, family.value)]
    patched = [vars(linear).get("forward") for linear in linears]
    for linear in linears:
        linear.forward = partial(_remembered, linear.forward, states, [])
    try:
        yield
    finally:
        for linear, forward in zip(linears, patched, strict=True):
            del linear.forward  # its class has one
            if forward is not None:
                linear.forward = forward


def _remembered(
    forward: Callable[[Tensor], Tensor], states: Tensor, memory: list[Tensor], x: Tensor
) -> Tensor:
    if x is not states:
        return forward(x)
    if not memory:
        memory.append(forward(x))
    return memory[0]
