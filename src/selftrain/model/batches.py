"""Rows of token ids become padded tensors; rows of similar length are padded together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

# Padded tokens encoded together. On a CPU every padded token costs time, so small groups of
# similar length are faster than one batch padded to its longest row.
CPU_TOKENS = 512
GPU_TOKENS = 16384


@dataclass(frozen=True, slots=True)
class Row:
    """One example as input of the encoder."""

    ids: tuple[int, ...]
    types: tuple[int, ...] | None = None
    """Segment ids, where the family uses them."""
    mask_at: int = -1
    """The place of the template's mask (an index into ids); -1 for a head."""
    cut: int = 0
    """Tokens of the text that did not fit."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows padded to the longest of them."""

    ids: Tensor  # [B, L]
    attention: Tensor  # [B, L], 1 on real tokens
    types: Tensor | None  # [B, L]
    mask_at: Tensor  # [B]

    def inputs(self, state: Tensor | None = None) -> dict[str, Tensor]:
        """Arguments for an encoder of transformers; ``state``, [B, L, D], replaces the ids."""
        if state is not None:
            return {"inputs_embeds": state, "attention_mask": self.attention}
        types = {} if self.types is None else {"token_type_ids": self.types}
        return {"input_ids": self.ids, "attention_mask": self.attention, **types}

    def take(self, rows: Sequence[int]) -> Batch:
        """Some of the rows, with the same padding."""
        types = None if self.types is None else self.types[rows]
        return Batch(self.ids[rows], self.attention[rows], types, self.mask_at[rows])

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        types = None if self.types is None else moved(self.types, device)
        ids, attention, mask_at = (
            moved(each, device) for each in (self.ids, self.attention, self.mask_at)
        )
        return Batch(ids, attention, types, mask_at)


def moved(tensor: Tensor, device: torch.device | str) -> Tensor:
    """The tensor on a device; to a GPU it is copied while the processor goes on."""
    if torch.device(device).type != "cuda" or tensor.is_cuda:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def collate(rows: Sequence[Row], pad: int) -> Batch:
    """Pad rows on the right to the longest of them."""
    longest = max(len(row.ids) for row in rows)
    ids = torch.full((len(rows), longest), pad, dtype=torch.long)
    attention = torch.zeros((len(rows), longest), dtype=torch.long)
    typed = rows[0].types is not None
    types = torch.zeros((len(rows), longest), dtype=torch.long) if typed else None
    for number, row in enumerate(rows):
        ids[number, : len(row.ids)] = torch.tensor(row.ids)
        attention[number, : len(row.ids)] = 1
        if types is not None and row.types is not None:
            types[number, : len(row.types)] = torch.tensor(row.types)
    return Batch(ids, attention, types, torch.tensor([row.mask_at for row in rows]))


def by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Indices in batches of similar length, each with at most ``budget`` padded tokens.

    The order depends on the lengths alone (ties by index), so a pool always gives the same batches.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def grouped(
    rows: Sequence[Row], pad: int, device: torch.device, at_least: int = 1
) -> tuple[list[Batch], Tensor]:
    """Batches of rows of similar length, and the order that sorts their outputs like the rows.

    There are ``at_least`` so many, where the rows can be dealt so.
    """
    budget = CPU_TOKENS if device.type == "cpu" else GPU_TOKENS
    if at_least > 1:
        budget = min(budget, sum(len(row.ids) for row in rows) // at_least)
    groups = list(by_length([len(row.ids) for row in rows], budget))
    batches = [collate([rows[i] for i in group], pad).to(device) for group in groups]
    return batches, torch.tensor([i for group in groups for i in group]).argsort()
