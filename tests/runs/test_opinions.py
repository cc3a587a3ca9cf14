"""The opinions of a run come from anyone: a small file must stay small in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow
import pyarrow.parquet
import pytest

from selftrain.disk import sha256
from selftrain.errors import RunError
from selftrain.runs import opinions
from selftrain.runs.opinions import read_opinions, write_opinions
from selftrain.training.estimate import Estimate, Judged, Opinion

LABELS = ("bad", "good")
GOLD = Opinion("gold", "good", (0.25, 0.75))
POOL = Opinion("pool", "bad", (0.75, 0.25), (0.5, 0.5))


def judged(labelled: int = 1, pool: int = 1) -> Judged:
    return Judged(cast(Estimate, None), (GOLD,) * labelled, (POOL,) * pool)


def foreign(path: Path, rows: int = 1, codec: str = "snappy", **column: Any) -> Path:
    """A file of someone's own making, with the same row again and again."""
    row = {"uid": "x", "part": "labelled", "label": "good", "folds": [0.5, 0.5], "model": []}
    columns = {name: [value] * rows for name, value in {**row, **column}.items()}
    table = pyarrow.table(columns, schema=opinions._schema())
    pyarrow.parquet.write_table(table, path, compression=codec)
    return path


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    assert write_opinions(tmp_path / "o", judged()) == sha256(tmp_path / "o")
    assert read_opinions(tmp_path / "o", LABELS) == ([GOLD], [POOL])


def test_a_uid_repeated_in_opinions_takes_its_room_once(tmp_path: Path) -> None:
    path = foreign(tmp_path / "o", 2_048, uid="x" * 100_000)
    assert path.stat().st_size < 20_000
    labelled, _ = read_opinions(path, LABELS)
    assert len(labelled) == 2_048
    assert len({id(each.uid) for each in labelled}) <= 2, "one in each batch"


def test_opinions_packed_as_no_run_packs_them_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is packed with ZSTD"):
        read_opinions(foreign(tmp_path / "o", codec="zstd"), LABELS)


def test_more_numbers_than_classes_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    path = foreign(tmp_path / "o", folds=[0.5] * 1_000_000)
    assert path.stat().st_size < 5_000
    with pytest.raises(RunError, match="has 1,000,000 numbers in 1 rows of a column"):
        read_opinions(path, LABELS)


def test_more_rows_than_a_run_writes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = foreign(tmp_path / "o", 30, part="pool", model=[0.5, 0.5])
    monkeypatch.setattr(opinions, "GUARDED_SLICE_ROWS", 29)
    with pytest.raises(RunError, match="has 30 rows of the pool"):
        read_opinions(path, LABELS)
    monkeypatch.setattr(opinions, "MAX_LINES_IN_MEMORY", 0)
    with pytest.raises(RunError, match=r"has 30 rows$"):
        read_opinions(path, LABELS)


def test_uids_are_counted_each_time_they_are_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = foreign(tmp_path / "o", 10, uid="x" * 1_000)
    monkeypatch.setattr(opinions, "BATCH", 1)
    monkeypatch.setattr(opinions, "LARGEST_OPINIONS", 8_000)
    with pytest.raises(RunError, match="has uids of 9,000 bytes"):
        read_opinions(path, LABELS)


@pytest.mark.parametrize("limit", ["MOST_NUMBERS", "LARGEST_OPINIONS"])
def test_what_could_not_be_read_back_is_not_written(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no reason to fail: the run is trained, and only its labels are not checked."""
    write_opinions(tmp_path / "o", judged())
    monkeypatch.setattr(opinions, limit, 3)
    assert write_opinions(tmp_path / "o", judged()) == ""
    assert not list(tmp_path.iterdir())
