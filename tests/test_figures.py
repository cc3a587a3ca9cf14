"""Figures: the numbers they draw, checked by hand, and the files they are drawn into."""

from __future__ import annotations

import csv
import json
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from math import isclose
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest
import torch
import typer
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.text import Text

from by_hand import GOLD, MACHINE, METHOD, SPLIT, TASK
from command import Said
from selftrain import cli, results
from selftrain.cli.figures import figure
from selftrain.data import Example, Labeled
from selftrain.errors import ConfigError, DataError
from selftrain.experiment import train
from selftrain.figures import (
    Calibration,
    Plane,
    Rounds,
    Wanted,
    by_round,
    calibration,
    chosen,
    view,
    write,
)
from selftrain.figures.calibration import BINS, place, pooled
from selftrain.figures.drawing import draw, save
from selftrain.figures.page import COLOURS, MARKERS, STYLE, rows_of, written
from selftrain.figures.plane import View, perplexity
from selftrain.figures.rounds import points
from selftrain.results import Bin, Result
from selftrain.tables import Choice

CELL = Result(
    task="sst2",
    method="upet-head-adapter",
    recipe="abc",
    preset="laptop",
    backbone="minilm",
    shots=16,
    seed=12,
    on="test",
    rows=10,
    accuracy=0.75,
    macro_f1=0.5,
    f1={"a": 0.5},
    calibration_error=0.125,
    bins=(Bin(4, 0.65, 0.5), Bin(6, 0.9375, 1.0)),
    by_round=(0.5, 0.75),
)
OTHER = replace(CELL, seed=21, by_round=(0.75, 0.25, 0.5), calibration_error=0.375)
HOSTILE = "_$\\frac{1}{0}$ <b>&amp; --> \x1b[2J\n" + "x" * 80


def named(*methods: str, **changes: object) -> list[Result]:
    return [replace(CELL, method=name, **changes) for name in methods]


# ── score by round ───────────────────────────────────────────────────────────────────────────


def test_a_point_is_the_mean_and_sd_over_the_seeds_that_have_the_round():
    (line,) = by_round([CELL, OTHER]).lines
    assert [point.mean for point in line.points] == [0.625, 0.5, 0.5]
    assert [point.seeds for point in line.points] == [2, 2, 1]
    assert isclose(line.points[0].sd, 0.125 * 2**0.5)  # two values, 0.25 apart
    assert line.seeds == 2


def test_one_seed_has_no_sd_rather_than_none_at_all():
    (line,) = by_round([CELL]).lines
    assert [point.sd for point in line.points] == [None, None]


def test_a_round_without_a_model_has_no_point():
    first, last = points([(0.5, None, 0.25), (0.5, None)])
    assert (first.number, last.number) == (0, 2)
    assert last.seeds == 1


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=6), min_size=1, max_size=5))
def test_no_value_is_invented_and_none_is_lost(runs):
    found = points(runs)
    assert sum(point.seeds for point in found) == sum(map(len, runs))
    for point in found:
        there = [run[point.number] for run in runs if point.number < len(run)]
        assert min(there) - 1e-9 <= point.mean <= max(there) + 1e-9
        assert (point.sd is None) == (len(there) == 1)


def test_upet_students_stand_alone_unless_others_are_named():
    ablation = "upet-head-adapter-wo-contrast"
    cells = named("head-st", "upet-prompt-prefix", "upet-head-adapter", ablation)
    lines = by_round(cells).lines
    assert [line.method for line in lines] == ["upet-head-adapter", "upet-prompt-prefix"]
    lines = by_round(cells, Wanted(methods=("head-st", ablation))).lines
    assert [line.method for line in lines] == ["head-st", ablation]
    assert [line.method for line in by_round(cells[:1]).lines] == ["head-st"]


def test_a_teacher_alone_is_drawn_where_it_is_asked_for():
    cells = [*named("head-st"), *named("head-ft", by_round=(0.5,))]
    assert [line.method for line in by_round(cells).lines] == ["head-st"]
    (line,) = by_round(cells, Wanted(methods=("head-ft",))).lines
    assert [point.number for point in line.points] == [0]


def test_the_order_of_a_file_changes_nothing():
    cells = [
        replace(CELL, task=task, method=method, seed=seed)
        for task in ("rte", "sst2")
        for method in ("upet-head-prefix", "upet-head-adapter")
        for seed in (1, 2)
    ]
    shuffled = Random(1).sample(cells, len(cells))
    assert by_round(shuffled) == by_round(cells)


# ── which cells ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("more", "wanted", "problem", "hint"),
    [
        ({"backbone": "other"}, Wanted(), "backbones minilm and other", "--backbone minilm"),
        ({"recipe": "def"}, Wanted(), "several recipes", "--recipe"),
        ({"preset": "paper"}, Wanted(), "presets laptop and paper", "--preset"),
        ({}, Wanted(methods=("ust",)), "no cell of the method `ust` has rounds", "upet-head"),
        ({}, Wanted(tasks=("cb",)), "no cell of the task `cb` has rounds", "sst2"),
        ({}, Wanted(Choice(shots=32)), "32 labels a class", "--shots 16"),
        ({}, Wanted(Choice(on="design")), "design rows", "--on test"),
    ],
)
def test_what_does_not_belong_together_is_never_averaged(more, wanted, problem, hint):
    with pytest.raises(DataError, match=problem) as error:
        by_round([CELL, replace(CELL, seed=21, **more)], wanted)
    assert hint in error.value.hint


def test_of_several_one_can_be_chosen():
    cells = [CELL, replace(CELL, seed=21, backbone="other", by_round=(0.25, 0.25))]
    (line,) = by_round(cells, Wanted(Choice(backbone="other"))).lines
    assert line.points[0].mean == 0.25


def test_cells_without_rounds_are_no_figure():
    with pytest.raises(DataError, match="no cell has rounds"):
        by_round([replace(CELL, by_round=())])


def test_the_majority_class_beside_two_backbones_counts_once():
    cells = [*named("majority"), *named("majority", backbone="other")]
    (panel,) = calibration(cells, Wanted(methods=("majority",))).panels
    assert sum(bin_.rows for bin_ in panel.bins) == 10


# ── calibration ──────────────────────────────────────────────────────────────────────────────


def test_bins_are_pooled_by_count():
    other = replace(OTHER, bins=(Bin(12, 0.69, 0.75), Bin(1, 0.25, 0.0)))
    (panel,) = calibration([CELL, other]).panels
    low, middle, high = panel.bins
    assert (low, high) == (Bin(1, 0.25, 0.0), Bin(6, 0.9375, 1.0))
    assert middle.rows == 16
    assert isclose(middle.confidence, (4 * 0.65 + 12 * 0.69) / 16)
    assert middle.accuracy == (4 * 0.5 + 12 * 0.75) / 16


def test_the_calibration_error_is_that_of_the_seeds_not_of_the_pool():
    (panel,) = calibration([CELL, OTHER]).panels
    assert panel.error.mean == 0.25
    assert isclose(panel.error.sd, 0.125 * 2**0.5)


BINS_OF_ANYONE = st.builds(Bin, st.integers(1, 10**6), st.floats(0, 1), st.floats(0, 1))


@given(st.lists(BINS_OF_ANYONE, min_size=1))
def test_pooling_loses_no_answer_and_keeps_each_in_its_bin(bins):
    found = pooled(bins)
    assert sum(each.rows for each in found) == sum(each.rows for each in bins)
    right = sum(each.rows * each.accuracy for each in bins)
    assert isclose(sum(each.rows * each.accuracy for each in found), right, abs_tol=1e-6)
    places = [place(each) for each in found]
    assert places == sorted({place(each) for each in bins})
    for each in found:
        assert place(each) / BINS - 1e-6 <= each.confidence <= (place(each) + 1) / BINS + 1e-6


def test_a_bin_on_an_edge_is_the_one_above_it():
    assert [place(Bin(1, sure, 1.0)) for sure in (0.3, 0.1 + 0.2, 0.6 - 1e-16, 1.0)] == [3, 3, 6, 9]


def test_many_methods_on_many_tasks_are_refused_and_either_alone_is_not():
    methods = ("upet-head-prefix", "upet-head-adapter")
    cells = [*named(*methods), *named(*methods, task="rte")]
    with pytest.raises(DataError, match="2 methods on 2 tasks") as error:
        calibration(cells)
    assert "--task sst2" in error.value.hint
    by_method = calibration(cells, Wanted(tasks=("rte",))).panels
    assert [panel.method for panel in by_method] == list(methods)
    by_task = calibration(cells, Wanted(methods=methods[:1])).panels
    assert {panel.task for panel in by_task} == {"sst2", "rte"}


# ── features on a plane ──────────────────────────────────────────────────────────────────────


def clusters(apart: float, rows: int = 24) -> tuple[torch.Tensor, list[str]]:
    """Features around two directions, and the class of each."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(rows, 8, generator=generator)
    noise[:, 0] += apart * torch.tensor([1.0, -1.0]).repeat(rows // 2)
    return noise, ["a", "b"] * (rows // 2)


def seen(x: torch.Tensor, gold: list[str]) -> View:
    return view("runs/x", "m", x, gold, seed=1, number=2)


def test_the_silhouette_is_that_of_the_features_by_cosine():
    """Two classes at right angles: distance 0 within, 1 between, whatever the length."""
    x = torch.tensor([[1.0, 0.0], [5.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    assert seen(x, ["a", "a", "b", "b"]).silhouette == 1
    assert seen(x, ["a", "b", "a", "b"]).silhouette == -0.5


def test_classes_further_apart_have_a_higher_silhouette():
    near, far = (seen(*clusters(apart)).silhouette for apart in (0.5, 5.0))
    assert -0.2 < near < 0.5 < far <= 1


def test_the_same_features_are_laid_out_the_same():
    assert seen(*clusters(2.0)) == seen(*clusters(2.0))


def test_features_that_say_nothing_are_refused():
    for x in (torch.ones(6, 4), torch.full((6, 4), torch.nan)):
        with pytest.raises(DataError, match="features of runs/x are the same"):
            seen(x, ["a", "b"] * 3)


def test_few_rows_have_few_neighbours():
    assert perplexity(4) == 1
    assert all(perplexity(n) < n for n in range(3, 200))


def test_the_rows_drawn_do_not_depend_on_their_order():
    rows = [Labeled(Example(f"uid-{n % 40}", f"text {n % 40}"), f"{n % 3}") for n in range(60)]
    shuffled = Random(1).sample(rows, len(rows))
    assert chosen(shuffled, 20) == chosen(rows, 20)
    assert len(chosen(rows, 20)) == 20
    assert len(chosen(rows, 1000)) == 60


def test_one_class_has_no_border():
    with pytest.raises(DataError, match="4 rows of 1 classes"):
        chosen([row for row in GOLD if row.label == "good"], 10)


# ── files ────────────────────────────────────────────────────────────────────────────────────

NUMBERS = {
    "rounds": by_round([CELL, OTHER, *named("upet-head-prefix", task="rte")]),
    "calibration": calibration([CELL, OTHER, *named("upet-head-prefix")]),
    "plane": Plane(
        tuple("wxyz"),
        tuple("abab"),
        (View("r", "head-ft", 1, 0, ((0.0, 1.0), (1.0, 0.0), (2.0, 1.0), (0.0, 3.0)), 0.5),) * 2,
        "4 rows",
    ),
}


SVG = "{http://www.w3.org/2000/svg}"


def laid_out(numbers: Rounds | Calibration | Plane) -> Figure:
    with style.context(["default", STYLE]):
        made = draw(numbers)
        made.draw_without_rendering()
        return made


def texts_of(svg: Path) -> list[str]:
    """What matplotlib says it has written: a comment before the outlines of each text."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.parse(svg, parser).getroot()
    return [each.text.strip() for each in root.iter(ElementTree.Comment)]


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


def test_a_data_file_is_no_program(tmp_path):
    write(tmp_path / "x.csv", [{"method": "=HYPERLINK(1)", "mean": -0.5}, {"m": "\ud800", "x": 1}])
    assert (tmp_path / "x.csv").read_text("utf-8").splitlines() == [
        '"method","mean"',
        '"\'=HYPERLINK(1)",-0.5',
        '"\\ud800",1',
    ]


# ── the command ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def command(monkeypatch):
    """`selftrain figure …` on a command line of its own."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.add_typer(figure, name="figure")
    monkeypatch.setattr(cli, "app", app)

    def give(line: str) -> Said:
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            cli.main(shlex.split(line))
        return Said(ended.value.code, out.getvalue(), err.getvalue())

    return give


@pytest.fixture
def cells(tmp_path) -> Path:
    for cell in (CELL, OTHER, *named("head-st", "head-ft")):
        results.append(tmp_path / "cells.jsonl", cell)
    return tmp_path / "cells.jsonl"


@pytest.mark.parametrize("kind", ["rounds", "calibration"])
def test_a_figure_of_cells_is_written_with_its_numbers(command, cells, tmp_path, kind):
    names = [tmp_path / f"{kind}.{ending}" for ending in ("png", "svg", "csv")]
    said = command(f"figure {kind} {cells} -o {names[0]} -o {names[1]} --csv {names[2]}")
    assert (said.code, said.out) == (0, "")
    assert said.lines == [f"written: {name}" for name in names]
    assert names[0].read_bytes().startswith(b"\x89PNG\r\n")
    assert b"<svg" in names[1].read_bytes()
    assert len(names[2].read_text().splitlines()) == {"rounds": 4, "calibration": 3}[kind]


def test_json_is_the_numbers_and_needs_no_matplotlib(command, cells, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = command(f"figure rounds {cells} --method head-st --json")
    assert (said.code, said.err) == (0, "")
    assert [row["mean"] for row in json.loads(said.out)] == [0.5, 0.75]


def test_without_matplotlib_the_way_to_get_it_is_said(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = command("figure rounds nowhere.jsonl -o x.png")
    assert (said.code, said.out) == (1, "")
    assert said.lines == [
        "error: figures are drawn by matplotlib, which is not installed",
        "hint: pip install 'selftrain[figures]'",
    ]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ("", "nothing says where the figure goes"),
        ("-o x.pdf", "x.pdf ends in `.pdf`; expected .png or .svg"),
        ("-o x.png --shots 0", "--shots is 0"),
        ("-o x.png --method ust", "no cell of the method `ust`"),
        ("-o x.png --backbone other", "the backbone `other`"),
    ],
)
def test_a_wrong_flag_is_named_before_anything_is_written(command, cells, tmp_path, flags, problem):
    said = command(f"figure rounds {cells} {flags.replace('x.', f'{tmp_path}/x.')}")
    assert (said.code, problem in said.err) == (1, True), said.err
    assert "hint: " in said.err
    assert list(tmp_path.glob("x.*")) == []


@pytest.fixture
def run(tmp_path, tiny_folder, tiny_backbone) -> Path:
    """A run of a second."""
    method = replace(METHOD, name="upet-head-adapter-wo-contrast", rounds=1)
    given_ = {"backbone": tiny_backbone("bert"), "seed": 7, "on": MACHINE}
    for _ in train(tmp_path / "run", TASK, SPLIT, method, **given_):
        pass
    return tmp_path / "run"


def write_rows(path: Path, rows: list[Labeled]) -> Path:
    lines = [json.dumps({"sentence": row.example.text, "mood": row.label}) for row in rows]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_each_run_sees_the_same_rows_whatever_their_order(command, run, tmp_path, tiny_folder):
    rows = list(GOLD)
    test, turned = tmp_path / "test.jsonl", tmp_path / "turned.jsonl"
    write_rows(test, rows)
    write_rows(turned, rows[::-1])
    flags = f"--text sentence --label mood --rows 6 --backbone {tiny_folder('bert')} --threads 1"
    svg = tmp_path / "x.svg"
    one = command(f"figure tsne {run} {run} --test {test} {flags} --json -o {svg}")
    two = command(f"figure tsne {run} {run} --test {turned} {flags} --json")
    assert one.code == 0, one.err
    first, second = json.loads(one.out), json.loads(two.out)
    assert first == second
    assert len(first) == 12
    assert [row["id"] for row in first[:6]] == [row["id"] for row in first[6:]]
    assert [row["x"] for row in first[:6]] == [row["x"] for row in first[6:]]
    words = " ".join(texts_of(svg))
    assert "6 rows of test.jsonl" in words
    assert f"silhouette {first[0]['silhouette']:.3f} (round 1, seed 7)" in words
    assert "contrast" in words  # the method's name
    assert not any(row.example.text in svg.read_text("utf-8") + one.out for row in rows)


@pytest.mark.parametrize(
    ("rows", "flags", "problem"),
    [
        (GOLD, "--rows 2", "--rows is 2; expected 3 or more"),
        (GOLD[:1] * 4, "", "rows of 1 classes"),
        (
            [replace(row, label={"good": "fine"}.get(row.label, row.label)) for row in GOLD],
            "",
            "label `fine`",
        ),
    ],
)
def test_rows_that_cannot_be_laid_out_are_named(
    command, run, tmp_path, tiny_folder, rows, flags, problem
):
    test = write_rows(tmp_path / "test.jsonl", list(rows))
    said = command(
        f"figure tsne {run} --test {test} --text sentence --label mood {flags} "
        f"--backbone {tiny_folder('bert')} --threads 1 -o {tmp_path / 'x.png'}"
    )
    assert (said.code, problem in said.err) == (1, True), said.err
    assert not (tmp_path / "x.png").exists()
