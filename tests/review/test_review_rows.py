"""The rows of a review come from the lessons of a run and the texts of a file."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from reviewed import line, write_run
from selftrain.data.rows import examples, uid_of
from selftrain.errors import DataError, RunError
from selftrain.review import rows as rooms
from selftrain.review.rows import MAX_ROWS, read_rows, why

A, B, C = (uid_of(text) for text in "abc")


def test_a_row_is_shown_as_the_latest_round_judged_it(tmp_path: Path) -> None:
    lessons = [[], [line(A, "bad"), line(B, "bad", "left")], [line(A, "good", "hard")]]
    run = write_run(tmp_path / "run", lessons)
    found = read_rows(run, examples(["b", "a"]), "pool.csv")
    assert [(row.example.text, row.round, row.label) for row in found.rows] == [
        ("b", 1, "bad"),
        ("a", 2, "good"),
    ]
    assert found.labels == ("bad", "good")
    assert found.warnings == ()


def test_why_is_a_plain_sentence_for_each_role(tmp_path: Path) -> None:
    lines = [line(A), line(B, role="hard"), line(C, role="left")]
    run = write_run(tmp_path / "run", [[], lines])
    easy, hard, left = map(why, read_rows(run, examples(["a", "b", "c"]), "pool.csv").rows)
    assert easy.startswith("Round 1 trusted this label and learnt from it.")
    assert "confidence 0.90, certainty 0.95" in easy
    assert hard.startswith("Round 1 did not trust this label")
    assert left.startswith("Round 1 did not use this text")


def test_rows_without_a_text_are_left_out_and_counted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [[], [line(A), line(B)]])
    found = read_rows(run, examples(["a", "x"]), "pool.csv")
    assert len(found.rows) == 1
    assert found.warnings == ("1 of 2 rows of the run have no text in the file: left out",)


def test_a_pool_of_another_run_is_an_error(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [[], [line(A)]])
    with pytest.raises(DataError, match="none of the 1 texts of the run"):
        read_rows(run, examples(["x"]), "pool.csv")


def test_a_run_without_lessons_is_an_error(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [[]])
    with pytest.raises(RunError, match="has no lesson yet"):
        read_rows(run, examples(["x"]), "pool.csv")


def test_a_browser_can_scroll_to_the_last_row_of_a_full_page() -> None:
    script = files("selftrain.review").joinpath("page", "review.js").read_text("utf-8")
    height = int(re.findall(r"^const ROW = (\d+);", script, re.M)[0])
    assert MAX_ROWS * height < 2**25 / 2, "Chromium, on a screen with doubled pixels"
    assert MAX_ROWS * height < 17_800_000, "Firefox"


def test_more_rows_than_a_page_can_scroll_are_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "MAX_ROWS", 2)
    run = write_run(tmp_path / "run", [[], [line(A), line(B), line(C)]])
    found = read_rows(run, examples(["a", "b", "c"]), "pool.csv")
    assert (len(found.rows), found.warnings) == (2, ("the page shows 2 of 3 rows",))
