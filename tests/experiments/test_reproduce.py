"""The whole paper with one command: `benchmarks/paper/reproduce.sh` and its grids."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from selftrain.cli import app
from selftrain.cli.tables import Kind
from selftrain.experiments.grid import Grid, grid_of
from selftrain.experiments.gridfile import read_grid
from selftrain.experiments.published import numbers
from selftrain.experiments.results import read
from small_paper import SEARCHED, TASKS, write_few_steps, write_space, write_tasks

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "paper" / "reproduce.sh"
GRIDS = SCRIPT.parent / "whole"
SECONDS = 1700
"""How long the whole may take, on a busy machine."""

# ── the grids ──


def names() -> list[str]:
    """The grids of the script, in its order."""
    (found,) = re.findall(r'^names="(.+)"$', SCRIPT.read_text("utf-8"), re.MULTILINE)
    return found.split()


def grids() -> Iterator[Grid]:
    for name in names():
        yield grid_of(read_grid(GRIDS / f"{name}.toml"), "test")


def test_the_script_names_every_grid_of_its_folder() -> None:
    assert sorted(names()) == sorted(path.stem for path in GRIDS.glob("*.toml"))


def test_a_grid_is_what_the_paper_did() -> None:
    searched = {each.name: each.values for each in numbers().grid}
    for grid in grids():
        assert set(grid.tasks) == set(numbers().tasks)
        assert grid.seeds == tuple(searched["seeds"])
        assert (grid.backbones, grid.preset) == (("roberta-large",), "paper")
        assert {method.rounds for method in grid.methods.values()} <= {0, *searched["rounds"]}


def test_every_row_that_the_paper_prints_has_cells() -> None:
    cells = {(name, shots) for grid in grids() for name in grid.methods for shots in grid.shots}
    paper = numbers()
    printed = {(row.method, row.shots) for row in (*paper.main, *paper.shots, *paper.ablation)}
    printed |= {(row.method, 16) for row in paper.pel}
    weighed = (alpha for alpha in paper.alpha if alpha != "None")
    printed |= {(f"upet-prompt-ptuning-alpha-{alpha}-raw-sample", 16) for alpha in weighed}
    assert printed <= cells


def test_no_cell_stands_in_two_grids() -> None:
    cells = [(name, shots) for grid in grids() for name in grid.methods for shots in grid.shots]
    assert len(cells) == len(set(cells))


# ── the script, with a python that writes down what it is asked ──

STAND_IN = """\
#!{python} -S
import json, os, sys
from pathlib import Path
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(words) + "\\n")
if any(set(bad.split()) <= set(words) for bad in {failing!r}):
    sys.exit("error: it fails here")
if "bench" in words and "--dry-run" in words:
    for word in words:
        if word.endswith(".toml"):
            print(Path(word).stem + ": {left} of 3 cells to do", file=sys.stderr)
if "audits.py" in words[0]:
    print("| round |")
if "runs.py" in words[0]:
    print("run-with\\nrun-without")
"""


@pytest.fixture
def script(
    tmp_path: Path,
) -> Callable[..., tuple[subprocess.CompletedProcess[str], list[list[str]]]]:
    """Runs the script; gives how it ended, and the words of each command in it."""

    def run(*flags: str, failing: tuple[str, ...] = (), left: int = 0) -> Any:
        log = tmp_path / "log.jsonl"
        log.unlink(missing_ok=True)
        stand_in = tmp_path / "bin" / "python"
        stand_in.parent.mkdir(exist_ok=True)
        stand_in.write_text(
            STAND_IN.format(python=sys.executable, log=str(log), failing=failing, left=left)
        )
        stand_in.chmod(0o700)
        path = f"{stand_in.parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", SCRIPT, "data", "out", *flags],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        lines = log.read_text("utf-8").splitlines() if log.exists() else []
        return done, list(map(json.loads, lines))

    return run


def commands(said: list[list[str]]) -> list[list[str]]:
    """The words after `python -m selftrain`."""
    return [words[2:] for words in said if words[:2] == ["-m", "selftrain"]]


def test_every_command_of_the_script_is_a_real_one(script) -> None:
    done, said = script(
        "--seeds", "12", "--task=rte", "--storage", "journal://out/g.journal", left=3
    )
    assert done.returncode == 1
    given = commands(said)
    assert {words[1] for words in given if words[0] == "table"} == set(get_args(Kind))
    assert {words[1] for words in given if words[0] == "figure"} == {"rounds", "tsne"}
    root = typer.main.get_command(app)
    for name, *words in given:
        command = root.commands[name]
        if name == "figure":
            command = command.commands[words.pop(0)]
        context = typer.Context(command, info_name=name)
        command.make_parser(context).parse_args(args=words)  # raises for a flag it does not know


def test_a_dry_run_only_asks_for_the_cost(script) -> None:
    done, said = script("--dry-run", left=3)
    assert done.returncode == 0
    assert [words[0] for words in commands(said)] == ["bench", "sweep"]
    assert all("--dry-run" in words for words in said)
    assert done.stderr.count(": 3 of 3 cells to do") == len(names())


def test_without_a_cost_nothing_is_computed(script) -> None:
    done, said = script(failing=("bench --dry-run",))
    assert (done.returncode, len(said)) == (1, 1)
    assert "it fails here" in done.stderr


def test_what_has_all_cells_is_not_started(script) -> None:
    done, said = script()
    assert done.returncode == 0
    assert "== whole: out/tables, out/figures" in done.stderr
    assert [
        words for words in commands(said) if words[0] == "bench" and "--dry-run" not in words
    ] == []


def test_a_step_that_fails_is_passed_over_and_named(script) -> None:
    _, everything = script(left=3)
    failing = ("bench table2", "table alpha", "figure tsne")
    done, said = script(failing=failing, left=3)
    assert commands(said) == commands(everything)
    _, _, end = done.stderr.partition("== not whole; the same command goes on:")
    assert {"  table table4", "  figure figure4"} <= set(end.splitlines())
    assert "  table1: 3 of 3 cells to do" in end
    assert "table table5" not in end
    assert done.returncode == 1


def test_flags_go_where_they_are_known(script) -> None:
    _, said = script("--rows", "9", "--device=cpu", "--search", "--trials 2", left=3)
    for words in commands(said):
        assert ("--rows" in words) == (words[0] == "bench")
        assert ("--device" in words) == (words[0] in ("bench", "sweep"))
        if words[0] == "sweep":
            assert words[words.index("--trials") + 1] == "2"
    _, said = script("--search", "none", left=3)
    assert not [words for words in commands(said) if words[0] == "sweep"]


@pytest.mark.parametrize("flags", [("--rows",), ("extra",)])
def test_a_word_that_means_nothing_stops_the_script(script, flags) -> None:
    done, said = script(*flags)
    assert (done.returncode, said) == (2, [])
    assert flags[0] in done.stderr


# ── the whole, with a tiny RoBERTa ──


@pytest.mark.slow
def test_a_killed_script_goes_on_to_every_table(tmp_path: Path, tiny_folder) -> None:
    write_tasks(tmp_path / "data")
    write_few_steps(GRIDS, tmp_path / "grids")
    write_space(tmp_path / "space.toml")
    roberta = tiny_folder("roberta")
    out = tmp_path / "out"
    tasks = [word for task in TASKS for word in ("--task", task)]
    search = f"--tasks {SEARCHED} --space {tmp_path / 'space.toml'} --trials 1"
    words = ["bash", SCRIPT, tmp_path / "data", out, "--grids", tmp_path / "grids", *tasks]
    words += ["--backbone", roberta, "--seeds", "12", "--rounds", "1", "--search", search]
    words += ["--threads", "1"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
    cells = out / "cells" / "cells.jsonl"

    started = subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL, start_new_session=True)
    while not cells.exists() or cells.read_bytes().count(b"\n") < 9:
        assert started.poll() is None
        time.sleep(0.1)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    before = cells.read_bytes()

    done = subprocess.run(
        words, env=env, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert cells.read_bytes().startswith(before)
    keys = [cell.key for cell in read(cells)]
    assert len(keys) == len(set(keys))
    assert all(map(tables_of(out).__contains__, (f"table{number}" for number in range(1, 9))))
    for number in range(1, 6):
        assert "as published" in (out / "tables" / f"table{number}.md").read_text("utf-8")
    for name in ("figure3", "figure4"):
        assert all(
            (out / "figures" / f"{name}.{form}").stat().st_size for form in ("png", "svg", "csv")
        )
    assert (out / "tables" / "audits.md").read_text("utf-8").startswith("| task |")

    files = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    again = subprocess.run(
        [*words, "--dry-run"], env=env, capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr
    assert f"all grids: 0 of {len(keys)} cells to do" in again.stderr
    assert "1 of them done" in again.stderr
    assert {path: path.stat().st_mtime_ns for path in files} == files


def tables_of(out: Path) -> set[str]:
    """The names of the tables that are there in every format."""
    forms = [
        {path.stem for path in (out / "tables").glob(f"*.{form}")} for form in ("md", "csv", "tex")
    ]
    return set.intersection(*forms)
