"""The report of a run in a real browser: offline, inert, readable on every screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import small_run
from browsing import Open
from finished_run import finish, renamed
from selftrain.data.rows import Example, Split, uid_of
from selftrain.model.backbone import Backbone
from selftrain.report.page import draw
from selftrain.report.points import Given
from selftrain.runs.saved import read_run
from selftrain.training.job import Job

LABELS = ("<b>bad</b>", "go\u202eod</script>")
HOSTILE = (
    "<script>window.hacked = 1; alert(1)</script>",
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'><img src=http://evil.example/x.png>",
    "pay \u202e001 euros\u2066\u2067\u200f now",
    "nul \x00 escape \x1b[2J " + "long " * 200_000,
)


@pytest.fixture(scope="module")
def page(backbone: Backbone, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report with a map and a table of hostile texts."""
    task, split = renamed(LABELS)
    hostile = [Example(uid_of(text), text) for text in HOSTILE]
    split = Split(split.labelled, [*hostile, *split.unlabelled])
    folder = tmp_path_factory.mktemp("report")
    job = Job(task, split, replace(small_run.METHOD, rounds=1, pool="all"), backbone, 7)
    run = read_run(finish(folder / "run", job))
    drawn = draw(run, Given(split.unlabelled, "pool.csv", split.labelled), backbone=backbone.name)
    return drawn.save(folder / "report.html").as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_offline_on_every_screen_and_axe_finds_no_serious_problem(
    open_page: Open, page: str, width: int, scheme: str
) -> None:
    watched = open_page(page, width=width, color_scheme=scheme)
    watched.page.locator("#rows tr").first.wait_for()
    wide = watched.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, "nothing makes the page itself scroll sideways"
    assert watched.serious_problems() == []
    watched.check()


def test_hostile_texts_and_labels_stay_inert(open_page: Open, page: str) -> None:
    watched = open_page(page)
    body = watched.page.locator("body")
    watched.page.locator("#rows tr").first.wait_for()
    while watched.page.locator("#more").is_visible():
        watched.page.locator("#more").click()
    shown = body.inner_text()
    assert "window.hacked = 1" in shown, "as a text"
    assert "\u202e" not in shown
    assert watched.page.evaluate("window.hacked") is None
    assert watched.page.locator("main img, main b script, #rows script").count() == 0
    watched.check()


def test_the_table_is_filtered_by_keys_alone(open_page: Open, page: str) -> None:
    watched = open_page(page)
    all_rows = watched.page.locator("#count").inner_text()
    watched.page.locator("#find").focus()
    watched.page.keyboard.type("onerror")
    rows = watched.page.locator("#rows tr")
    watched.page.locator("#count").filter(has_not_text=all_rows).wait_for()
    assert rows.count() == 1
    assert "onerror" in rows.inner_text()
    watched.check()


def test_it_prints(open_page: Open, page: str, tmp_path: Path) -> None:
    watched = open_page(page)
    watched.page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    watched.check()
