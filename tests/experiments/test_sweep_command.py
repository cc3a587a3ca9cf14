"""``selftrain sweep``: what the command prints, takes and refuses."""

from __future__ import annotations

import json

import pytest

from command import selftrain as command


@pytest.fixture
def line(sweep_data, tmp_path, tiny_folder) -> str:
    return (
        f"sweep {sweep_data} -o {tmp_path / 'out'} --backbone {tiny_folder('bert')} --tasks sst2 "
        "--seeds 12,21 --shots 4 --threads 1"
    )


def test_the_command_prints_the_best_points_and_goes_on(line, untrained, tmp_path):
    first = command(f"{line} --trials 3")
    assert first.code == 0, first.err
    assert "360 points: teacher.batch_size 4 8" in first.err
    assert "3 trials of 2 cells" in first.err
    assert "trial 2   teacher.batch_size" in first.err
    assert "±" in first.out
    assert "The best of 3 points (3 trials) is also the luckiest" in first.out
    again = command(f"{line} --trials 4 --json")
    assert next(text for text in again.lines if text.startswith("trial ")).startswith("trial 3")
    report = json.loads(again.out)
    assert report == json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert report["trials"] == 4


def test_a_dry_run_says_the_cost_and_what_is_done(line, untrained, tmp_path):
    first = command(f"{line} --trials 3 --dry-run")
    assert first.code == 0, first.err
    assert first.lines[-1].startswith("3 trials of 2 cells: about a minute each")
    assert not (tmp_path / "out").exists()
    assert not untrained
    command(f"{line} --trials 2")
    assert "each, 2 of them done" in command(f"{line} --trials 3 --dry-run").err


def test_the_command_takes_a_space_and_rounds(line, untrained, tmp_path):
    (tmp_path / "space.toml").write_text('"select.score.alpha" = [0.2, 0.4]\n')
    outcome = command(f"{line} --space {tmp_path / 'space.toml'} --sampler grid --rounds 1 --json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["best"] == {"select.score.alpha": 0.4}
    assert {method.rounds for method in untrained} == {1}


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ("--trials 0", "--trials is 0"),
        ("--shots 0", "--shots is 0"),
        ("--rounds 0", "--rounds is 0"),
        ("--method uts", "there is no method `uts`"),
        ("--tasks sst3", "task `sst3` is neither known nor a file"),
        ("--space nowhere.toml", "cannot read nowhere.toml"),
        ("--storage nonsense", "cannot use that storage"),
    ],
)
def test_a_wrong_flag_is_named(line, untrained, flags, problem):
    given = line.replace("--shots 4 ", "") if "--shots" in flags else line
    outcome = command(f"{given} {flags}")
    assert (outcome.code, problem in outcome.err) == (1, True), outcome.err
    assert "hint: " in outcome.err
