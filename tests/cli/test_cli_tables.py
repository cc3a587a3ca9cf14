"""`selftrain table`: formats, files and flags."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cells import UPET, cell, seeds
from selftrain.cli.tables import READ, Kind, format_of, table
from selftrain.errors import ConfigError, SelftrainError
from selftrain.experiments import results

app = typer.Typer(add_completion=False)
app.command()(table)


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    path = tmp_path / "cells.jsonl"
    for each in [*seeds("majority", 0.5, 0.5), *seeds(UPET, 0.80, 0.82), *seeds("ust", 0.7)]:
        results.append(path, each)
    return path


def run(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)


def refused(*words: object) -> SelftrainError:
    with pytest.raises(SelftrainError) as raised:
        run(*words)
    return raised.value


def test_text_is_a_table_on_stdout_with_its_notes(cells: Path) -> None:
    said = run("main", cells)
    assert said.exit_code == 0
    assert "│ UPET Head-Adapter" in said.stdout
    assert "81.0 ± 1.4" in said.stdout
    assert "No cells on: mnli" in said.stdout
    assert "Compared" in said.stdout
    assert said.stderr == ""


@pytest.mark.parametrize(
    ("form", "start"), [("markdown", "### Main"), ("csv", '"Main'), ("latex", "\\begin{table}")]
)
def test_every_format_goes_to_stdout(cells: Path, form: str, start: str) -> None:
    assert run("main", cells, "--format", form).stdout.startswith(start)


def test_json_has_the_sheets(cells: Path) -> None:
    first, second = json.loads(run("main", cells, "--json", "--paper").stdout)
    assert first["head"][0] == "method"
    assert ["as published", *first["rows"][2][1:]] == first["rows"][2]
    assert second["title"] == "Compared"


def test_a_files_name_says_its_format(cells: Path, tmp_path: Path) -> None:
    out = tmp_path / "main.tex"
    said = run("main", cells, "--out", out)
    assert (said.stdout, said.stderr) == ("", f"written: {out}\n")
    assert out.read_text("utf-8").endswith("\\end{table}\n")


def test_a_table_goes_to_several_files(cells: Path, tmp_path: Path) -> None:
    outs = [tmp_path / f"main.{ending}" for ending in ("md", "csv", "tex")]
    said = run("main", cells, *(word for out in outs for word in ("-o", out)))
    assert said.stderr == "".join(f"written: {out}\n" for out in outs)
    starts = [out.read_text("utf-8")[:5] for out in outs]
    assert starts == ["### M", '"Main', "\\begi"]
    assert "another is asked for" in refused("main", cells, "-o", outs[0], "--json").message


def test_through_a_link_the_file_it_leads_to_is_replaced(cells: Path, tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("old")
    (tmp_path / "link.md").symlink_to("real.md")
    assert run("main", cells, "--out", tmp_path / "link.md").exit_code == 0
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_text("utf-8").startswith("### Main")


def test_text_and_unknown_endings_are_not_written_to_a_file() -> None:
    for form, out in (("text", "a.md"), (None, "a.pdf")):
        with pytest.raises(ConfigError) as raised:
            format_of(form, Path(out))  # type: ignore[arg-type]
        assert "--format markdown" in raised.value.hint
    assert format_of(None, None) == "text"
    assert format_of("csv", Path("a.md")) == "csv"


def test_a_strangers_names_send_no_codes_to_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    codes = "\x1b[2J\x9b\u202e\x7f"
    results.append(path, cell(f"{codes}x", 0.8, task=f"a{codes}\nb", backbone=codes))
    for form in ("--json", *(f"--format={name}" for name in ("text", "markdown", "csv", "latex"))):
        told = run("main", path, form).stdout
        assert not set(codes) & set(told) - set("[2J")
    found = json.loads(run("main", path, "--json").stdout)
    assert any(f"{codes}x" in row[0] for row in found[0]["rows"])


def test_what_a_table_is_made_of_must_be_given(tmp_path: Path) -> None:
    assert refused("main").hint == "selftrain table main cells.jsonl"
    assert refused("data").hint == "--data DIR"
    assert refused("main", tmp_path / "nowhere").hint == results.HINT
    assert "1 or more" in refused("main", tmp_path / "nowhere", "--shots", 0).message
    assert run("grid").exit_code == 0
    assert run("nothing").exit_code == 2


def test_a_flag_that_a_table_does_not_read_is_named(cells: Path, tmp_path: Path) -> None:
    for words, named in (
        (("main", cells, "--data", tmp_path), "--data"),
        (("speed", cells, "--sweep", tmp_path), "--sweep"),
        (("data", cells, "--data", tmp_path), "CELLS"),
        (("data", "--data", tmp_path, "--metric", "f1"), "--metric"),
        (("grid", "--paper"), "--paper"),
        (("grid", "--compare", UPET, "ust"), "--compare"),
        (("nonbert", cells, "--compare", UPET, "ust"), "--compare"),
        (("speed", cells, "--compare", UPET, "ust"), "--compare"),
        (("speed", cells, "--paper"), "--paper"),
        (("speed", cells, "--metric", "f1"), "--metric"),
        (("nonbert", cells, "--paper"), "--paper"),
        (("nonbert", cells, "--shots", 32), "--shots"),
        (("shots", cells, "--shots", 32), "--shots"),
    ):
        assert refused(*words).message == f"table {words[0]} does not read {named}"


GIVEN = {
    "file": ("cells.jsonl",),
    "scored_on": ("--on", "design"),
    "metric": ("--metric", "f1"),
    "shots": ("--shots", 32),
    "backbone": ("--backbone", "minilm"),
    "preset": ("--preset", "laptop"),
    "recipe": ("--recipe", "abc"),
    "seeds": ("--seeds", "12"),
    "rows": ("--rows", 1000),
    "compare": ("--compare", UPET, "ust"),
    "data": ("--data", "folder"),
    "sweep": ("--sweep", "sweep.json"),
    "paper": ("--paper",),
}


def test_every_flag_is_known_here() -> None:
    known = {each.name for each in typer.main.get_command(app).params}
    assert known == GIVEN.keys() | {"kind", "form", "out", "as_json", "excel_safe"}


@pytest.mark.parametrize("kind", sorted(READ))
def test_every_flag_that_a_table_does_not_read_is_refused(kind: Kind) -> None:
    for name in GIVEN.keys() - READ[kind]:
        named = "CELLS" if name == "file" else GIVEN[name][0]
        assert refused(kind, *GIVEN[name]).message == f"table {kind} does not read {named}"


def test_two_formats_at_once_are_refused(cells: Path, tmp_path: Path) -> None:
    for more in (("--format", "csv"), ("-o", tmp_path / "main.md")):
        assert "another is asked for" in refused("main", cells, "--json", *more).message
    assert run("main", cells, "--json", "-o", tmp_path / "main.json").exit_code == 0
    assert json.loads((tmp_path / "main.json").read_text("utf-8"))[1]["title"] == "Compared"


def test_recipes_backbones_and_rows_are_chosen_by_flags(cells: Path) -> None:
    other = [replace(cell(UPET, 0.9), recipe="other"), cell("ust", 0.3, scored_on="design")]
    for each in other:
        results.append(cells, each)
    assert "--recipe other" in refused("main", cells).hint
    assert "90.0" in run("main", cells, "--recipe", "other").stdout
    assert "30.0" in run("main", cells, "--on", "design", "--backbone", "minilm").stdout


def test_seeds_are_chosen_by_a_flag(cells: Path) -> None:
    said = run("main", cells, "--seeds", "1")
    assert "82.0" in said.stdout
    assert "81.0" not in said.stdout
    assert refused("main", cells, "--seeds", "0,7").hint == "--seeds 0,1"
    assert refused("main", cells, "--seeds", "one").hint == "--seeds 12,21,42"
    assert refused("main", cells, "--seeds", "").hint == "--seeds 12,21,42"


def test_one_comparison_is_named_by_a_flag(cells: Path) -> None:
    compared = json.loads(run("main", cells, "--json", "--compare", "ust", UPET).stdout)[1]
    assert compared["title"].endswith("the only comparison, named by the user")
    assert [row[:2] for row in compared["rows"]] == [["UST", "UPET Head-Adapter"]]
    assert "there are majority" in refused("main", cells, "--compare", UPET, "cest").hint


def test_a_method_is_not_compared_with_itself(cells: Path) -> None:
    assert "expected two methods" in refused("main", cells, "--compare", "ust", "ust").message


def test_sweep_and_data_are_read_by_their_flags(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.json"
    sweep.write_text('{"space": {"alpha": [0.25]}}', encoding="utf-8")
    assert "0.25" in run("grid", "--sweep", sweep).stdout
    (tmp_path / "cb").mkdir()
    (tmp_path / "cb" / "train.jsonl").write_text('{"text": "a", "label": "b"}\n', "utf-8")
    assert "│ cb" in run("data", "--data", tmp_path).stdout
