"""``selftrain report``, and the page that every `fit` leaves in its run folder."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest

import command
from command import FIT, selftrain
from selftrain.report import write
from selftrain.runs.read import PAGES

WITH_TEXTS = "report run -u pool.csv --labelled labelled.csv --backbone {bert}"


def pages(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in PAGES]


def texts(folder: Path) -> list[str]:
    return [line.split(",")[0] for line in (folder / "pool.csv").read_text().splitlines()[1:]]


# ── by fit ──


def test_fit_leaves_a_private_page_without_texts_and_says_where(life: Path, bert: Path) -> None:
    for name in PAGES:
        (life / "run" / name).unlink()
    said = selftrain(FIT.format(bert=bert) + " --dev dev.csv --json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["report"] == "run/report.html"
    assert said.lines[-1] == (
        "report: run/report.html; with texts and a map: selftrain report run -u POOL"
    )
    assert len(said.lines[-1]) <= 80
    for name in PAGES:
        assert stat.S_IMODE((life / "run" / name).stat().st_mode) == 0o600
    page = (life / "run" / "report.html").read_text("utf-8")
    assert not [text for text in texts(life) if text in page]
    assert json.loads((life / "run" / "report.json").read_text())["labelled_rows"] == 8


def test_a_resumed_run_has_the_same_page_and_one_with_more_rounds_another(
    life: Path, bert: Path
) -> None:
    before = pages(life / "run")
    assert selftrain(FIT.format(bert=bert) + " --dev dev.csv").code == 0
    assert pages(life / "run") == before
    assert selftrain(FIT.format(bert=bert) + " --dev dev.csv --rounds 2").code == 0
    assert pages(life / "run") != before


def test_a_fit_in_time_and_a_kept_rung_have_a_page(folder: Path, bert: Path) -> None:
    said = selftrain(FIT.format(bert=bert) + " --minutes 5 --keep teacher")
    assert said.code == 0, said.err
    facts = json.loads((folder / "run" / "report.json").read_text())
    assert (facts["model"]["name"], facts["model"]["rung"]) == ("teacher", "teacher")


def test_a_page_that_cannot_be_drawn_never_fails_a_fit(
    life: Path, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("a mistake of ours")

    monkeypatch.setattr(write, "page_of", broken)
    said = selftrain(FIT.format(bert=bert) + " --dev dev.csv --json")
    assert said.code == 0
    assert said.lines[-1] == "warning: no report was written: ValueError: a mistake of ours"
    assert "report" not in json.loads(said.out)


def test_a_page_that_is_a_link_is_replaced_and_what_it_leads_to_stays(
    life: Path, bert: Path
) -> None:
    (life / "mine.txt").write_text("mine")
    (life / "run" / "report.html").unlink()
    (life / "run" / "report.html").symlink_to(life / "mine.txt")
    assert selftrain(FIT.format(bert=bert) + " --dev dev.csv").code == 0
    assert (life / "mine.txt").read_text() == "mine"


# ── by report ──


def test_a_page_without_files_is_written_here_and_needs_no_model(life: Path) -> None:
    said = selftrain("report run")
    assert said.code == 0, said.err
    assert said.err == "written: report.html, without texts, and report.json\n"
    assert "run folder holds no texts" in (life / "report.html").read_text("utf-8")


def test_the_files_of_the_run_give_a_map_and_texts(life: Path, bert: Path) -> None:
    before = command.snapshot(life / "run")
    said = selftrain(WITH_TEXTS.format(bert=bert) + " -o a.html")
    assert said.code == 0, said.err
    assert said.lines[-1] == "written: a.html, with texts, and a.json"
    page = (life / "a.html").read_text("utf-8")
    assert "<canvas" in page
    assert texts(life)[0] in page
    assert command.snapshot(life / "run") == before


def test_a_page_to_share_has_a_map_and_no_texts(life: Path, bert: Path) -> None:
    said = selftrain(WITH_TEXTS.format(bert=bert) + " --no-texts")
    assert said.lines[-1] == "written: report.html, without texts, and report.json"
    page = (life / "report.html").read_text("utf-8")
    assert "<canvas" in page
    assert not [text for text in texts(life) if text in page]


BAD = {
    "report nothing": "error: nothing is not a run folder: it has no manifest.json",
    "report run -o page.txt": "error: page.txt ends in `.txt`; expected .html",
    "report run -o run/report.html": "error: run/report.html belongs to the run: only `selftrain "
    "fit` writes there, without texts",
    "report run -o no/page.html": "error: cannot write no/page.html: there is no folder ",
    "report run -u test.csv --backbone {bert}": "error: test.csv has none of the ",
    "report run --labelled test.csv": "error: the labelled file has none of the 8 texts of the run",
    "report run -u pool.csv -u missing.csv": "error: ",
    "report run -u - --labelled -": "error: standard input, -, is given for two files",
    "report run -u pool.csv": "error: ",
}


@pytest.mark.parametrize("line", BAD)
def test_a_bad_input_is_one_line_and_a_hint(life: Path, bert: Path, line: str) -> None:
    before = command.snapshot(life)
    said = selftrain(line.format(bert=bert))
    assert (said.code, said.out) == (1, "")
    problem = [each for each in said.lines if not each.startswith("warning: ")]
    assert problem[0].startswith(BAD[line])
    assert problem[-1].startswith("hint: ")
    assert command.snapshot(life) == before


def test_pairs_for_a_run_of_single_texts_are_refused(life: Path) -> None:
    rows = command.csv([("a", "b"), ("c", "d")], "text", "pair")
    (life / "pairs.csv").write_text(rows)
    said = selftrain("report run -u pairs.csv --pair pair")
    assert said.lines[0] == (
        "error: run was trained on single texts, these rows are pairs of texts"
    )


def test_a_page_never_replaces_a_file_that_it_reads(life: Path) -> None:
    shutil.copy(life / "pool.csv", life / "pool.html")
    said = selftrain("report run -u pool.html --format csv -o pool.html")
    assert said.code == 1
    assert "writing it would destroy it" in said.err


def test_a_damaged_estimate_is_one_line(life: Path) -> None:
    path = life / "run" / "estimate.json"
    facts = json.loads(path.read_text())
    facts["estimate"]["prior"] = [0.2, 0.3, 0.5]
    path.write_text(json.dumps(facts))
    said = selftrain("report run")
    assert said.code == 1
    assert "has no share for each of 2 classes" in said.lines[0]
