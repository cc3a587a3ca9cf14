"""Texts that anyone may have written stay texts: nothing runs, loads or breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from browsing import Open
from reviewed import rows_of, served
from selftrain.data.rows import Labelled, examples

RIGHT_TO_LEFT = "\u202e"
HOSTILE = {
    "script": "<script>window.hacked = 1; alert(1)</script>",
    "end of a script": "</script><script>window.hacked = 1</script>\"'`",
    "image": "<img src=x onerror='window.hacked = 1'><img src=http://evil.example/x.png>",
    "svg": "<svg/onload=window.hacked=1>",
    "address": "javascript:window.hacked=1 [x](javascript:alert(1))",
    "template": "${window.hacked = 1} {{constructor.constructor('window.hacked=1')()}}",
    "bidi": f"pay {RIGHT_TO_LEFT}001 euros\u2066\u2067\u200f now",
    "control": "nul \x00 bell \x07 escape \x1b[2J tab \t end",
    "invisible": "zero\u200bwidth \ufeff soft\u00adhyphen \U000e0041 tag",
    "half a character": "\ud800 alone",
    "combining": "Z" + "\u0351" * 500,
    "line ends": "one\r\ntwo\u2028three\x0b four",
}
LABELS = ("<b>bad</b>", f"go{RIGHT_TO_LEFT}od")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_stays_inert(open_page: Open, tmp_path: Path, name: str) -> None:
    text = HOSTILE[name]
    gold = [Labelled(each, LABELS[0]) for each in examples([text])]
    rows = rows_of([text, "a plain text"], LABELS, {0: (0.4, 0.6), 1: (0.5, 0.5)})
    with served(rows, tmp_path / "corrections.jsonl", gold) as review:
        watched = open_page(review.keys.url)
        page = watched.page
        for key in ("j", "k", "1", "Home"):
            page.keyboard.press(key)
        page.locator(".near").first.wait_for()
        assert page.evaluate("window.hacked") is None
        assert (
            page.locator("#list img, #list script, #full img, #full script, #full svg").count() == 0
        )
        assert page.locator("#open b").count() == 0
        watched.check()


def test_characters_that_cannot_be_seen_are_spelt_out(open_page: Open, tmp_path: Path) -> None:
    rows = rows_of([HOSTILE["bidi"] + HOSTILE["control"] + HOSTILE["invisible"]], LABELS)
    with served(rows, tmp_path / "corrections.jsonl") as review:
        page = open_page(review.keys.url).page
        page.locator("#full p").wait_for()
        codes = page.locator("#full .code").all_inner_texts()
        for code in ("U+202E", "U+2066", "U+0000", "U+001B", "U+200B", "U+FEFF", "U+E0041"):
            assert code in codes
        assert RIGHT_TO_LEFT not in page.inner_text("body")
        assert page.locator("#full bdi[dir=auto]").count() == 1
        assert "U+202E" in page.locator("#label").inner_text(), "in the list of labels too"


def test_a_text_of_a_megabyte_is_cut_and_counted(open_page: Open, tmp_path: Path) -> None:
    rows = rows_of(["word " * 210_000, "x" * 1_000_000, "a plain text"])
    with served(rows, tmp_path / "corrections.jsonl") as review:
        watched = open_page(review.keys.url)
        page = watched.page
        page.locator("#order").select_option("file")
        page.locator("#cut").get_by_text("1,000,000 more characters are not shown").wait_for()
        page.locator("#list").focus()
        page.keyboard.press("j")
        page.locator("#cut").get_by_text("950,000 more characters are not shown").wait_for()
        page.keyboard.press("a")
        page.locator("#full").get_by_text("a plain text").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert review.verdicts == [("accept", "good")]
        watched.check()
