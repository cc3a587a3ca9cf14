"""`selftrain bench`: cells from a command, its cost first, and what it refuses."""

from __future__ import annotations

import json

import pytest

from command import selftrain as command
from selftrain.cli.bench import WorkerOptions, computed
from selftrain.errors import TrainingError
from selftrain.experiments import results
from small_bench import write_grid


def test_the_command_writes_cells_and_goes_on(data, tmp_path, tiny_folder):
    grid, out = write_grid(tmp_path), tmp_path / "out"
    line = f"bench {data} -o {out} --grid {grid} --backbone {tiny_folder('bert')} --threads 1"
    first = command(line)
    assert first.code == 0, first.err
    assert "2 of 2 cells to do" in first.err
    assert "2 cells written" in first.err
    assert first.out == ""
    again = command(line + " --json")
    assert "0 of 2 cells to do" in again.err
    assert json.loads(again.out) == []
    assert [result.method for result in results.read(out / "cells.jsonl")] == ["majority", "mine"]


def test_several_grids_have_one_cost_and_are_computed_one_after_the_other(
    data, tmp_path, tiny_folder
):
    first, out = write_grid(tmp_path), tmp_path / "out"
    second = tmp_path / "second.toml"
    second.write_text(first.read_text("utf-8").replace('as = "mine"', 'as = "twin"'), "utf-8")
    line = f"bench {data} -o {out} --grid {first} --grid {second} --backbone {tiny_folder('bert')}"
    said = command(f"{line} --threads 1")
    assert said.code == 0, said.err
    assert "grid: 2 of 2 cells to do: about a minute" in said.err
    assert "second: 2 of 2 cells to do: about a minute" in said.err
    assert "all grids: 4 of 4 cells to do: about a minute" in said.err
    cells = [result.method for result in results.read(out / "cells.jsonl")]
    assert cells == ["majority", "mine", "twin"]
    assert "all grids: 0 of 4 cells to do" in command(f"{line} --dry-run").err


class OneCell:
    """In place of a bench: a cell, and then the error of another."""

    def run(self):
        yield "a cell"
        raise TrainingError("it diverged", "a lower rate")


def test_a_grid_with_a_bad_cell_does_not_stop_the_next():
    cells = computed([OneCell(), OneCell()], WorkerOptions())
    assert [next(cells), next(cells)] == ["a cell", "a cell"]
    with pytest.raises(TrainingError, match="it diverged"):
        next(cells)


def test_a_dry_run_says_the_cost_and_writes_nothing(data, tmp_path, tiny_folder):
    out = tmp_path / "out"
    said = command(
        f"bench {data} -o {out} --task sst2 --seeds 12 --shots 4 --dry-run "
        f"--backbone {tiny_folder('bert')} --threads 1"
    )
    assert said.code == 0, said.err
    assert "3 of 3 cells to do: about" in said.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ("--method uts", "there is no method `uts`"),
        ("--task sst3", "task `sst3` is neither known nor a file"),
        ("--task sst2", "two tasks are called `sst2`"),
        ("--shots none", "shots is 'none'"),
        ("--seeds a", "--seeds is 'a'"),
        ("--preset huge", "there is no preset `huge`"),
        ("--preset paper --as-published", "--as-published is a preset of its own"),
        ("--rows 0", "rows is 0"),
        ("--rounds 0", "rounds is 0"),
        ("--shots ²", "shots is '²'"),
        ("--grid nowhere.toml", "cannot read nowhere.toml"),
    ],
)
def test_a_wrong_flag_is_named(data, tmp_path, flags, problem):
    said = command(f"bench {data} -o {tmp_path / 'out'} --task sst2 {flags}")
    assert (said.code, problem in said.err) == (1, True), said.err
    assert "hint: " in said.err


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("methods = [1]", "`methods.0` is 1"),
        ('seeds = ["a"]', "`seeds.0` is 'a'"),
        ("tasks = 3", "`tasks` is 3"),
        ("sleep = 3", "unknown entry `sleep`"),
        ("variant = [1]", "`variant.0` is 1"),
        ('[[variant]]\nname = "head-ft"', "a variant needs the name"),
        ('[[variant]]\nname = "head-ft"\nas = "majority"', "the name of a method is 'majority'"),
        ('[[variant]]\nname = "head-ft"\nas = ".."', "the name of a method is '..'"),
        (
            'methods = ["head-ft"]\n[[variant]]\nname = "head-ft"\nas = "head-ft"',
            "two methods are called `head-ft`",
        ),
    ],
)
def test_a_wrong_grid_is_one_line_and_a_hint(data, tmp_path, lines, problem):
    (tmp_path / "grid.toml").write_text(lines + "\n", "utf-8")
    grid = f"--grid {tmp_path / 'grid.toml'} --task sst2"
    said = command(f"bench {data} -o {tmp_path / 'out'} {grid}")
    assert (said.code, problem in said.err) == (1, True), said.err
    assert "hint: " in said.err


def test_a_task_without_its_folder_is_named(data, tmp_path, tiny_folder):
    said = command(
        f"bench {data} -o {tmp_path / 'out'} --task rte --backbone {tiny_folder('bert')}"
    )
    assert said.code == 1
    assert "has no train file" in said.err
