"""A file of votes: a row for each pool row with its uid and the votes on it, and no text.

Each chunk of a round is one group of rows, so a file is written and read chunk by chunk. Numbers
are stored as they are in memory, 64 bits each. The file may come from anyone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self

import torch

from selftrain.data.rows import Example
from selftrain.disk import damaged
from selftrain.method.scores import Votes
from selftrain.runs.lessons import CODECS, LARGEST_TABLE

BY_CLASS = ("plain", "mean", "wins", "variance")
"""Votes with a number for each class; the entropy is one number a row."""


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
    import pyarrow
    import pyarrow.parquet

    if not sizes:
        return
    try:
        with path.open("rb") as raw, pyarrow.parquet.ParquetFile(raw) as file:
            if not file.schema_arrow.equals(_schema(classes)):
                raise damaged(path, f"has the columns {file.schema_arrow.names}")
            _check_groups(path, file.metadata, sizes)
            for group in range(len(sizes)):
                table = file.read_row_group(group, use_threads=False)
                table.validate(full=True)
                yield table["uid"].to_pylist(), _votes(path, table, classes, passes)
    except (pyarrow.ArrowException, OSError) as error:
        raise damaged(path, f"is not Parquet: {error}".partition("\n")[0]) from None


def _check_groups(path: Path, about: Any, sizes: Sequence[int]) -> None:
    """Raise unless each chunk is one group of rows that can be unpacked."""
    groups = [about.row_group(place) for place in range(about.num_row_groups)]
    if [group.num_rows for group in groups] != list(sizes):
        raise damaged(path, f"has {about.num_rows:,} rows in {len(groups)} chunks")
    for group in groups:
        columns = [group.column(place) for place in range(group.num_columns)]
        packed = sum(column.total_compressed_size for column in columns)
        strange = {column.compression for column in columns}.difference(CODECS)
        if strange:
            raise damaged(path, f"is packed with {min(strange)}")
        if max(group.total_byte_size, packed) > LARGEST_TABLE:
            raise damaged(path, f"has a chunk of {max(group.total_byte_size, packed):,} bytes")


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
        values = by_class[name]
        if not bool(((values >= 0) & (values <= largest * slack)).all()):  # False for no number
            raise damaged(
                path, f"holds votes no teacher gives: {name} above {largest:g} or below 0"
            )
    if not bool(votes.entropy.isfinite().all()):
        raise damaged(path, "holds an entropy that is no number")
    return votes
