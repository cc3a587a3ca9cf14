"""The layers below a cut, which run without dropout.

A model has a trunk where only its upper layers are tuned, or where its dropout passes differ
only in its upper layers. This is part of what the model computes, not a speed trick: below the
cut nothing is dropped, in training neither. ``model/fast`` adds a memory to it, so that the
states of a row are computed once in a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from selftrain.model.batches import Batch, Row, grouped

if TYPE_CHECKING:
    from selftrain.model.fast.trunk import Memory


class Trunk(nn.Module):
    """The layers below the cut: a batch in, hidden states [B, L, D] out. Dropout is never on."""

    def __init__(self, layers: nn.Module, pad: int, below: Trunk | None = None) -> None:
        super().__init__()
        self.below = below
        """The trunk of the model that was cut once more."""
        self.layers = layers
        self.pad = pad
        self.memory: Memory | None = None

    def train(self, _mode: bool = True) -> Trunk:
        """Stays in eval mode: a state with dropout in it would differ each time."""
        super().train(False)
        return self

    def forward(self, batch: Batch) -> Tensor:
        """The states of a batch; those of planned rows are read from the memory."""
        if self.memory is None or not self.memory.planned:
            return self._encode(batch)
        with torch.no_grad():  # frozen: nothing below the cut ever needs a gradient
            return self.memory.recall(batch, self._encode, self._encode_rows)

    def _encode(self, batch: Batch) -> Tensor:
        state = None if self.below is None else self.below(batch)
        hidden: Tensor = self.layers(**batch.inputs(state)).last_hidden_state
        return hidden.float()

    def _encode_rows(self, rows: Sequence[Row]) -> list[Tensor]:
        """The states of rows, each [its length, D], in the order of the rows."""
        batches, order = grouped(rows, self.pad, next(self.layers.parameters()).device)
        states = [state for batch in batches for state in self._encode(batch).cpu()]
        return [states[place][: len(row.ids)] for place, row in zip(order, rows, strict=True)]
