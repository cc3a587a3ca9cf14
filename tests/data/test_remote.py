"""Files in a store: read in each pass, refused when they changed, and never a trace."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from formats import as_csv, as_parquet, damaged_parquet, message_and_hint
from selftrain.data import pool as pool_room
from selftrain.data import remote
from selftrain.data.read import read_labelled, read_pool, read_unlabelled
from selftrain.data.rows import Notes, examples
from selftrain.errors import DataError

PARTS = {
    "pool/part-0.csv": as_csv([{"text": "a"}, {"text": "b"}]),
    "pool/part-1.parquet": as_parquet([{"text": "b"}, {"text": "c"}]),
    "pool/part-2.jsonl.gz": gzip.compress(b'{"text": "d"}\n'),
    "pool/_SUCCESS": b"",
    "labelled.csv": as_csv([{"text": "x", "label": "y"}]),
    "cut.parquet": as_parquet([{"text": "a"}])[:-40],
    "damaged.parquet": damaged_parquet(),
}


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_room, "MAX_ROWS_IN_MEMORY", 0)


@pytest.fixture
def memory() -> Iterator[Any]:
    """A store in the memory of this process."""
    store = fsspec.filesystem("memory")
    for name, raw in PARTS.items():
        store.pipe_file(f"/texts/{name}", raw)
    yield store
    store.rm("/texts", recursive=True)


def check_reads(start: str) -> None:
    """Files, folders and globs of a store give the rows that files of this machine give."""
    notes = Notes()
    pool = read_unlabelled(f"{start}/pool/", notes=notes)
    assert list(pool) == list(pool) == examples(["a", "b", "c", "d"])
    assert notes.columns == [f"{start}/pool/ (3 files): text from `text`"]
    assert list(read_unlabelled(f"{start}/pool", notes=Notes())) == list(pool)
    both = [f"{start}/pool/*.jsonl.gz", f"{start}/pool/part-0.csv"]
    assert list(read_pool(both, notes=Notes())) == examples(["d", "a", "b"])
    (row,) = read_labelled(f"{start}/labelled.csv", notes=Notes())
    assert (row.example.text, row.label) == ("x", "y")


def refused(address: str) -> tuple[str, str]:
    """What is said of an address that cannot be read: a message of one line, and a hint."""
    with pytest.raises(DataError) as error:
        list(read_unlabelled(address, notes=Notes()))
    message, hint = message_and_hint(error)
    assert "\n" not in message
    return message, hint


@pytest.mark.usefixtures("streamed", "memory")
def test_files_of_a_store_are_read_like_files_here() -> None:
    check_reads("memory://texts")


@pytest.mark.usefixtures("streamed")
def test_a_file_of_a_store_that_changes_between_two_reads_is_an_error(memory: Any) -> None:
    pool = read_unlabelled("memory://texts/pool/part-0.csv", notes=Notes())
    memory.pipe_file("/texts/pool/part-0.csv", as_csv([{"text": "z"}, {"text": "b"}]))
    with pytest.raises(DataError, match=r"part-0\.csv changed while it was in use"):
        list(pool)


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    ("address", "message", "hint"),
    [
        ("memory://texts/none.csv", "memory://texts/none.csv does not exist", "letter by letter"),
        ("memory://texts/none/", "has no files", "letter by letter"),
        ("memory://texts/*.tsv", "has no files", "letter by letter"),
        ("memory://texts/cut.parquet", "cannot be read as Parquet", ""),
        ("ftp://texts/a.csv", "is in a store that is not read; expected one of", "download it"),
    ],
)
def test_an_address_that_cannot_be_read_is_one_line_and_a_hint(
    address: str, message: str, hint: str
) -> None:
    found = refused(address)
    assert message in found[0]
    assert hint in found[1]


@pytest.mark.parametrize(("protocol", "extra"), [("s3", "s3"), ("gs", "gcs")])
def test_a_store_whose_package_is_missing_names_the_extra(
    protocol: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("s3fs", "gcsfs"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, protocol, raising=False)
    message, hint = refused(f"{protocol}://bucket/a.csv")
    assert message.endswith("needs a package that is not installed")
    assert hint == f"pip install 'selftrain[{extra}]'"


def test_of_a_wide_parquet_file_only_the_needed_bytes_are_asked_for(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "BLOCK", 2**16)
    path = "/texts/wide.parquet"
    wide = np.random.default_rng(1).bytes(2**24)
    table = pa.table({"text": ["a", "b"], "wide": [wide[: 2**23], wide[2**23 :]]})
    with memory.open(path, "wb") as file:
        pq.write_table(table, file)
    asked: list[int] = []
    opened = type(memory).open

    def counted(store: Any, *args: Any, **more: Any) -> Any:
        file = opened(store, *args, **more)
        read = file.read
        file.read = lambda size=-1: asked.append(len(raw := read(size))) or raw
        return file

    monkeypatch.setattr(type(memory), "open", counted)
    assert list(read_unlabelled("memory://texts/wide.parquet", notes=Notes())) == examples(
        ["a", "b"]
    )
    assert 0 < sum(asked) < 2**20


def test_files_of_this_machine_import_nothing_of_a_store(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(as_csv([{"text": "a"}]))
    program = (
        "import sys; from selftrain.data.read import read_unlabelled; "
        "from selftrain.data.rows import Notes; "
        f"read_unlabelled({str(tmp_path)!r}, notes=Notes()); "
        "assert not {'fsspec', 's3fs', 'botocore'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
