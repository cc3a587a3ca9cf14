"""The memory of a trunk: hidden states below a cut, computed once in a run.

Only the top layers of a model are tuned: below them nothing moves and nothing is dropped, so the
state of a row at the cut is the same in every step, every dropout pass and every round.

The company in which a row is encoded changes the last bits of its state. Therefore rows are
planned before the first one is encoded, in blocks, and a block is encoded as one when the first
of its rows is needed: a row has the same bits whenever that is. A resumed run plans the same
blocks and needs nothing of the earlier process, so the file has no name and vanishes with the
process, however it ends.

The memory belongs to the backbone, because all models with the same cut share it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from selftrain.errors import ModelError, RunError
from selftrain.model.batches import Batch, Row

if TYPE_CHECKING:
    from selftrain.model.backbone import Backbone

BLOCK = 256  # rows encoded together, sorted by length
MAX_ROWS = 65_536  # rows planned: the token ids of each stay in memory

Key = tuple[bytes, bytes]
"""The token ids of a row and its segment ids: its state depends on nothing else."""
Encode = Callable[[Sequence[Row]], list[Tensor]]


class Memory:
    """States of the planned rows at one cut, in a memory-mapped file without a name."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Back to the start, before any plan; the space on disk is free again."""
        self.short = False
        """Whether some rows got no place."""
        self.index: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._starts: list[int] = []
        self._filled: set[int] = set()
        self._file: IO[bytes] | None = None
        self._states: Any = None  # [tokens, D]

    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        """In another process it is empty: its file is open in this one alone."""
        return Memory, ()

    @property
    def planned(self) -> int:
        """The number of rows that have a place."""
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
        """Reserve space for the states of these rows, and return its bytes.

        Rows beyond ``limit`` bytes get no place and are encoded whenever they are needed; then
        ``short`` is True. All space is reserved now: a full disk is an error here, not a crash
        later. ``half`` stores 16 bits of each number, which changes answers.
        """
        self.forget()
        dtype = np.dtype(np.float16 if half else np.float32)
        wanted: dict[Key, None] = {}
        too_many = False
        for key in map(key_of, rows):
            too_many = len(wanted) == MAX_ROWS and key not in wanted
            if too_many:
                break
            wanted[key] = None
        lengths = [len(ids) // 4 for ids, _ in wanted]
        ends = list(accumulate(lengths))
        room = limit // (width * dtype.itemsize)
        count = sum(end <= room for end in ends)
        self.short = too_many or count < len(wanted)
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
        """The states of a batch, [B, L, D]; rows without a place are encoded now."""
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
        with np.errstate(over="ignore"):  # raised below
            stored = states.astype(self._states.dtype)
        if stored.dtype != states.dtype and not np.isfinite(stored).all():
            raise ModelError(
                f"a state of {np.abs(states).max():,.0f} does not fit into 16 bits",
                'keep 32: states = "fp32"',
            )
        self._states[self._starts[first] : self._starts[first + len(keys)]] = stored
        self._filled.add(block)


def memory_of(backbone: Backbone, at: int) -> Memory:
    """The memory that all models on a backbone with a cut at this layer share."""
    return backbone.memories.setdefault(at, Memory())


def key_of(row: Row) -> Key:
    """The key of a row."""
    types = b"" if row.types is None else np.array(row.types, np.int32).tobytes()
    return np.array(row.ids, np.int32).tobytes(), types


def keys_of(batch: Batch) -> list[Key]:
    """The key of each row of a batch, without its padding."""
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
    """A file of that size that nobody else can open, with its space reserved on the disk."""
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
