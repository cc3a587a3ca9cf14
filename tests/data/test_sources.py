"""Pipes, standard input, JSON arrays and workbooks: read once from where they come, then again."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import threading
import zipfile
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from formats import texts_of
from selftrain.data import sources, workbook
from selftrain.data.places import Place
from selftrain.data.read import Columns, Reading, read_labelled, read_pool, read_unlabelled
from selftrain.data.rows import Notes, examples
from selftrain.errors import DataError

ROWS = [{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]
PAIRS = [("a", "x"), ("b", "y")]
CSV = b"text,label\na,x\nb,y\n"


class Stdin(io.TextIOWrapper):
    def __init__(self, raw: bytes) -> None:
        super().__init__(io.BytesIO(raw))


def fed(path: Path, raw: bytes) -> Path:
    """A named pipe that somebody writes."""
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(raw,), daemon=True).start()
    return path


@pytest.mark.parametrize("raw", [CSV, gzip.compress(CSV)], ids=["plain", "gzipped"])
def test_a_named_pipe_is_read_once_and_its_rows_again_and_again(raw: bytes, tmp_path: Path) -> None:
    pool = read_unlabelled(fed(tmp_path / "pipe", raw), notes=Notes())
    assert list(pool) == list(pool) == examples(["a", "b"])


def test_the_ending_of_a_pipe_gives_its_format(tmp_path: Path) -> None:
    raw = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    assert texts_of(read_labelled(fed(tmp_path / "p.jsonl", raw), notes=Notes())) == PAIRS


@pytest.mark.parametrize("form", [None, "csv", "jsonl", "json", "parquet", "tsv"])
def test_a_dash_is_standard_input_in_any_format(
    form: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), table)
    lines = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    raw = {
        "jsonl": lines,
        "json": json.dumps(ROWS).encode(),
        "parquet": table.getvalue(),
        "tsv": CSV.replace(b",", b"\t"),
    }.get(form or "", CSV)
    monkeypatch.setattr(sys, "stdin", Stdin(raw))
    notes = Notes()
    assert texts_of(read_labelled(Place("-"), how=Reading(form), notes=notes)) == PAIRS
    assert notes.columns == ["standard input: text from `text`, label from `label`"]


def test_a_closed_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="standard input is closed"):
        read_unlabelled(Place("-"), notes=Notes())


def test_an_error_in_a_pipe_names_the_pipe_and_not_its_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(b"text,label\na,x,y\n"))
    with pytest.raises(DataError, match=r"^standard input, line 2: 3 fields"):
        read_labelled(Place("-"), notes=Notes())


def test_the_copy_of_a_pipe_lives_as_long_as_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(CSV))
    source = sources.source_of(Place("-"))
    assert source.path.stat().st_mode & 0o777 == 0o600
    path = source.path
    del source
    assert not path.exists()


def test_a_file_without_an_ending_is_read_as_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(CSV)
    assert texts_of(read_labelled(tmp_path / "rows", how=Reading("csv"), notes=Notes())) == PAIRS


def test_several_files_are_one_pool(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\none\ntwo\n")
    (tmp_path / "b.jsonl").write_text('{"text": "two"}\n{"text": "three"}\n')
    notes = Notes()
    pool = read_pool([tmp_path / "a.csv", tmp_path / "b.jsonl"], notes=notes)
    assert list(pool) == examples(["one", "two", "three"])
    assert dict(notes) == {"duplicate pool rows dropped": 1}
    assert len(notes.columns) == 2


def test_the_pool_may_name_its_text_otherwise(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("body,text\none,no\n")
    columns = Columns(text="text", pool_text="body")
    assert list(read_unlabelled(tmp_path / "a.csv", columns, notes=Notes())) == examples(["one"])
    for wrong in (Columns(text="txt"), Columns(pool_text="txt")):
        with pytest.raises(DataError, match="no column `txt`") as error:
            read_unlabelled(tmp_path / "a.csv", wrong, notes=Notes())
        assert error.value.hint == "did you mean --pool-text text?"


# ── JSON ──


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ROWS),
        json.dumps(ROWS, indent=2),
        "\ufeff  " + json.dumps(ROWS) + "\n",
        "".join(json.dumps(row) + "\n" for row in ROWS),
    ],
    ids=["one line", "many lines", "marked", "JSON lines"],
)
def test_json_is_an_array_of_objects_or_lines_of_them(text: str, tmp_path: Path) -> None:
    for name in ("a.json", "a.JSON"):
        (tmp_path / name).write_text(text, "utf-8")
        assert texts_of(read_labelled(tmp_path / name, notes=Notes())) == PAIRS


def test_an_array_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"text": f"é {number} " + "ab" * number, "label": "x"} for number in range(40)]
    (tmp_path / "a.json").write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
    for size in (1, 7, 64):
        monkeypatch.setattr(sources, "FIRST_BYTES", size)
        read = read_labelled(tmp_path / "a.json", notes=Notes())
        assert [row.example.text for row in read] == [row["text"] for row in rows]


def test_an_object_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FIELD_LIMIT", 1000)
    monkeypatch.setattr(sources, "FIRST_BYTES", 100)
    (tmp_path / "a.json").write_text(json.dumps([{"text": "a" * 5000}]))
    with pytest.raises(DataError, match="row 1: not JSON"):
        read_unlabelled(tmp_path / "a.json", notes=Notes())


# ── Excel ──


def book(path: Path, *rows: list[object], more: str = "") -> Path:
    file = openpyxl.Workbook()
    for row in rows:
        file.active.append(row)
    if more:
        file.create_sheet(more)
    file.save(path)
    return path


def test_a_workbook_is_read_from_its_first_sheet(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", ["text", "label"], ["a", 1], [], ["b", 2.0], more="notes")
    notes = Notes()
    assert texts_of(read_labelled(path, notes=notes)) == [("a", "1"), ("b", "2")]
    assert notes.remarks == [f"{path}: the first of 2 sheets, `Sheet`"]


def test_a_row_of_a_workbook_is_named_by_its_number(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", ["text", "label"], ["a", "x"], ["b", None])
    with pytest.raises(DataError, match="row 3: the label is empty"):
        read_labelled(path, notes=Notes())
    path = book(tmp_path / "b.xlsx", ["text", "text"], ["a", "b"])
    with pytest.raises(DataError, match="two columns are named `text`"):
        read_labelled(path, notes=Notes())


def test_without_openpyxl_the_menu_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = book(tmp_path / "a.xlsx", ["text"], ["a"])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match="openpyxl is not installed") as error:
        read_unlabelled(path, notes=Notes())
    assert "selftrain[excel]" in error.value.hint
    assert "File > Save As > CSV UTF-8" in error.value.hint


def test_a_workbook_that_is_large_inside_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbook, "LARGEST", 1000)
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "a" * 1001)
    with pytest.raises(DataError, match="has 1,001 bytes unpacked; expected at most 1,000"):
        read_unlabelled(tmp_path / "a.xlsx", notes=Notes())
