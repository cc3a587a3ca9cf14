"""Queries, keys and values of the first layer above a cut: made once for all passes.

Passes that differ above a cut start from the same states, and in most families the first layer
there makes its queries, keys and values of them before anything is dropped: the same each time.
They are kept while one batch is read. A module that is given anything but those very states, such
as the one position of ``onerow``, answers as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from selftrain.model.families import Family


@contextmanager
def once(encoder: nn.Module, family: Family, states: Tensor | None) -> Iterator[None]:
    """Within it, an encoder that starts from these states, [B, L, D], projects them once.

    ``states`` is None where passes differ from the embeddings on: then nothing is the same.
    """
    if states is None or not family.one_row:
        yield
        return
    first: Any = next(encoder.get_submodule(family.layers).children())
    parts = [first.get_submodule(path) for path in (family.query, family.key, family.value)]
    before = [vars(part).get("forward") for part in parts]
    for part in parts:
        part.forward = partial(_kept, part.forward, states, [])
    try:
        yield
    finally:
        for part, own in zip(parts, before, strict=True):
            del part.forward  # its class has one
            if own is not None:
                part.forward = own


def _kept(
    forward: Callable[[Tensor], Tensor], states: Tensor, kept: list[Tensor], x: Tensor
) -> Tensor:
    if x is not states:
        return forward(x)
    if not kept:
        kept.append(forward(x))
    return kept[0]
