"""`fit --dry-run` says what a run takes; `fit --minutes` trains what fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import small_run
from command import FIT, selftrain, snapshot
from selftrain.cli.fit import Asked, learn
from selftrain.cli.talk import Watch
from selftrain.method.recipes import DEFAULT
from selftrain.model.backbone import load
from selftrain.model.pel import Full
from selftrain.runs.read import read_manifest, records
from selftrain.training.budget import Budget, Pace
from selftrain.training.calibration import Speed
from selftrain.training.plan import plan_of

BARE = "fit labelled.csv -u pool.csv -o run --backbone {bert}"
"""The default method."""

# ── --dry-run ──


def test_a_dry_run_writes_nothing_and_shows_every_stage(folder: Path, bert: Path) -> None:
    before = snapshot(folder)
    said = selftrain(FIT.format(bert=bert) + " --dev dev.csv --test test.csv --dry-run")
    assert said.code == 0, said.err
    assert snapshot(folder) == before
    of_method = ("teacher", "annotating", "student", "guard")
    for stage in ("loading", *of_method, "scores", "estimate", "test", "total"):
        assert stage in said.out
    assert "peak memory" in said.out


def test_the_stages_of_a_dry_run_add_up(folder: Path, bert: Path) -> None:
    said = selftrain(BARE.format(bert=bert) + " --dry-run --json")
    assert "warning: few labels" in said.err  # as fit warns
    plan = json.loads(said.out)
    assert plan["method"] == DEFAULT
    assert plan["rows"] == {"labelled": 8, "pool": 30, "drawn": 30}
    stages = sum(stage["seconds"] for stage in plan["stages"])
    assert stages == pytest.approx(plan["seconds"])
    assert plan["total_seconds"] == pytest.approx(plan["seconds"] + plan["loading_seconds"])
    assert plan["last_round"] == plan["rounds"] == 11


def test_a_dry_run_says_what_a_pass_over_a_large_pool_takes(
    folder: Path, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = FIT.format(bert=bert) + " --dry-run"
    assert "the whole pool" not in selftrain(line).out
    monkeypatch.setattr("selftrain.cli.plan.LARGE_POOL", 30)
    out = selftrain(line).out
    assert "the whole pool read once, hours" in out
    assert "on 8 machines like this one" in out


def test_a_dry_run_of_a_finished_run_has_no_round_left(life: Path, bert: Path) -> None:
    line = FIT.format(bert=bert) + " --dev dev.csv --dry-run --json"
    before = snapshot(life)
    plan = json.loads(selftrain(line).out)
    assert {stage["name"] for stage in plan["stages"]} == {"estimate", "ladder"}
    assert snapshot(life) == before


@pytest.mark.parametrize("more", ["", "--minutes 100"])
def test_a_dry_run_refuses_the_folders_that_a_run_refuses(
    more: str, life: Path, bert: Path
) -> None:
    other = selftrain(FIT.format(bert=bert) + f" --dev dev.csv --seed 3 --dry-run {more}")
    assert other.code == 1
    assert "holds a run of another configuration: seed was 12, is now 3" in other.err
    (life / "foreign").mkdir()
    (life / "foreign" / "letter.txt").touch()
    foreign = selftrain(f"fit labelled.csv -u pool.csv -o foreign --dry-run {more}")
    assert foreign.code == 1
    assert "neither empty nor a run folder" in foreign.err


# ── --minutes ──


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "inf"])
def test_minutes_that_are_no_time_are_refused(minutes: str, folder: Path, bert: Path) -> None:
    said = selftrain(f"fit labelled.csv -u pool.csv -o run --minutes={minutes}")
    assert said.code == 1
    assert f"--minutes is {float(minutes)!r}; expected a number above 0" in said.err
    assert not (folder / "run").exists()


def test_too_little_time_for_the_default_trains_the_frozen_encoder(
    folder: Path, bert: Path
) -> None:
    line = BARE.format(bert=bert) + " --minutes 0.0001"
    said = selftrain(line)
    assert said.code == 0, said.err
    assert "the teacher of `supcon` needs about" in said.err
    assert "method `frozen` takes its place" in said.err
    assert "stopped after the teacher: round 1 needs about" in said.err
    assert "the same command without --minutes and with --method frozen goes on" in said.err
    assert read_manifest("run").method["name"] == "frozen"
    assert len(records(Path("run"))) == 1

    again = selftrain(line)  # the run in the folder keeps its method
    assert again.code == 0, again.err
    assert "run resumes after round 0" in again.err
    whole = selftrain(BARE.format(bert=bert) + " --method frozen")
    assert whole.code == 0, whole.err
    assert len(records(Path("run"))) == 6


def test_a_method_that_was_asked_for_is_not_replaced(folder: Path, bert: Path) -> None:
    said = selftrain(FIT.format(bert=bert) + " --minutes 0.0001")
    assert said.code == 1
    assert "the teacher of `upet-head-adapter` needs about" in said.err
    assert "hint: --minutes 0." in said.err
    assert not (folder / "run").exists()


def test_enough_time_gives_the_run_that_has_no_limit(folder: Path, bert: Path) -> None:
    assert selftrain(FIT.format(bert=bert) + " --minutes 100").code == 0
    assert selftrain(FIT.format(bert=bert).replace("-o run", "-o whole")).code == 0
    assert models(folder / "run") == models(folder / "whole")
    limited, whole = (read_manifest(name).configuration() for name in ("run", "whole"))
    assert limited == whole


def test_a_dry_run_says_after_which_round_the_time_ends(folder: Path, bert: Path) -> None:
    said = selftrain(BARE.format(bert=bert) + " --minutes 0.0001 --dry-run")
    assert said.code == 0, said.err
    assert "the time ends after round 0 of 5" in said.err
    assert not (folder / "run").exists()


# ── stopped after a whole round ──


def models(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("model.safetensors")}


def test_a_run_stopped_after_a_round_resumes_to_the_bits_of_one_that_was_not(
    tmp_path: Path, bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Round 3, the student, needs 196 s where rows are seconds; 190 s are left by this clock."""
    job, watch = small_run.job(load(bert), small_run.CONTRAST), Watch(quiet=True)
    rows_are_seconds = Speed(
        1.0, {(Full(), "gold"): 1.0, (Full(), "pool"): 1.0}, {"gold": 1, "pool": 1}, lesson_rows=16
    )
    plan = plan_of(job, rows_are_seconds, small_run.MACHINE)
    pace = Pace(plan, Budget(300, started=0.0, clock=lambda: 110.0))

    stopped = learn(tmp_path / "run", job, (), small_run.MACHINE, watch, Asked(None, pace))
    line = "stopped after round 2 of 5: the student needs about 284 s and 190 s are left"
    assert stopped["stopped"] == line
    assert [round_["number"] for round_ in stopped["rounds"]] == [0, 1, 2]
    assert line in capsys.readouterr().err
    assert len(records(tmp_path / "run")) == 3

    resumed = learn(tmp_path / "run", job, (), small_run.MACHINE, watch, Asked(None, None))
    whole = learn(tmp_path / "whole", job, (), small_run.MACHINE, watch, Asked(None, None))
    assert "stopped" not in resumed
    assert len(records(tmp_path / "run")) == 6
    assert models(tmp_path / "run") == models(tmp_path / "whole")
    assert resumed["final_round"] == whole["final_round"]
    assert resumed.get("estimate") == whole.get("estimate")
