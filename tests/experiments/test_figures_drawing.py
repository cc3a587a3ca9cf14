"""The files that figures are drawn into."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.text import Text

from cells import CELL, OTHER, named
from drawn import texts_of
from selftrain.errors import ConfigError
from selftrain.experiments.figures import (
    BeforeAfter,
    CalibratedRun,
    Plane,
    by_round,
    calibration,
    curve,
    write,
)
from selftrain.experiments.figures.drawing import Numbers, draw, save
from selftrain.experiments.figures.page import COLOURS, MARKERS, STYLE, rows_of, written
from selftrain.experiments.figures.plane import View

HOSTILE = "_$\\frac{1}{0}$ <b>&amp; --> \x1b[2J\n" + "x" * 80

P, Y = torch.tensor([[0.9, 0.1], [0.3, 0.7]] * 20), torch.tensor([0, 1, 1, 1] * 10)
NUMBERS = {
    "rounds": by_round([CELL, OTHER, *named("upet-head-prefix", task="rte")]),
    "calibration": calibration([CELL, OTHER, *named("upet-head-prefix")]),
    "before after": BeforeAfter(
        tuple(
            CalibratedRun(
                name,
                "supcon",
                12,
                11,
                2,
                2.0,
                (curve("as trained", P, Y), curve("calibrated", P, Y)),
            )
            for name in ("one", "two", "three")
        ),
        "40 rows of test.csv",
    ),
    "plane": Plane(
        tuple("wxyz"),
        tuple("abab"),
        (View("r", "head-ft", 1, 0, ((0.0, 1.0), (1.0, 0.0), (2.0, 1.0), (0.0, 3.0)), 0.5),) * 2,
        "4 rows",
    ),
}


SVG = "{http://www.w3.org/2000/svg}"


def laid_out(numbers: Numbers) -> Figure:
    with style.context(["default", STYLE]):
        made = draw(numbers)
        made.draw_without_rendering()
        return made


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_figure_is_a_real_png_as_wide_as_a_page(tmp_path, kind):
    from PIL import Image

    save(NUMBERS[kind], [tmp_path / "x.PNG"])
    with Image.open(tmp_path / "x.PNG") as image:
        image.verify()
        assert (image.format, image.width) == ("PNG", 1260)  # 6.3 inches, 200 dots each


@pytest.mark.parametrize("kind", NUMBERS)
def test_the_same_numbers_give_the_same_bytes(tmp_path, kind):
    for ending in ("svg", "png"):
        one, two = tmp_path / f"one.{ending}", tmp_path / f"two.{ending}"
        for path in (one, two):
            save(NUMBERS[kind], [path])
        assert one.read_bytes() == two.read_bytes()
    assert ElementTree.parse(tmp_path / "one.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize("kind", NUMBERS)
def test_nothing_of_a_figure_is_cut_off(kind):
    """Every word lies on the page, and the words around the panels lie on no other word."""
    made = laid_out(NUMBERS[kind])
    words = [each for each in made.findobj(Text) if each.get_text() and each.get_visible()]
    boxes = [each.get_window_extent() for each in words]
    around = [made.get_suptitle(), *(axis.get_title() for axis in made.axes)]
    below = [text.get_text() for each in made.legends for text in each.get_texts()]
    for word, box in zip(words, boxes, strict=True):
        assert box.x0 >= 0, word
        assert box.y0 >= 0, word
        assert box.x1 <= made.bbox.x1, word
        assert box.y1 <= made.bbox.y1, word
    apart = [
        (word, box)
        for word, box in zip(words, boxes, strict=True)
        if word.get_text() in [*around, *below]
    ]
    for word, box in apart:
        for other, its in zip(words, boxes, strict=True):
            assert other is word or not box.overlaps(its), (word, other)


def test_names_are_drawn_as_they_are_and_obeyed_in_nothing(tmp_path):
    """A formula, markup, the end of a comment, a terminal's code, a line break, great length."""
    hostile = {
        "rounds": by_round(named(HOSTILE, task=HOSTILE, backbone=HOSTILE)),
        "calibration": calibration(named(HOSTILE, task=HOSTILE, backbone=HOSTILE)),
        "plane": replace(
            NUMBERS["plane"],
            gold=(HOSTILE, "$x^2$", HOSTILE, "_b"),
            views=(replace(NUMBERS["plane"].views[0], method=HOSTILE),),
            setting=HOSTILE,
        ),
    }
    for kind, numbers in hostile.items():
        save(numbers, [tmp_path / f"{kind}.svg", tmp_path / f"{kind}.png"])
        svg = (tmp_path / f"{kind}.svg").read_text("utf-8")
        assert "\x1b" not in svg
        assert not any(each.tag in ("b", f"{SVG}b") for each in ElementTree.fromstring(svg).iter())
        assert "frac" in " ".join(texts_of(tmp_path / f"{kind}.svg"))
        assert not any(text.get_parse_math() for text in laid_out(numbers).findobj(Text))
    said = texts_of(tmp_path / "plane.svg")
    assert "$x^2$" in said
    assert "_b" in said  # which matplotlib by itself leaves out of a legend


def test_a_character_without_a_glyph_is_written_as_its_code():
    assert written("große Käse ± 中") == "große Käse ± \\u4e2d"
    assert written("a\nb\u202e\ud800") == "a\\nb\\u202e\\ud800"


def test_every_line_and_class_has_a_look_of_its_own():
    looks = {(COLOURS[n % len(COLOURS)], MARKERS[n % len(MARKERS)]) for n in range(56)}
    assert len(looks) == 56
    lines = by_round(named(*(f"m{n}" for n in range(8))))
    with pytest.raises(ConfigError, match="lines in a panel is 8; expected at most 7"):
        save(lines, [Path("never.png")])
    assert not Path("never.png").exists()


@given(st.lists(st.text(max_size=60), min_size=1, max_size=30), st.floats(1, 7))
def test_a_legend_has_every_name_once_in_rows_as_long_as_the_first(names, wide):
    rows = rows_of(names, wide)
    assert [place for row in rows for place in row] == list(range(len(names)))
    assert all(len(row) == len(rows[0]) for row in rows[:-1])
    assert 1 <= len(rows[-1]) <= len(rows[0])


def test_a_readers_own_settings_change_nothing(tmp_path):
    import matplotlib

    save(NUMBERS["rounds"], [tmp_path / "one.svg"])
    with matplotlib.rc_context({"font.size": 30, "text.parse_math": True, "lines.linewidth": 9}):
        save(NUMBERS["rounds"], [tmp_path / "two.svg"])
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert matplotlib.rcParams["font.size"] != 8  # nor do ours stay


def test_the_data_file_has_the_numbers_drawn(tmp_path):
    write(tmp_path / "x.csv", NUMBERS["rounds"].rows())
    with (tmp_path / "x.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {
        "task": "sst2",
        "method": "upet-head-adapter",
        "round": "0",
        "seeds": "2",
        "mean": "0.625",
        "sd": str(NUMBERS["rounds"].lines[0].points[0].sd),
    }
    assert [row["sd"] for row in rows if row["seeds"] == "1"] == [""] * 3


def test_a_data_file_for_spreadsheets_is_no_program(tmp_path):
    write(
        tmp_path / "x.csv",
        [{"method": "=HYPERLINK(1)", "mean": -0.5}, {"m": "\ud800", "x": 1}],
        excel_safe=True,
    )
    assert (tmp_path / "x.csv").read_text("utf-8").splitlines() == [
        '"method","mean"',
        '"\'=HYPERLINK(1)","-0.5"',
        '"\\ud800","1"',
    ]
