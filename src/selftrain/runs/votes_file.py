"""A file of votes: a row for each pool row with its uid and the votes on it, and no text.

Each chunk of a round is one group of rows, so a file is written and read chunk by chunk. Numbers
are stored as they are in memory, 64 bits each. The file may come from anyone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Self

import torch

from selftrain.data.rows import Example
from selftrain.disk import damaged
from selftrain.errors import RunError
from selftrain.method.scores import Votes
from selftrain.runs.tables import excess_of, groups_of, open_table, text_bytes, values

BY_CLASS = ("plain", "mean", "wins", "variance")
"""Votes with a number for each class; the entropy is one number a row."""
LARGEST_UIDS = 2**24
"""Bytes of the uids of a chunk: 16 KiB for each of its rows."""


# ── writing ──────────────────────────────────────────────────────────────────────────────────


class VotesWriter:
    """Writes chunks of votes to a file; without a chunk the file stays empty."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
        self._file.close()

    def write(self, examples: Sequence[Example], votes: Votes) -> None:
        """Add a chunk."""
        import pyarrow.parquet

        size = sum(len(encoded(example)) for example in examples)
        if size > LARGEST_UIDS:
            raise RunError(
                f"the ids of {len(examples):,} rows have {size:,} bytes, more than is read back",
                "give the pool shorter ids, or none: texts are then named by their hash",
            )
        schema = _schema(votes.plain.shape[1])
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self._file, schema)
        self._writer.write_table(_table(examples, votes, schema))


def encoded(example: Example) -> bytes:
    """The uid of an example as it is stored."""
    # The uid of an example made in Python may be any string, even half a surrogate pair.
    return example.uid.encode("utf-8", "surrogatepass")


@cache
def _schema(classes: int) -> Any:
    """The columns of a part: the uid of each row, and its votes as they are in memory."""
    import pyarrow

    number = pyarrow.float64()
    by_class = pyarrow.list_(pyarrow.field("item", number, nullable=False), classes)
    return pyarrow.schema(
        [
            pyarrow.field("uid", pyarrow.binary(), nullable=False),
            *(pyarrow.field(name, by_class, nullable=False) for name in BY_CLASS),
            pyarrow.field("entropy", number, nullable=False),
        ]
    )


def _table(examples: Sequence[Example], votes: Votes, schema: Any) -> Any:
    import pyarrow

    uids = [encoded(example) for example in examples]
    columns = [pyarrow.array(uids, pyarrow.binary())]
    for name in BY_CLASS:
        numbers = pyarrow.array(getattr(votes, name).flatten().numpy())
        columns.append(
            pyarrow.FixedSizeListArray.from_arrays(numbers, type=schema.field(name).type)
        )
    columns.append(pyarrow.array(votes.entropy.numpy()))
    return pyarrow.table(columns, schema=schema)


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def read_votes(
    path: Path, sizes: Sequence[int], classes: int, passes: int
) -> Iterator[tuple[list[bytes], Votes]]:
    """The uids and votes of chunks of these sizes, each checked; one is in memory at a time."""
    if not sizes:
        return
    with open_table(path, _schema(classes), partial(_excess, sizes, classes)) as file:
        for group in range(len(sizes)):
            table = file.read_row_group(group, use_threads=False)
            table.validate(full=True)
            yield _uids(path, table["uid"]), _votes(path, table, classes, passes)


def _excess(sizes: Sequence[int], classes: int, about: Any) -> str:
    """Why a file has other chunks, or larger ones; empty if each of its groups is a chunk."""
    rows = [group.num_rows for group in groups_of(about)]
    if rows != list(sizes):
        return f"has {sum(rows):,} rows in {len(rows)} chunks"
    numbers = 8 * max(sizes) * (len(BY_CLASS) * classes + 1)  # bytes
    return excess_of(about, 2 * numbers + LARGEST_UIDS, width=classes, at_once=False)


def _uids(path: Path, column: Any) -> list[bytes]:
    """The uids of a chunk, in which equal ones are one object."""
    size = sum(map(text_bytes, column.chunks))
    if size > LARGEST_UIDS:
        raise damaged(path, f"has a chunk with ids of {size:,} bytes")
    return [uid for part in column.chunks for uid in values(part)]


def _votes(path: Path, table: Any, classes: int, passes: int) -> Votes:
    """The votes of a chunk; an error where a number is one that no teacher gives."""

    def numbers(name: str) -> torch.Tensor:
        column = table[name].combine_chunks()
        flat = column.flatten() if name in BY_CLASS else column
        return torch.from_numpy(flat.to_numpy().copy())

    by_class = {name: numbers(name).reshape(table.num_rows, classes) for name in BY_CLASS}
    votes = Votes(**by_class, entropy=numbers("entropy"), passes=passes)
    limits = {"plain": 1.0, "mean": 1.0, "wins": float(passes), "variance": 1.0}
    slack = 1 + 1e-6  # a probability may be rounded up
    for name, largest in limits.items():
        given = by_class[name]
        if not bool(((given >= 0) & (given <= largest * slack)).all()):  # False for no number
            raise damaged(
                path, f"holds votes no teacher gives: {name} above {largest:g} or below 0"
            )
    if not bool(votes.entropy.isfinite().all()):
        raise damaged(path, "holds an entropy that is no number")
    return votes
