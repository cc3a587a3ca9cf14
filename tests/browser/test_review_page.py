"""The page of a review in a real browser: keys, filters, verdicts, and who is kept out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from browsing import Open
from reviewed import Served, rows_of, served
from selftrain.data.rows import Labelled, examples
from selftrain.review.serve import opened_browser

TEXTS = [f"a film number {n} with a plot" for n in range(40)]
FOLDS = {n: (0.3, 0.7) if n % 3 else (0.8, 0.2) for n in range(20)}
GOLD = [Labelled(each, "good") for each in examples(["fine", "a fine film", "a fine long film"])]


@pytest.fixture
def review(tmp_path: Path) -> Iterator[Served]:
    with served(rows_of(TEXTS, folds=FOLDS), tmp_path / "corrections.jsonl", GOLD) as found:
        yield found


def opened(open_page: Open, review: Served, **more: Any) -> Any:
    watched = open_page(review.keys.url, **more)
    watched.page.locator("#position").get_by_text("Row 1 of").wait_for()
    return watched


def position(page: Any, number: int) -> None:
    """Wait until this row is open."""
    page.locator("#position").get_by_text(re.compile(rf"^Row {number:,} of")).wait_for()


def test_it_opens_offline_without_an_error_and_the_address_has_no_token(
    open_page: Open, review: Served
) -> None:
    watched = opened(open_page, review)
    watched.page.locator(".near").nth(2).wait_for()
    assert watched.page.url == f"http://127.0.0.1:{review.keys.port}/"
    assert watched.page.title() == "Review – selftrain"
    watched.check()


def test_the_file_that_the_browser_gets_leads_to_the_page(
    open_page: Open, review: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: not opened.append(url))
    with opened_browser(review.keys.url) as shown:
        assert shown
        watched = open_page(opened[0])
        watched.page.locator("#position").get_by_text("Row 1 of").wait_for()
        assert watched.page.url == f"http://127.0.0.1:{review.keys.port}/"
        watched.page.reload()
        watched.page.locator("#position").get_by_text("Row 1 of").wait_for()
        watched.page.keyboard.press("a")
        position(watched.page, 2)
    assert [verdict for verdict, _ in review.verdicts] == ["accept"]
    watched.check()


def test_keys_move_from_the_first_row_to_the_last(open_page: Open, review: Served) -> None:
    page = opened(open_page, review).page
    for number in range(2, 41):
        page.keyboard.press("j")
        position(page, number)
    page.keyboard.press("j")
    position(page, 40)
    page.keyboard.press("k")
    position(page, 39)
    page.keyboard.press("Home")
    position(page, 1)
    page.keyboard.press("End")
    position(page, 40)
    assert page.locator("#list").get_attribute("aria-activedescendant") == "row-39"
    assert page.locator("#row-39").get_attribute("aria-selected") == "true"


def test_every_verdict_of_the_keyboard_is_on_disk(open_page: Open, review: Served) -> None:
    watched = opened(open_page, review)
    page = watched.page
    for number, key in enumerate("a12x", 2):
        page.keyboard.press(key)
        position(page, number)
    page.locator("#checked").get_by_text("4 of 40 checked").wait_for()
    page.keyboard.press("u")
    position(page, 4)
    page.locator("#checked").get_by_text("3 of 40 checked").wait_for()
    first = review.session.rows[review.session._worth[0]].label
    assert review.verdicts == [
        ("accept", first),
        ("label", "bad"),
        ("label", "good"),
        ("drop", None),
        ("undo", None),
    ]
    page.reload()
    page.locator("#checked").get_by_text("3 of 40 checked").wait_for()
    page.locator("#verdict").get_by_text("Accepted").wait_for()
    watched.check()


def test_n_goes_to_the_next_row_without_a_verdict(open_page: Open, review: Served) -> None:
    page = opened(open_page, review).page
    page.keyboard.press("a")
    page.keyboard.press("a")
    position(page, 3)
    page.keyboard.press("Home")
    position(page, 1)
    page.keyboard.press("n")
    position(page, 3)
    page.locator("#order").select_option("sure")
    position(page, 1)
    page.locator("#list").focus()
    page.keyboard.press("n")
    position(page, 3)
    assert page.locator("#order").input_value() == "worth"


def test_slash_filters_and_escape_shows_all_again(open_page: Open, review: Served) -> None:
    page = opened(open_page, review).page
    page.keyboard.press("/")
    page.keyboard.type("number 7 ")
    page.locator("#total").get_by_text("1 row", exact=True).wait_for()
    page.keyboard.press("Enter")
    page.keyboard.press("x")
    page.locator("#verdict").get_by_text("Dropped").wait_for()
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    page.locator("#total").get_by_text("40 rows").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("nowhere")
    page.locator("#total").get_by_text("0 rows", exact=True).wait_for()
    assert not page.locator("#open").is_visible()
    page.locator("#text").fill("")
    position(page, 1)
    page.locator("#state").select_option("done")
    page.locator("#total").get_by_text("1 row", exact=True).wait_for()


def test_question_mark_shows_the_keys(open_page: Open, review: Served) -> None:
    page = opened(open_page, review).page
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("a")  # a dialog is open: nothing is decided
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()
    assert review.session.journal.corrections == []


def test_of_many_classes_one_is_found_by_typing_a_part_of_its_name(
    open_page: Open, tmp_path: Path
) -> None:
    labels = [f"class {n}" for n in range(30)]
    with served(rows_of(TEXTS, labels), tmp_path / "many.jsonl") as review:
        watched = opened(open_page, review)
        page = watched.page
        assert page.locator("#labels button").count() == 10
        page.keyboard.press("l")
        page.keyboard.type("S 27")
        page.keyboard.press("Enter")
        position(page, 2)
        assert review.verdicts == [("label", "class 27")]
        watched.check()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_problem(
    open_page: Open, review: Served, width: int, scheme: str
) -> None:
    watched = opened(open_page, review, width=width, color_scheme=scheme)
    watched.page.locator(".near").nth(2).wait_for()
    assert watched.serious_problems() == []
    watched.page.keyboard.press("?")
    watched.page.locator("#help").wait_for()
    assert watched.serious_problems() == []
    overflow = watched.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert overflow <= 0


def test_without_the_token_nothing_is_shown(open_page: Open, review: Served) -> None:
    watched = open_page(f"http://127.0.0.1:{review.keys.port}/?token=wrong")
    assert "opens with the address" in watched.page.inner_text("body")
    assert watched.page.locator("#list").count() == 0


def test_another_page_can_neither_read_nor_write(
    open_page: Open, review: Served, tmp_path: Path
) -> None:
    """A page of another origin in the browser that has the cookie."""
    watched = opened(open_page, review)
    page = watched.page.context.new_page()
    with served(rows_of(["other"]), tmp_path / "other.jsonl") as other:
        page.goto(f"http://127.0.0.1:{other.keys.port}/?token={other.keys.token}")
    # Its own policy would stop it first: another page has none.
    page.goto("about:blank")
    attack = """async (address) => {
        const tries = [
            fetch(address + "/api/rows?from=0&count=1", {credentials: "include"}),
            fetch(address + "/api/verdict", {method: "POST", credentials: "include",
                headers: {"Content-Type": "application/json"},
                body: '{"verdict": "drop", "place": 0}'}),
            fetch(address + "/api/verdict", {method: "POST", mode: "no-cors",
                credentials: "include", body: '{"verdict": "drop", "place": 0}'}),
        ];
        const answers = await Promise.allSettled(tries);
        return answers.map((each) => each.status === "fulfilled" ? each.value.type : "refused");
    }"""
    found = page.evaluate(attack, f"http://127.0.0.1:{review.keys.port}")
    assert found[:2] == ["refused", "refused"]
    assert review.session.journal.corrections == []


def test_a_server_that_is_gone_is_said_and_nothing_is_shown_as_saved(
    open_page: Open, tmp_path: Path
) -> None:
    with served(rows_of(TEXTS), tmp_path / "gone.jsonl") as review:
        page = opened(open_page, review).page
    page.keyboard.press("a")
    page.locator("#problem").get_by_text("The review has ended").wait_for()
    page.locator("#checked").get_by_text("0 of 40 checked").wait_for()


# ── a long pool ──

PRESS_END = """(wanted) => new Promise((resolve) => {
    const started = performance.now();
    document.dispatchEvent(new KeyboardEvent("keydown", {key: "End", bubbles: true}));
    const look = () => document.querySelector(wanted)
        ? resolve(performance.now() - started) : requestAnimationFrame(look);
    look();
})"""


def test_a_hundred_thousand_rows_scroll_without_waiting(open_page: Open, tmp_path: Path) -> None:
    texts = [f"text {n} of a long pool, with a few more words in it" for n in range(100_000)]
    with served(rows_of(texts, folds=FOLDS), tmp_path / "long.jsonl") as review:
        page = opened(open_page, review).page
        page.reload()  # the second time the browser is awake
        position(page, 1)
        paint = page.evaluate("performance.getEntriesByName('first rows')[0].startTime") / 1000
        end = page.evaluate(PRESS_END, "#row-99999 .chip") / 1000
        position(page, 100_000)
        print(f"first paint {paint:.2f} s, End key {end:.2f} s")
        assert paint < 3, "0.5 s on a machine that does nothing else"
        assert end < 1, "0.1 s there"
        assert page.locator(".row").count() < 60, "rows are used again"


# ── a kill ──

SERVER = """
import sys, time
from pathlib import Path
from reviewed import rows_of, served
with served(rows_of([f"text {n}" for n in range(400)]), Path(sys.argv[1])) as review:
    print(review.keys.url, flush=True)
    time.sleep(600)
"""


def test_a_kill_in_the_middle_of_saving_loses_no_verdict_that_was_shown(
    open_page: Open, tmp_path: Path
) -> None:
    file = tmp_path / "corrections.jsonl"
    shown = 0
    for turn in range(3):
        with killed_at_last(file) as server:
            assert server.stdout is not None
            page = open_page(server.stdout.readline().strip()).page
            page.locator("#checked").get_by_text(re.compile("^[0-9]+ of 400")).wait_for()
            again = int(page.locator("#checked").inner_text().split()[0])
            assert again >= shown, "the second start has all that was shown before the kill"
            page.keyboard.press("n")
            for _ in range(30):
                page.keyboard.press("a")
            some = "|".join(map(str, range(again + 6 + turn, again + 31)))
            page.locator("#checked").get_by_text(re.compile(f"^({some}) of 400")).wait_for()
        shown = int(page.locator("#checked").inner_text().split()[0])
        whole = file.read_bytes().rpartition(b"\n")[0].splitlines()
        verdicts = [json.loads(each)["verdict"] for each in whole]
        assert len(verdicts) >= shown
        if turn == 1:  # as a power cut may leave it
            with file.open("ab") as half:
                half.write(b'{"uid": "half a li')
    assert shown >= 3 * 6


@contextmanager
def killed_at_last(file: Path) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that serves a page, and is killed when the block ends."""
    support = Path(__file__).parents[1] / "support"
    paths = os.pathsep.join([str(support), *filter(None, [os.environ.get("PYTHONPATH")])])
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(file)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    try:
        yield server
    finally:
        server.kill()
        server.wait()
