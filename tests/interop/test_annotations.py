"""What people answered becomes labelled rows: agreed labels, and counts of all the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation import EXPORTED, LABELS, labels_by_uid, result, returned, task, tasks
from selftrain.data.read import Columns, read_labelled
from selftrain.data.rows import Notes, uid_of
from selftrain.interop.annotations import Known, write

DISAGREE = "rows on which people disagree, without a majority, left out"
SKIPPED = "rows that people skipped left out"
UNLABELLED = "rows without a label left out"
SEVERAL = "rows with several labels at once left out"
TAKEN = "rows without an answer: the suggested label taken"


# ── files as the tools write them ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("file", "tool"),
    [
        ("label-studio.json", "label-studio"),
        ("label-studio-min.json", "label-studio"),
        ("argilla", "argilla"),
        ("argilla/records.json", "argilla"),
        ("doccano.jsonl", "doccano"),
    ],
)
def test_an_export_of_a_tool_gives_the_labels_of_people(file: str, tool: str) -> None:
    rows, counts = returned(EXPORTED / file, tool, Known(LABELS))
    assert labels_by_uid(rows) == {"7": "good", "8": "good"}
    assert [row.example.text for row in rows] == ["a fine film", "längst <b>dull</b>"]
    assert counts[DISAGREE] == 1


def test_skipped_rows_are_counted_also_where_a_tool_suggests_a_label() -> None:
    for how in (False, True):
        _, counts = returned(EXPORTED / "label-studio.json", "label-studio", suggestions=how)
        assert counts[SKIPPED] == 1


# ── who counts ───────────────────────────────────────────────────────────────────────────────


def test_the_most_frequent_label_counts_and_ties_are_left_out(tmp_path: Path) -> None:
    path = tasks(
        tmp_path,
        task("majority", ["good"], ["bad"], ["good"]),
        task("tie", ["good"], ["bad"]),
        task("skipped once", ["good"], None),
        task("skipped", None),
        task("several", ["good", "bad"]),
        task("nobody"),
    )
    rows, counts = returned(path, "label-studio")
    assert labels_by_uid(rows) == {"majority": "good", "skipped once": "good"}
    assert counts == {DISAGREE: 1, SKIPPED: 1, SEVERAL: 1, UNLABELLED: 1}


def test_a_suggestion_is_taken_only_if_asked_and_only_where_nobody_answered(tmp_path: Path) -> None:
    path = tasks(tmp_path, task("answered", ["good"]), task("open"), task("skipped", None))
    assert labels_by_uid(returned(path, "label-studio")[0]) == {"answered": "good"}
    rows, counts = returned(path, "label-studio", suggestions=True)
    assert labels_by_uid(rows) == {"answered": "good", "open": "bad"}
    assert counts == {TAKEN: 1, SKIPPED: 1}


def test_rows_of_one_uid_are_several_people(tmp_path: Path) -> None:
    """As in JSON-MIN, or where the files of doccano's users are put together."""
    path = tmp_path / "all.jsonl"
    answers = [("7", "good"), ("7", "bad"), ("7", "good"), ("8", "bad"), ("8", "good")]
    lines = [json.dumps({"uid": u, "text": f"text {u}", "label": [label]}) for u, label in answers]
    path.write_text("\n".join(lines))
    rows, counts = returned(path, "doccano")
    assert labels_by_uid(rows) == {"7": "good"}
    assert counts == {DISAGREE: 1}


def test_a_label_is_cleaned_before_it_is_compared(tmp_path: Path) -> None:
    path = tasks(tmp_path, task("7", [" cafe\u0301\u200b"]))
    rows, _ = returned(path, "label-studio", Known(("caf\xe9", "bar")))
    assert labels_by_uid(rows) == {"7": "caf\xe9"}


def test_drafts_of_argilla_are_no_answers_and_discarded_ones_are_skips(tmp_path: Path) -> None:
    def record(uid: str, status: str) -> dict[str, Any]:
        given = {"value": "good", "user_id": "u", "status": status}
        return {"id": uid, "fields": {"text": uid}, "responses": {"label": [given]}}

    path = tmp_path / "records.json"
    path.write_text(
        json.dumps([record(each, each) for each in ("submitted", "draft", "discarded")])
    )
    rows, counts = returned(path, "argilla")
    assert labels_by_uid(rows) == {"submitted": "good"}
    assert counts == {UNLABELLED: 1, SKIPPED: 1}


# ── which row ────────────────────────────────────────────────────────────────────────────────


def test_a_row_is_found_by_its_uid_else_by_its_text_and_the_rest_is_counted(tmp_path: Path) -> None:
    by_text = uid_of("text without")
    path = tasks(tmp_path, task("7", ["good"]), task("without", ["bad"]), task("new", ["bad"]))
    known = Known(LABELS, {"7", by_text, "9"}, "run")
    rows, counts = returned(path, "label-studio", known)
    assert labels_by_uid(rows) == {"7": "good", by_text: "bad", "new": "bad"}
    assert counts == {"rows that the run does not know: taken all the same": 1}


def test_without_a_uid_a_row_goes_by_its_text(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    path.write_text('{"id": 5, "text": "fine", "label": ["good"]}\n')
    rows, _ = returned(path, "doccano")
    assert labels_by_uid(rows) == {uid_of("fine"): "good"}


def test_fields_of_other_names_are_named(tmp_path: Path) -> None:
    facts = {"data": {"body": "fine", "key": "7"}, "annotations": [{"result": []}]}
    facts["annotations"] = [{"result": [result(["good"], "topic"), result(["x"], "other")]}]
    names = Columns(text="body", id="key", label="topic")
    rows, _ = returned(tasks(tmp_path, facts), "label-studio", columns=names)
    assert labels_by_uid(rows) == {"7": "good"}


def test_numbers_of_classes_get_the_names_that_a_dataset_has_for_them(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    info = {"info": {"features": {"label": {"names": ["bad", "good"], "_type": "ClassLabel"}}}}
    schema = pa.schema(
        [("text", pa.string()), ("label", pa.int64())], {"huggingface": json.dumps(info)}
    )
    columns = {"text": ["a", "b", "c", "d"], "label": [1, 0, -1, None]}
    pq.write_table(pa.table(columns, schema=schema), path)
    rows, counts = returned(path, "hf")
    assert [row.label for row in rows] == ["good", "bad"]
    assert counts == {UNLABELLED: 2}


def test_the_file_is_one_that_fit_reads_with_the_same_uids(tmp_path: Path) -> None:
    rows, _ = returned(EXPORTED / "doccano.jsonl", "doccano")
    write(tmp_path / "labelled.csv", rows)
    assert read_labelled(tmp_path / "labelled.csv", notes=Notes()) == rows
