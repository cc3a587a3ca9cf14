"""Files from annotation tools that cannot be read: one line and a hint each."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation import EXPORTED, LABELS, returned, task, tasks
from selftrain.errors import DataError, RunError
from selftrain.interop.annotations import Known

TASK = task("7", ["good"])
LINE = {"uid": "7", "text": "fine", "label": ["good"]}
RECORD = {"id": "7", "fields": {"text": "fine"}, "responses": {"label": [{"value": "good"}]}}
BAD: dict[str, tuple[str, str | bytes, str, str]] = {
    "not JSON": ("label-studio", "[{]", "not JSON", ""),
    "cut in the middle": ("label-studio", json.dumps([TASK])[:-20], "not JSON", ""),
    "an empty file": ("label-studio", "", "has no rows", ""),
    "an empty array": ("label-studio", "[]", "has no rows", ""),
    "an empty table": ("csv", "", "has no rows", ""),
    "a number": ("argilla", "5", "expected an object", ""),
    "huge nesting": ("label-studio", '[{"data": ' + "[" * 100_000, "not JSON", ""),
    "huge nesting in a line": ("doccano", '{"text": ' + "[" * 100_000, "not JSON", ""),
    "doccano's file": ("label-studio", json.dumps([LINE]), "no row of Label Studio", "doccano"),
    "Argilla's file": ("label-studio", json.dumps([RECORD]), "no row of Label", "--from argilla"),
    "Label Studio's file": ("argilla", json.dumps([TASK]), "no row of Arg", "--from label-studio"),
    "Label Studio's file as lines": ("doccano", json.dumps(TASK), "no row", "label-studio"),
    "a plain table": ("argilla", '[{"text": "a", "label": "b"}]', "no row", "--from csv"),
    "JSON as CSV": ("csv", json.dumps([TASK]), "holds JSON", ""),
    "CSV as Parquet": ("hf", "text,label\na,b\n", "is no Parquet file", "--from csv"),
    "damaged Parquet": ("hf", b"PAR1" + b"0" * 50, "Parquet", ""),
    "no text": ("label-studio", json.dumps([{**TASK, "data": {"uid": "7"}}]), "no text column", ""),
    "a text that is a number": (
        "label-studio",
        json.dumps([{**TASK, "data": {"text": 5}}]),
        "expected text",
        "",
    ),
    "an empty text": ("doccano", json.dumps({**LINE, "text": " "}), "the text is empty", ""),
    "half a character": ("doccano", json.dumps({**LINE, "text": "\ud800"}), "half a char", ""),
    "annotations of another kind": (
        "label-studio",
        json.dumps([{**TASK, "annotations": 5}]),
        "`annotations` is 5",
        "Export",
    ),
    "annotations without a result": (
        "label-studio",
        json.dumps([{**TASK, "annotations": [{}]}]),
        "`annotations.0.result`: field required",
        "Export",
    ),
    "responses of another kind": (
        "argilla",
        json.dumps([{**RECORD, "responses": []}]),
        "`responses` is []",
        "to_disk",
    ),
    "spans for labels": (
        "doccano",
        json.dumps({**LINE, "label": [[0, 4, "PER"]]}),
        "a list of names",
        "JSONL",
    ),
    "a number for a label": ("doccano", json.dumps({**LINE, "label": 5}), "no row of doccano", ""),
    "a list in a table": ("csv", json.dumps(LINE), "expected one name", "--from doccano"),
    "two texts of one uid": (
        "doccano",
        "\n".join(json.dumps({**LINE, "text": each}) for each in "ab"),
        "the uid `7` names two texts",
        "--id",
    ),
    "an unknown label": (
        "doccano",
        json.dumps({**LINE, "label": ["godo"]}),
        "no class of --labels",
        "`good`?",
    ),
    "a label far from all": (
        "doccano",
        json.dumps({**LINE, "label": ["xyz"]}),
        "expected `bad`, `good`",
        "--labels",
    ),
    "labels that look alike": (
        "csv",
        "text,label\na,Good\nb,good\n",
        "differ only in case",
        "",
    ),
    "nobody answered": (
        "label-studio",
        json.dumps([task("7")]),
        "no label to import",
        "--suggestions",
    ),
    "no label in a table": ("csv", "text,label\na,\n", "no label to import", ""),
    "another column": ("csv", "text,stars\na,5\n", "no label column", "--label"),
    "an entry twice": ("doccano", '{"text": "a", "text": "b"}', "two entries are named", ""),
    "bytes that are no text": ("doccano", b'{"text": "\xff"}', "is not UTF-8", "iconv"),
}
NAMES = {"csv": "file.csv", "hf": "file.parquet", "doccano": "file.jsonl"}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_one_line_and_a_hint(case: str, tmp_path: Path) -> None:
    tool, content, problem, hint = BAD[case]
    path = tmp_path / NAMES.get(tool, "file.json")
    if case == "a list in a table":
        path = tmp_path / "file.jsonl"
    path.write_bytes(
        content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    )
    known = Known(LABELS) if "label" in case and case != "labels that look alike" else Known()
    with pytest.raises(DataError) as caught:
        returned(path, tool, known)
    assert problem in caught.value.message
    assert "\n" not in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.hint


@pytest.mark.parametrize("tool", ["label-studio", "argilla", "doccano", "hf", "csv"])
def test_a_folder_without_the_file_of_a_tool_is_refused(tool: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is a folder|has no records"):
        returned(tmp_path, tool)


def test_a_file_of_another_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no row of run"):
        returned(tasks(tmp_path, TASK), "label-studio", Known(LABELS, {"9"}, "run"))


def test_a_link_in_a_folder_of_argilla_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "records.json").symlink_to(EXPORTED / "argilla" / "records.json")
    with pytest.raises(RunError, match="not a plain file"):
        returned(tmp_path / "data", "argilla")


@pytest.mark.parametrize(
    "features",
    [b"[", b"[]", b'{"info": 5}', b'{"info": {"features": {"label": {"names": 5}}}}'],
)
def test_features_of_a_stranger_are_not_trusted(features: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    schema = pa.schema([("text", pa.string()), ("label", pa.int64())], {"huggingface": features})
    pq.write_table(pa.table({"text": ["a"], "label": [7]}, schema=schema), path)
    with pytest.raises(DataError, match="nothing useful of its classes"):
        returned(path, "hf")


def test_more_text_than_memory_has_room_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("selftrain.interop.annotations.MOST_CHARACTERS", 300)
    path = tasks(tmp_path, TASK, task("8", ["bad"]))
    with pytest.raises(DataError, match="more than 300 characters"):
        returned(path, "label-studio")
