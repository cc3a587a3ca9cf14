"""`selftrain figure`: files, flags and run folders."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import typer

from by_hand import GOLD, MACHINE, METHOD, SPLIT, TASK
from cells import CELL, OTHER, named
from command import Said
from drawn import texts_of
from selftrain import cli
from selftrain.cli.figures import figure
from selftrain.data.rows import Labelled
from selftrain.experiments import results
from selftrain.runs.estimates import TENSORS
from selftrain.runs.read import answering, records
from selftrain.runs.train import train
from selftrain.training.job import Job


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


@pytest.mark.parametrize("kind", ["rounds", "calibration"])
def test_seeds_are_chosen_by_a_flag(command, cells, kind):
    said = command(f"figure {kind} {cells} --method upet-head-adapter --seeds 12 --json")
    assert (said.code, said.err) == (0, "")
    assert {row["seeds"] for row in json.loads(said.out)} == {1}


def test_without_matplotlib_the_way_to_get_it_is_said(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = command("figure rounds nowhere.jsonl -o x.png")
    assert (said.code, said.out) == (1, "")
    assert said.lines == [
        "error: figures are drawn by matplotlib, which is not installed",
        "hint: pip install matplotlib",
    ]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ("", "nothing says where the figure goes"),
        ("-o x.pdf", "x.pdf ends in `.pdf`; expected .png or .svg"),
        ("-o x.png --shots 0", "--shots is 0"),
        ("-o x.png --method ust", "no cell of the method `ust`"),
        ("-o x.png --backbone other", "the backbone `other`"),
        ("-o x.png --seeds 12,87", "the seed 87"),
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
    job = Job(TASK, SPLIT, method, tiny_backbone("bert"), seed=7)
    for _ in train(tmp_path / "run", job, MACHINE):
        pass
    return tmp_path / "run"


EXPECTED = ("accuracy", "low", "high", "belief", "agreement")


def write_rows(path: Path, rows: list[Labelled]) -> Path:
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
    assert {row["run"] for row in first} == {run.name}  # and nothing of where it lies
    assert [row["id"] for row in first[:6]] == [row["id"] for row in first[6:]]
    assert [row["x"] for row in first[:6]] == [row["x"] for row in first[6:]]
    words = " ".join(texts_of(svg))
    assert "6 rows of test.jsonl" in words
    final = answering(run).number
    assert f"silhouette {first[0]['silhouette']:.3f} (round {final}, seed 7)" in words
    assert "contrast" in words  # the method's name
    assert not any(row.example.text in svg.read_text("utf-8") + one.out for row in rows)


def test_a_run_is_drawn_before_and_after_its_calibration(command, run, tmp_path, tiny_folder):
    test, svg = write_rows(tmp_path / "test.jsonl", list(GOLD)), tmp_path / "x.svg"
    flags = f"--text sentence --label mood --backbone {tiny_folder('bert')} --threads 1"
    line = f"figure calibration {run} --test {test} {flags}"
    refused = command(f"{line} --json")
    assert refused.code == 1
    assert "has no estimate that calibrates its round" in refused.err
    number, rounds = answering(run).number, records(run)
    temperature = {"number": 0, "expected": dict.fromkeys(EXPECTED, 0.5), "temperature": 4.0}
    facts = {
        "format": 1,
        "models": {str(each): rounds[each].files[TENSORS] for each in range(number + 1)},
        "constants": [],
        "estimate": {
            "rounds": [temperature | {"number": each} for each in range(number + 1)],
            "hits": 0.5,
            "hit_rows": 4.0,
            "doubts": [],
        },
    }
    (run / "estimate.json").write_text(json.dumps(facts))
    drawn = command(f"{line} --json -o {svg}")
    assert drawn.code == 0, drawn.err
    rows = json.loads(drawn.out)
    assert {row["temperature"] for row in rows} == {4.0}
    sure = {
        name: max(row["confidence"] or 0 for row in rows if row["probabilities"] == name)
        for name in ("as trained", "calibrated")
    }
    assert sure["calibrated"] < sure["as trained"], "a temperature of 4 softens"
    words = " ".join(texts_of(svg))
    assert f"{len(GOLD)} rows of test.jsonl" in words
    assert "as trained: error " in words
    assert "calibrated: error " in words
    assert "confidence, %" in words


def test_several_files_of_cells_are_refused(command, cells):
    said = command(f"figure calibration {cells} {cells} --json")
    assert said.code == 1
    assert "the number of files of cells is 2; expected 1" in said.err


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
