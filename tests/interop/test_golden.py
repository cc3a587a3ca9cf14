"""What is written for each tool, byte by byte; Parquet by its schema and rows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from annotation import GOLD, OUT, PAIRS
from command import snapshot
from selftrain.interop.formats import TOOLS
from selftrain.interop.tool import Outgoing

FOLDER = Path(__file__).parent / "golden"
CASES = {
    "label-studio": ("label-studio", OUT),
    "label-studio-pairs": ("label-studio", PAIRS),
    "argilla": ("argilla", OUT),
    "argilla-pairs": ("argilla", PAIRS),
    "doccano.jsonl": ("doccano", OUT),
    "doccano-pairs.jsonl": ("doccano", PAIRS),
    "table.csv": ("csv", OUT),
    "pairs.csv": ("csv", PAIRS),
}
PARQUET = {
    "hf.json": ("hf", OUT),
    "hf-pairs.json": ("hf", PAIRS),
    "cleanlab.json": ("cleanlab", GOLD),
}


def written(place: Path, name: str, out: Outgoing) -> dict[str, bytes | None]:
    """The files that a tool gets, by name."""
    TOOLS[name].write(place, out)
    return snapshot(place) if place.is_dir() else {"": place.read_bytes()}


@pytest.mark.parametrize("file", CASES)
def test_a_tool_gets_the_bytes_that_are_stored_here(file: str, tmp_path: Path) -> None:
    expected = FOLDER / file
    files = snapshot(expected) if expected.is_dir() else {"": expected.read_bytes()}
    assert written(tmp_path / file, *CASES[file]) == files


@pytest.mark.parametrize("file", PARQUET)
def test_a_parquet_file_has_the_columns_and_rows_that_are_stored_here(
    file: str, tmp_path: Path
) -> None:
    assert parquet_facts(tmp_path, *PARQUET[file]) == json.loads((FOLDER / file).read_text("utf-8"))


def parquet_facts(place: Path, name: str, out: Outgoing) -> dict[str, object]:
    """What a Parquet file holds, as JSON: another pyarrow writes other bytes."""
    path = place / "out.parquet"
    TOOLS[name].write(path, out)
    table = pq.read_table(path)
    metadata = {
        key.decode(): json.loads(value) for key, value in (table.schema.metadata or {}).items()
    }
    columns = {field.name: str(field.type) for field in table.schema}
    return {"columns": columns, "metadata": metadata, "rows": table.to_pylist()}


def test_every_tool_has_a_stored_file() -> None:
    assert {name for name, _ in (*CASES.values(), *PARQUET.values())} == set(TOOLS)
