"""A file of votes comes from anyone: a small one must stay small in memory."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet
import pytest
import torch

from selftrain.data.rows import Example
from selftrain.errors import RunError
from selftrain.method.scores import Votes
from selftrain.runs import votes_file
from selftrain.runs.votes_file import VotesWriter, read_votes

ROWS = 100


def written(path: Path, uids: list[str]) -> Path:
    half = torch.full((len(uids), 2), 0.5, dtype=torch.float64)
    votes = Votes(half, half, half, half, half[:, 0], passes=1)
    with VotesWriter(path) as writer:
        writer.write([Example(uid, "text") for uid in uids], votes)
    return path


def read(path: Path) -> list[bytes]:
    ((uids, votes),) = read_votes(path, [ROWS], classes=2, passes=1)
    assert votes.plain.shape == (ROWS, 2)
    return uids


def test_a_uid_repeated_in_a_chunk_takes_its_room_once(tmp_path: Path) -> None:
    path = written(tmp_path / "votes", ["x" * 100_000] * ROWS)
    assert path.stat().st_size < 20_000
    uids = read(path)
    assert uids == [b"x" * 100_000] * ROWS
    assert len(set(map(id, uids))) == 1


def test_uids_keep_their_order_where_their_coding_changes_in_a_chunk(tmp_path: Path) -> None:
    """A dictionary that grows too large ends, and plain texts follow it."""
    uids = [f"{number % 70}" * 20_000 for number in range(ROWS)]
    path = written(tmp_path / "votes", uids)
    encodings = pyarrow.parquet.read_metadata(path).row_group(0).column(0).encodings
    assert {"PLAIN", "RLE_DICTIONARY"} <= set(encodings)
    assert read(path) == [uid.encode() for uid in uids]


@pytest.mark.parametrize(
    ("length", "said"),
    [(1_000, "has a chunk with ids of 10,000 bytes"), (10_000, r"has 10\d,\d\d\d bytes unpacked")],
)
def test_a_chunk_of_large_ids_is_refused(
    length: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The larger one for what its footer says, the smaller one for what it holds."""
    path = written(tmp_path / "votes", [f"{number % 10}" * length for number in range(ROWS)])
    monkeypatch.setattr(votes_file, "LARGEST_UIDS", 8_000)
    with pytest.raises(RunError, match=said):
        read(path)


def test_a_file_packed_as_no_part_is_packed_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "votes", ["x"] * ROWS)
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table, path, compression="zstd")
    with pytest.raises(RunError, match="is packed with ZSTD"):
        read(path)


def test_ids_that_could_not_be_read_back_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(votes_file, "LARGEST_UIDS", ROWS - 1)
    with pytest.raises(RunError, match="the ids of 100 rows have 100 bytes") as error:
        written(tmp_path / "votes", ["x"] * ROWS)
    assert "shorter ids" in error.value.hint
