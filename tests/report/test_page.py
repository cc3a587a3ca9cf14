"""The page of a run: what it says, that it needs nothing else, and that nothing in it acts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import stat
from collections.abc import Callable, Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from selftrain.data.rows import Example, Labelled, Split
from selftrain.errors import DataError, RunError
from selftrain.report import Page, report
from selftrain.report.facts import facts_of
from selftrain.report.page import draw, embedded, page_of
from selftrain.report.points import Given
from selftrain.runs.read import lessons
from selftrain.runs.saved import read_run

QUESTIONS = (
    "How good is it probably?",
    "Is it better than something simple?",
    "What should I worry about?",
    "What do I do next?",
)
SECTIONS = ("trust", "simple", "lessons", "errors", "map", "texts", "settings")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


class Parsed(HTMLParser):
    """The tags of a page, with their attributes, and the content of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style"):
            self.raw.append((self._inside, data))
        else:
            self.texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def words(page: Page) -> str:
    """What a person reads on a page, without drawings."""
    body = re.sub(r"(?s)<(script|style|svg).*?</\1>", " ", page.html)
    return unescape(re.sub(r"<[^>]+>", " ", body))


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from numbers(each)
    elif isinstance(value, int | float):
        yield value


def rows_in(page: Page) -> dict[str, Any]:
    """The data that the script of a page reads."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.html, re.S)
    assert found is not None
    return json.loads(found[1])  # type: ignore[no-any-return]


def test_the_first_screen_answers_four_questions_and_the_sections_have_their_order(
    finished: Path,
) -> None:
    page = report(finished)
    places = [page.html.index(question) for question in QUESTIONS]
    assert places == sorted(places)
    assert tuple(re.findall(r'<section id="(\w+)">', page.html)) == SECTIONS
    expected = page.numbers["expected"]
    assert f"Such intervals were right for {expected['intervals_right']} of" in words(page)
    assert f"selftrain predict {finished.name} new.csv" in page.html
    assert f"selftrain review {finished.name} --unlabelled pool.csv" in page.html


def test_every_number_of_the_page_is_in_its_json(finished: Path) -> None:
    page = report(finished)
    known = set(numbers(json.loads(page.json)))
    text = words(page)
    for shown in re.findall(r"(?<![\d.])\d\.\d\d(?![\d.])", text):
        assert any(f"{value:.2f}" == shown for value in known), shown
    for shown in re.findall(r"([\d.]+) %", text):
        assert any(shown in (f"{100 * value:.0f}", f"{100 * value:.1f}") for value in known), shown


def test_the_policy_allows_the_one_style_and_the_one_script_by_their_hash(finished: Path) -> None:
    page = Parsed(report(finished).html)
    (policy,) = [each for each in page.named("meta") if "http-equiv" in each]
    rules = dict(rule.split(" ", 1) for rule in str(policy["content"]).split("; "))
    assert rules["default-src"] == "'none'"
    acting = [each for each in page.named("script") if each.get("type") != "application/json"]
    assert acting == [{}]
    for kind, rule in (("style", "style-src"), ("script", "script-src")):
        content = [data for tag, data in page.raw if tag == kind][-1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


def test_the_page_needs_no_network_and_has_no_style_or_handler_in_its_tags(finished: Path) -> None:
    page = report(finished)
    for tag, attributes in Parsed(page.html).tags:
        forbidden = {"src", "href", "style", "srcset", "action"} & attributes.keys()
        assert not forbidden, (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"https?:|//cdn|@import|url\(", page.html)


def test_the_same_run_gives_the_same_bytes(finished: Path) -> None:
    assert report(finished) == report(finished)


def test_a_page_without_the_pool_has_no_text_and_says_how_to_get_the_map(
    finished: Path, pool: list[Example], gold: list[Labelled]
) -> None:
    page = report(finished)
    for row in [*pool, *(each.example for each in gold)]:
        assert row.text not in page.html
        assert row.text not in page.json
    assert "<canvas" not in page.html
    assert f"selftrain report {finished.name} --unlabelled pool.csv" in words(page)


def test_with_the_pool_there_are_a_map_and_a_table_of_texts(
    finished: Path, pool: list[Example], gold: list[Labelled]
) -> None:
    page = draw(read_run(finished), Given(pool, "pool.csv", gold), backbone=backbone_of(finished))
    rows = rows_in(page)["rows"]
    assert "<canvas" in page.html
    assert 'id="by-role"' in page.html
    assert {row[9] for row in rows} >= {each.example.text for each in gold}
    assert all(0 <= row[0] <= 1 and 0 <= row[1] <= 1 for row in rows)
    assert page.numbers["rows"]["shown"] == len(rows)
    assert page.json.count(pool[0].text) == 0  # the numbers have no texts


def test_without_texts_the_map_stays_and_no_text_is_left(
    finished: Path, pool: list[Example], gold: list[Labelled]
) -> None:
    given = Given(pool, "pool.csv", gold, texts=False)
    page = draw(read_run(finished), given, backbone=backbone_of(finished))
    assert "<canvas" in page.html
    assert 'id="by-role"' not in page.html
    assert not [row for row in (*pool, *(each.example for each in gold)) if row.text in page.html]


def backbone_of(run: Path) -> str:
    """Where the tiny backbone of a run is: a test may trust the name."""
    return read_run(run).manifest.backbone.name


def test_names_of_classes_that_look_like_code_stay_text(
    run_of: Callable[..., tuple[Path, Split]],
) -> None:
    names = [HOSTILE, "\u202eevil\x1b[2J & 'more\""]
    folder, split = run_of(names)
    given = Given(split.unlabelled, "pool.csv", split.labelled)
    page = draw(read_run(folder), given, backbone=backbone_of(folder))
    parsed = Parsed(page.html)
    assert len(parsed.named("script")) == 2
    assert parsed.named("img") == []
    assert "\u202e" not in page.html
    assert "\x1b" not in page.html
    assert "⟨202E⟩evil␛[2J" in words(page)
    assert any(text.startswith(HOSTILE[:30]) for text in parsed.texts)
    assert rows_in(page)["labels"][0].startswith(HOSTILE[:30])


def test_texts_that_look_like_code_stay_data_and_long_ones_are_cut(
    run: Path, pool: list[Example], gold: list[Labelled]
) -> None:
    texts = [HOSTILE, "\u202egnp.exe\x07", "x" * 2**20, "<!--", "]]>\u2028"]
    uids = [line.uid for _, lines in lessons(run) for line in lines]
    rows = [Example(uid, text) for uid, text in zip(dict.fromkeys(uids), texts, strict=False)]
    given = Given([*pool, *rows], "pool.csv", gold)
    page = draw(read_run(run), given, backbone=backbone_of(run))
    parsed = Parsed(page.html)
    assert len(parsed.named("script")) == 2
    assert parsed.named("img") == []
    assert len(page.html) < 400_000
    shown = {row[9] for row in rows_in(page)["rows"]}
    assert HOSTILE in shown
    assert "⟨202E⟩gnp.exe␇" in shown
    assert "x" * 400 + " … (1,048,576 characters)" in shown


def test_data_cannot_end_its_element() -> None:
    for text in ("</script>", "<!--<script>", "\u2028", "\u2029"):
        raw = embedded([text])
        assert "<" not in raw
        assert json.loads(raw) == [text]


def test_pairs_show_both_texts(run_of: Callable[..., tuple[Path, Split]]) -> None:
    folder, split = run_of(["same", "other"], pair=True)
    given = Given(split.unlabelled, "pool.csv", split.labelled)
    page = draw(read_run(folder), given, backbone=backbone_of(folder))
    assert "pairs of texts" in words(page)
    assert all(row[10] == row[9][::-1] for row in rows_in(page)["rows"])


def test_a_pool_of_another_run_is_one_line_that_names_it(finished: Path) -> None:
    given = Given([Example("other", "an unknown text")], "other.csv")
    with pytest.raises(DataError, match=r"other\.csv has none of the \d+ texts of the run"):
        draw(read_run(finished), given, backbone=backbone_of(finished))


def test_rows_that_the_pool_lacks_are_counted(finished: Path, pool: list[Example]) -> None:
    page = draw(read_run(finished), Given(pool[:20], "pool.csv"), backbone=backbone_of(finished))
    assert re.search(r"\d+ of \d+ rows of the run have no text in the file", page.warnings[0])
    assert page.warnings[0] in words(page)


def test_labelled_rows_of_another_run_are_an_error(finished: Path) -> None:
    strange = [Labelled(Example("x", "an unknown text"), "good")]
    with pytest.raises(DataError, match="the labelled file has none of the 8 texts"):
        draw(read_run(finished), Given(labelled=strange))


def test_too_few_texts_make_no_map(finished: Path, pool: list[Example]) -> None:
    page = draw(read_run(finished), Given(pool[:3], "pool.csv"), backbone=backbone_of(finished))
    assert "too few texts for a map" in words(page)
    assert "<canvas" not in page.html


def test_a_page_is_saved_with_its_numbers_beside_it(finished: Path, tmp_path: Path) -> None:
    page = report(finished)
    path = page.save(tmp_path / "a.html", private=True)
    assert path.read_text("utf-8") == page.html
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == json.loads(page.json)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(finished: Path) -> None:
    (frame,) = Parsed(report(finished)._repr_html_()).named("iframe")
    assert frame["sandbox"] == "allow-scripts"
    assert frame["srcdoc"] == report(finished).html


def test_a_run_of_a_newer_version_is_refused_by_its_format(run: Path) -> None:
    path = run / "manifest.json"
    path.write_text(path.read_text().replace('"format": 2', '"format": 3'))
    with pytest.raises(RunError, match="has format 3; this version reads format 2") as caught:
        report(run)
    assert "pip install --upgrade" in caught.value.hint


def test_the_facts_of_a_page_name_no_folder_of_the_machine(finished: Path) -> None:
    page = page_of(facts_of(read_run(finished)))
    assert str(finished.parent) not in page.html
    assert str(Path(backbone_of(finished)).parent) not in page.html + page.json
