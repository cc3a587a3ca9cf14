"""The scripts of benchmarks/ fit the package; what is written of cells is what the cells say."""

from __future__ import annotations

import runpy
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import selftrain as command
from selftrain.experiments.grid import grid_of
from selftrain.experiments.results import REFERENCE, read
from selftrain.method.spec import Method, digest

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "benchmarks" / "paper"
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scripts import one another by name; no other test sees those modules."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    yield
    names = {path.stem for path in SCRIPTS}
    for name in {*sys.modules} - before:
        if name in names:
            del sys.modules[name]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_finds_what_it_imports(script: Path) -> None:
    runpy.run_path(str(script), run_name="imported")  # mypy looks at what its functions call


def test_the_table_of_faults_is_what_the_committed_lines_say() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "reliability.py"), run_name="imported")
    lines = script["lines"].read(script["OUT"])
    assert all(line["fine"] for line in lines)
    assert "\n".join(script["table"](lines)) in script["PAGE"].read_text("utf-8")


def test_the_table_of_corrections_is_what_the_committed_lines_say() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "corrections.py"), run_name="imported")
    measured = script["lines"].read(script["OUT"])
    assert "\n".join(script["table"](measured)) in script["PAGE"].read_text("utf-8")


def test_the_tables_of_the_server_are_what_the_committed_lines_say() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "serve.py"), run_name="imported")
    measured = script["lines"].read(script["OUT"])
    page = script["PAGE"].read_text("utf-8")
    for table in ("load_table", "fault_table"):
        rows = [*script[table](measured)]
        assert len(rows) > 4
        assert "\n".join(rows) in page


def test_the_cost_model_is_what_the_committed_rates_give() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "tiers.py"), run_name="imported")
    measured = script["lines"].read(ROOT / script["OUT"])
    page = (ROOT / "docs" / "guide-large-pools.md").read_text("utf-8")
    assert "\n".join(script["table"](measured)) in page
    assert script["answers_row"](measured) in page
    assert script["failures"](measured) in page


def test_the_first_tables_are_what_the_committed_cells_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "first_tables.py", PAPER / "cells.jsonl")
    page = PAPER / "first-tables.md"
    assert capsys.readouterr().out == page.read_text(encoding="utf-8")


def test_the_gains_on_the_page_of_results_are_what_the_committed_cells_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "claims.py", PAPER / "cells.jsonl")
    _, _, *by_round = capsys.readouterr().out.splitlines()  # without the head
    run(monkeypatch, "claims.py", PAPER / "one_round.jsonl", "--backbone", "minilm-mlm")
    of_choices = capsys.readouterr().out.splitlines()[-9:]  # Tables 2 and 4
    page = (PAPER / "results-in-full.md").read_text("utf-8").splitlines()
    assert len(by_round) == 14
    assert "the teacher itself" in of_choices[0]
    assert {*by_round, *of_choices} <= {*page}


def test_the_table_of_rates_is_what_the_committed_cells_say() -> None:
    """Accuracy by task and method, and that of the teacher before it."""
    page = (PAPER / "results-in-full.md").read_text("utf-8")
    cells = {(cell.task, cell.method): cell for cell in read(PAPER / "modules.jsonl")}

    def line(start: str, task: str, *methods: str) -> str:
        found = [cells[task, method] if method else None for method in methods]
        (teacher,) = {cell.by_round[0] for cell in found if cell}
        numbers = [f"{teacher:.1%}", *(f"{cell.accuracy:.1%}" if cell else "" for cell in found)]
        return " | ".join([start, *(number.rstrip("%") for number in numbers)])

    prompt = ("upet-prompt-prefix", "prompt-2e-2", "prompt-5e-2")
    head = ("upet-head-prefix", "", "upet-head-prefix-5e-2")
    assert line("| Prompt-Prefix, sst2 | `minilm-mlm`", "sst2", *prompt) in page
    assert line("| Prompt-Prefix, agnews | `minilm-mlm`", "agnews", *prompt) in page
    assert line("| Head-Prefix, sst2 | `minilm`", "sst2", *head).replace("|  |", "| |") in page


@pytest.mark.parametrize("flags", [(), ("--against", "frozen")], ids=["gains", "against frozen"])
def test_the_page_of_development_has_the_tables_of_the_committed_runs(
    flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ROOT / "benchmarks" / "development"
    monkeypatch.syspath_prepend(folder)
    script, runs = "development/on_test_rows_summary.py", folder / "on_test_rows.jsonl"
    run(monkeypatch, script, runs, *flags)
    monkeypatch.delitem(sys.modules, "variants")
    printed = capsys.readouterr().out.splitlines()
    rows = [line for line in printed if line.startswith("| ")]
    ends = ("base", "skewed", "harm", "above")
    totals = [f"- {line}" for line in printed if line.startswith(ends)]
    assert (len(rows), len(totals)) == (17, 3)
    assert {*rows, *totals} <= {*(folder / "README.md").read_text("utf-8").splitlines()}


def test_the_table_of_label_shares_is_what_the_committed_lines_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ROOT / "benchmarks" / "development"
    monkeypatch.syspath_prepend(folder)
    script = runpy.run_path(str(folder / "label_shares.py"), run_name="imported")
    measured = script["variants"].lines_of(folder / "label_shares.jsonl")
    rules = [*script["RULES"]]
    script["show"](measured, "frozen", rules[:3])
    script["show"](measured, "supcon", rules[1:3])
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 2 + 4 + 2 + 5
    assert {*rows} <= {*(folder / "README.md").read_text("utf-8").splitlines()}


@pytest.mark.parametrize("seed", [12, 21])
def test_the_table_of_students_is_what_the_committed_lines_say(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ROOT / "benchmarks" / "development"
    monkeypatch.syspath_prepend(folder)
    script = runpy.run_path(str(folder / "students.py"), run_name="imported")
    rows = [*script["table"](script["variants"].lines_of(folder / "students.jsonl"), seed)]
    assert len(rows) > 5
    assert "\n".join(rows) in (folder / "README.md").read_text("utf-8")


def test_the_table_beside_setfit_is_what_the_committed_lines_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = ROOT / "benchmarks" / "development"
    monkeypatch.syspath_prepend(folder)
    script = runpy.run_path(str(folder / "setfit_on_test_rows.py"), run_name="imported")
    read = script["variants"].lines_of
    theirs = read(folder / "setfit_on_test_rows.jsonl")
    rows = [*script["table"](theirs, read(script["RUNS"]))]
    assert len(rows) == len(theirs) + 4
    assert "\n".join(rows) in (folder / "README.md").read_text("utf-8")


def tables() -> Iterator[tuple[str, list[str]]]:
    """Those that ``tables.sh`` writes and that are committed, and the words of their commands."""
    for line in (PAPER / "tables.sh").read_text("utf-8").splitlines():
        words = shlex.split(line, comments=True) if line.startswith("table ") else []
        if words and (PAPER / "tables" / f"{words[1]}.md").exists():
            _, name, kind, cells, *flags = words
            yield name, ["table", kind, str(PAPER / f"{cells}.jsonl"), *flags]


@pytest.mark.parametrize(("name", "line"), [pytest.param(*each, id=each[0]) for each in tables()])
def test_the_papers_tables_are_what_the_committed_cells_say(
    name: str, line: list[str], tmp_path: Path
) -> None:
    for form in ("md", "csv", "tex"):
        said = command(shlex.join([*line, "-o", str(tmp_path / f"{name}.{form}")]))
        assert said.code == 0, said.err
        committed = PAPER / "tables" / f"{name}.{form}"
        assert (tmp_path / committed.name).read_text("utf-8") == committed.read_text("utf-8")


def run(monkeypatch: pytest.MonkeyPatch, script: str, *words: object) -> None:
    """Run a script of the folder, as it would be called."""
    monkeypatch.setattr(sys, "argv", [script, *map(str, words)])
    runpy.run_path(str(ROOT / "benchmarks" / script), run_name="__main__")


CELLS = ("cells", "modules", "one_round", "steps", "trunk", "small/one_round")


@pytest.mark.parametrize("name", CELLS)
def test_every_committed_cell_is_found_by_a_recipe_of_a_committed_grid(name: str) -> None:
    """A grid goes on from its cells only if its methods still have the hash that was written."""
    known = {(method.name, digest(method)) for method in committed_methods()}
    cells = [cell for cell in read(PAPER / f"{name}.jsonl") if cell.recipe != REFERENCE]
    assert cells
    assert {(cell.method, cell.recipe) for cell in cells} <= known


def committed_methods() -> Iterator[Method]:
    """The methods of all grids, with the rounds they ask for and with one."""
    for path in sorted((*PAPER.glob("*.toml"), *PAPER.glob("small/*.toml"))):
        asked = tomllib.loads(path.read_text("utf-8"))
        for rounds in ({}, {"rounds": 1}):
            yield from grid_of(asked | rounds, "test").methods.values()
