"""The frozen lower layers, and what they say of a row, computed once in a run.

Only the top k layers of a model are tuned: below them nothing moves and nothing is dropped, so a
row's state at the cut is the same in every step, every dropout pass and every round.

Which rows are encoded together moves a state's last bits. Rows are therefore planned before the
first is encoded, in blocks, and a block is encoded as a whole when one of its rows is first asked
for: a row has the same bits whenever that is. A resumed run plans the same blocks and needs
nothing of the earlier process, so the file has no name and vanishes with it, however it ends.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import IO, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from selftrain.errors import ModelError, RunError
from selftrain.model.backbone import Backbone
from selftrain.model.batches import Batch, Row, grouped

BLOCK = 256  # rows encoded together, sorted by length
MOST_ROWS = 65_536  # the most rows planned: what is kept of each besides its state stays in memory

Key = tuple[bytes, bytes]
"""The token ids of a row and its segment ids: all that its state depends on."""
Encode = Callable[[Sequence[Row]], list[Tensor]]


class Trunk(nn.Module):
    """The layers below the cut: a batch in, hidden states [B, L, D] out. Dropout is never on."""

    def __init__(
        self,
        layers: nn.Module,
        pad: int,
        memory: Memory | None = None,
        below: Trunk | None = None,
    ) -> None:
        super().__init__()
        self.below = below
        self.layers = layers
        self.pad = pad
        self.memory = memory

    def train(self, _mode: bool = True) -> Trunk:
        """Stays as it is: a state with dropout in it could not be kept."""
        super().train(False)
        return self

    def forward(self, batch: Batch) -> Tensor:
        """The states of a batch; those that are planned for are looked up."""
        if self.memory is None or not self.memory.planned:
            return self._encode(batch)
        with torch.no_grad():  # frozen: nothing below the cut is ever asked for a gradient
            return self.memory.recall(batch, self._encode, self._encode_rows)

    def _encode(self, batch: Batch) -> Tensor:
        state = None if self.below is None else self.below(batch)
        hidden: Tensor = self.layers(**batch.inputs(state)).last_hidden_state
        return hidden

    def _encode_rows(self, rows: Sequence[Row]) -> list[Tensor]:
        """The states of rows, each [its length, D], in the order of the rows."""
        batches, back = grouped(rows, self.pad, next(self.layers.parameters()).device)
        states = [state for batch in batches for state in self._encode(batch).cpu()]
        return [states[place][: len(row.ids)] for place, row in zip(back, rows, strict=True)]


class Memory:
    """States of the planned rows at one cut, in a memory-mapped file without a name."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """As it was before any plan; the disk gets its space back."""
        self.short = False
        self.index: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._starts: list[int] = []
        self._filled: set[int] = set()
        self._file: IO[bytes] | None = None
        self._states: Any = None  # [tokens, D]

    @property
    def planned(self) -> int:
        """How many rows have a place."""
        return len(self._keys)

    def plan(
        self,
        rows: Iterable[Row],
        width: int,
        *,
        limit: int,
        folder: Path | None = None,
        half: bool = False,
    ) -> int:
        """Make room for the states of these rows, and say how many bytes that takes.

        Rows beyond ``limit`` bytes get no place and are encoded whenever they are asked for: then
        it is ``short``. The disk is asked for all of it now: a full one is an error here, not a
        crash later. ``half`` keeps 16 bits of each number, which changes answers.
        """
        self.forget()
        dtype = np.dtype(np.float16 if half else np.float32)
        wanted: dict[Key, None] = {}
        full = False
        for key in map(key_of, rows):
            full = len(wanted) == MOST_ROWS and key not in wanted
            if full:
                break
            wanted[key] = None
        lengths = [len(ids) // 4 for ids, _ in wanted]
        ends = list(accumulate(lengths))
        room = limit // (width * dtype.itemsize)
        count = sum(end <= room for end in ends)
        self.short = full or count < len(wanted)
        if not count:
            return 0
        self._keys = list(wanted)[:count]
        self._starts = [0, *ends[:count]]
        self.index = {key: number for number, key in enumerate(self._keys)}
        size = self._starts[-1] * width * dtype.itemsize
        self._file = _reserved(size, folder)
        self._states = np.memmap(self._file, dtype, "r+", shape=(self._starts[-1], width))
        return size

    def recall(
        self, batch: Batch, encode: Callable[[Batch], Tensor], encode_rows: Encode
    ) -> Tensor:
        """The states of a batch, [B, L, D]; those of a row that has no place are encoded anew."""
        places = [self.index.get(key) for key in keys_of(batch)]
        known = {row: place for row, place in enumerate(places) if place is not None}
        for block in sorted({place // BLOCK for place in known.values()} - self._filled):
            self._fill(block, encode_rows)
        out = torch.zeros(*batch.ids.shape, self._states.shape[1])
        for row, place in known.items():
            state = torch.from_numpy(self._states[self._starts[place] : self._starts[place + 1]])
            out[row, : len(state)] = state
        out = out.to(batch.ids.device)
        new = [row for row in range(len(places)) if row not in known]
        if new:
            out[new] = encode(batch.take(new))
        return out

    def _fill(self, block: int, encode_rows: Encode) -> None:
        first = block * BLOCK
        keys = self._keys[first : first + BLOCK]
        states = torch.cat(encode_rows([_row(key) for key in keys])).numpy()
        with np.errstate(over="ignore"):  # told below
            kept = states.astype(self._states.dtype)
        if kept.dtype != states.dtype and not np.isfinite(kept).all():
            raise ModelError(
                f"a state of {np.abs(states).max():,.0f} does not fit into 16 bits",
                'keep 32: states = "fp32"',
            )
        self._states[self._starts[first] : self._starts[first + len(keys)]] = kept
        self._filled.add(block)


_MEMORIES: WeakKeyDictionary[nn.Module, dict[int, Memory]] = WeakKeyDictionary()


def memory_of(backbone: Backbone, at: int) -> Memory:
    """The memory that all models of a backbone cut at this layer share."""
    return _MEMORIES.setdefault(backbone.encoder, {}).setdefault(at, Memory())


def key_of(row: Row) -> Key:
    """What the state of a row depends on."""
    types = b"" if row.types is None else np.array(row.types, np.int32).tobytes()
    return np.array(row.ids, np.int32).tobytes(), types


def keys_of(batch: Batch) -> list[Key]:
    """The same for each row of a batch, without its padding."""
    ids = batch.ids.cpu().numpy().astype(np.int32)
    types = None if batch.types is None else batch.types.cpu().numpy().astype(np.int32)
    lengths = batch.attention.sum(1).tolist()
    return [
        (ids[i, :n].tobytes(), b"" if types is None else types[i, :n].tobytes())
        for i, n in enumerate(lengths)
    ]


def _row(key: Key) -> Row:
    ids, types = (np.frombuffer(part, np.int32).tolist() for part in key)
    return Row(tuple(ids), tuple(types) if types else None)


def _reserved(size: int, folder: Path | None) -> IO[bytes]:
    """A file of that size that nobody else can open, its space taken from the disk."""
    try:
        file = tempfile.TemporaryFile(dir=folder, prefix="selftrain-")  # noqa: SIM115
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            for _ in range(0, size, 1 << 20):
                file.write(bytes(1 << 20))
            file.truncate(size)
    except OSError as error:
        place = folder or tempfile.gettempdir()
        raise RunError(
            f"{place} does not take the {size / 1e6:,.0f} MB of states to keep: {error.strerror}",
            "keep them elsewhere: --cache FOLDER, or keep fewer: --cache-mb 0",
        ) from None
    return file
