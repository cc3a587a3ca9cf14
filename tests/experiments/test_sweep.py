"""A search: which points are tried, what judges them, and what a killed sweep goes on with."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from filelock import FileLock
from safetensors.torch import load_file, save_file

from by_hand import MACHINE, METHOD
from command import selftrain as command
from selftrain.errors import ConfigError, DataError, RunError, TrainingError
from selftrain.experiments import sweep, tasksets
from selftrain.experiments.results import Result
from selftrain.experiments.space import changed, check_space, entries, paper_space, read_space
from selftrain.experiments.sweep import Sweep
from selftrain.experiments.tables import read_sweep
from selftrain.method.recipes import recipe

SPACE = {"select.score.alpha": (0.1, 0.9), "student.tuning.width": (2, 4)}


@pytest.fixture
def data(data: Path) -> Path:
    """Without a test file: a sweep has no use for one."""
    (data / "sst2" / "test.jsonl").unlink()
    return data


@pytest.fixture
def make_sweep(data, tmp_path, tiny_folder):
    """A sweep around the small method, two seeds on one task."""

    def make(out="out", **more) -> Sweep:
        given = {
            "method": replace(METHOD, rounds=1),
            "space": SPACE,
            "tasks": ("sst2",),
            "backbone": str(tiny_folder("bert")),
            "seeds": (12, 21),
            "shots": 4,
            "machine": MACHINE,
            **more,
        }
        return Sweep(data=data, out=tmp_path / out, **given)

    return make


@pytest.fixture
def untrained(monkeypatch):
    """Cells at once: the better, the nearer alpha is to 0.3 and the wider the adapter."""
    asked = []

    def cells(self, method):
        asked.append(method)
        score = 0.8 - abs(method.select.score.alpha - 0.3) + method.student[0].tuning.width / 1000
        return [cell_of(method, seed, score + seed / 1000) for seed in self.seeds]

    monkeypatch.setattr(Sweep, "cells", cells)
    return asked


def cell_of(method, seed: int, accuracy: float) -> Result:
    return Result(
        task="sst2",
        method=method.name,
        recipe="x",
        preset="laptop",
        backbone="minilm",
        shots=4,
        seed=seed,
        scored_on="design",
        rows=20,
        accuracy=accuracy,
        macro_f1=accuracy,
        f1={},
        calibration_error=0.0,
    )


def done(trials) -> list[tuple[dict, float]]:
    return [(each.params, each.value) for each in trials if each.state == "complete"]


# ── the space ────────────────────────────────────────────────────────────────────────────────

ALPHA = {"select.score.alpha": (0.1, 0.3, 0.5, 0.7, 0.9)}
LAMBDA = {"student.contrast.weight": (0.001, 0.01, 0.05, 0.1, 0.5, 1)}
BATCH = {"teacher.batch_size": (4, 8)}
LENGTH, WIDTH = (4, 8, 16, 32, 64, 128), (8, 16, 32, 64, 128, 256)


@pytest.mark.parametrize(
    ("name", "space"),
    [
        ("upet-head-adapter", BATCH | ALPHA | LAMBDA | {"student.tuning.width": WIDTH}),
        ("upet-head-prefix", BATCH | ALPHA | LAMBDA | {"student.tuning.length": LENGTH}),
        ("upet-prompt-ptuning", BATCH | ALPHA | LAMBDA | {"student.tuning.length": LENGTH}),
        ("upet-head-prefix-wo-contrast", BATCH | ALPHA | {"student.tuning.length": LENGTH}),
        ("upet-head-full-pel-teacher", BATCH | ALPHA | LAMBDA | {"teacher.tuning.width": WIDTH}),
        ("upet-head-full", BATCH | ALPHA | LAMBDA),
        ("list", BATCH | {"student.tuning.width": WIDTH}),
        ("ust", BATCH),
        ("head-ft", BATCH),
    ],
)
def test_table_8_is_searched_where_the_method_has_it(name, space):
    assert paper_space(recipe(name)) == space


def test_table_8_fits_the_default_method():
    method = recipe("upet-head-adapter")
    check_space(paper_space(method), method)


@pytest.mark.parametrize(
    "text",
    [
        '"select.score.alpha" = [0.2, 0.4]',
        "select.score.alpha = [0.2, 0.4]",
        "[select]\nscore.alpha = [0.2, 0.4, 0.2]",
    ],
)
def test_a_space_is_a_list_of_values_for_an_entry(tmp_path, text):
    (tmp_path / "space.toml").write_text(text)
    assert read_space(tmp_path / "space.toml") == {"select.score.alpha": (0.2, 0.4)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"select.score.alpha" = 0.2', "expected a list"),
        ('"select.score.alpha" = []', "expected a list"),
        ('"select.score.alpha" = [[0.2]]', "expected a list"),
        ('"student.learning_rate" = [inf]', "expected a list"),
        ("", "no entry"),
        ("alpha", "is not TOML"),
    ],
)
def test_what_is_no_space_is_named(tmp_path, text, problem):
    (tmp_path / "space.toml").write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_space(tmp_path / "space.toml")


@pytest.mark.parametrize(
    ("name", "space", "problem"),
    [
        ("upet-head-adapter", {"select.score.alfa": (1,)}, "unknown entry `select.score.alfa`"),
        ("upet-head-adapter", {"student.tuning.length": (4,)}, "`student.tuning.length`"),
        ("head-ft", {"select.score.alpha": (0.5,)}, "`select.score.alpha`"),
        ("head-st", {"student.contrast.weight": (0.5,)}, "`student.contrast.weight`"),
        ("list", {"student.reweigh.after": (0.5,)}, "`student.reweigh.after`"),
        ("upet-head-adapter", {"name": ("ust",)}, "unknown entry `name`"),
        ("upet-head-adapter", {"select.score.alpha": (0.5, 2)}, "= 2: alpha is 2"),
        ("upet-head-adapter", {"teacher.batch_size": (4, "big")}, "= 'big'"),
        (
            "upet-head-adapter",
            {"student.head": ("linear", "dense"), "student.gold_share": (0,)},
            "= 'dense': head_start",
        ),
        (
            "upet-head-prefix",
            {"student.steps": (5,), "student.epochs": (1,)},
            "`student.steps` = 5 and `student.epochs` = 1: steps and epochs",
        ),
    ],
)
def test_a_space_that_does_not_fit_the_method_is_named(name, space, problem):
    with pytest.raises(ConfigError) as error:
        check_space(space, recipe(name))
    assert problem in error.value.message


def test_an_entry_that_is_not_set_can_be_searched():
    method = recipe("upet-head-adapter")
    assert entries(method)["student.head_learning_rate"] is None
    assert changed(method, {"student.head_learning_rate": 0.1}).student[0].head_learning_rate == 0.1


# ── what judges ──────────────────────────────────────────────────────────────────────────────


def test_a_point_is_judged_by_its_mean_over_cells_on_design_rows(make_sweep):
    here = make_sweep(sampler="grid")
    (first, second) = here.run(2)
    for each in (first, second):
        assert each.value == fmean(cell.accuracy for cell in each.cells)
        assert [(cell.task, cell.seed) for cell in each.cells] == [("sst2", 12), ("sst2", 21)]
        cells = here.out / "trials" / here.ground / each.recipe / "cells.jsonl"
        told = [json.loads(line) for line in cells.read_text().splitlines()]
        assert {(line["scored_on"], line["rows"]) for line in told} == {("design", 20)}
        assert all((cells.parent / line["run"] / "manifest.json").exists() for line in told)
    assert first.params != second.params
    assert len(list((here.out / "shared" / "teachers").iterdir())) == 2  # one a seed, for all


def test_a_task_without_design_rows_is_named(make_sweep, monkeypatch):
    monkeypatch.setattr(tasksets, "DESIGN", 60)
    with pytest.raises(DataError, match=r"task `sst2` has 100 train rows; a sweep needs 120"):
        next(make_sweep().run(1))


def test_a_backbone_that_cannot_answer_prompts_is_named(make_sweep):
    with pytest.raises(ConfigError, match="`upet-prompt-adapter` cannot use backbone `minilm`"):
        make_sweep(method=recipe("upet-prompt-adapter"), space=BATCH, backbone="minilm")


def test_without_optuna_it_is_said_how_to_get_it(make_sweep, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match="optuna is not installed") as error:
        make_sweep()
    assert error.value.hint == "pip install optuna"


# ── going on ─────────────────────────────────────────────────────────────────────────────────

KILLED = """\
import logging, os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from by_hand import MACHINE, METHOD
from selftrain.experiments import tasksets
from selftrain.experiments.sweep import Sweep
tasksets.DESIGN = 20
class KillInSecondTrial(logging.Handler):
    trials = 0
    def emit(self, record):
        self.trials += "round 1/2" in record.getMessage()
        if self.trials == 2:  # the second trial, between its rounds
            os.kill(os.getpid(), signal.SIGKILL)
logging.getLogger("selftrain").setLevel(logging.INFO)
logging.getLogger("selftrain").addHandler(KillInSecondTrial())
sweep = Sweep(METHOD, {space!r}, Path({data!r}), Path({out!r}), ("sst2",), {backbone!r}, (12,), 4,
    machine=MACHINE)
list(sweep.run(3))
"""


def test_a_killed_sweep_goes_on_and_ends_with_the_same_best(make_sweep, tmp_path):
    whole = list(make_sweep("whole", method=METHOD, seeds=(12,)).run(3))
    here = make_sweep("parts", method=METHOD, seeds=(12,))
    script = KILLED.format(
        tests=str(Path(__file__).parents[1] / "support"),
        space=SPACE,
        data=str(here.data),
        out=str(here.out),
        backbone=here.backbone,
    )
    ended = subprocess.run([sys.executable, "-c", script], check=False, timeout=200)
    assert ended.returncode == -signal.SIGKILL
    assert [each.state for each in here.trials()] == ["complete", "running"]
    (stopped,) = (each.params for each in here.trials() if each.state == "running")
    rounds = {path: path.stat().st_mtime_ns for path in here.out.rglob("round.json")}
    rest = list(here.run(3))
    assert rest[0].params == stopped
    assert done(here.trials()) == done(whole)
    assert all(path.stat().st_mtime_ns == then for path, then in rounds.items())
    report, best = here.report(), max(whole, key=lambda each: each.value)
    assert (report["best"], report["value"]) == (best.params, best.value)
    assert report["states"] == {"complete": 3, "fail": 1}


@pytest.mark.parametrize(
    ("sampler", "trials"), [("tpe", (3, 11, 12)), ("random", (1, 4)), ("grid", (1, 4))]
)
def test_a_sweep_in_parts_tries_the_points_of_one_in_a_piece(
    make_sweep, untrained, sampler, trials
):
    space = ALPHA | {"student.tuning.width": WIDTH}
    whole = list(make_sweep("whole", space=space, sampler=sampler).run(trials[-1]))
    parts = make_sweep("parts", space=space, sampler=sampler)
    for some in trials:
        list(parts.run(some))
    assert done(parts.trials()) == done(whole)
    assert list(parts.run(trials[-1])) == []


def test_what_was_stopped_by_hand_is_taken_up(make_sweep, untrained, monkeypatch):
    def interrupted(*_):  # no signal: it is ignored where the tests run in the background
        raise KeyboardInterrupt

    here = make_sweep()
    list(here.run(1))
    cells = Sweep.cells
    monkeypatch.setattr(Sweep, "cells", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(here.run(3))
    monkeypatch.setattr(Sweep, "cells", cells)
    stopped = here.trials()[-1]
    assert stopped.state == "fail"
    assert next(iter(here.run(3))).params == stopped.params
    assert done(here.trials()) == done(make_sweep("whole").run(3))[:2]


def test_a_point_that_cannot_be_trained_is_passed_over_for_good(make_sweep, untrained, monkeypatch):
    cells = Sweep.cells

    def some(self, method):
        if method.select.score.alpha == 0.9:
            raise TrainingError("the loss is no number", "a lower rate")
        return cells(self, method)

    monkeypatch.setattr(Sweep, "cells", some)
    here = make_sweep(sampler="grid")
    assert sorted(each.state for each in here.run(4)) == ["complete", "complete", "fail", "fail"]
    assert {each.why for each in here.trials()} == {"", "the loss is no number"}
    assert list(here.run(4)) == []
    assert here.report()["best"]["select.score.alpha"] == 0.1


def test_a_point_whose_students_break_off_does_not_win_by_its_teacher(make_sweep):
    """The loop keeps the teacher; what a search is after is a student."""
    here = make_sweep(space={"student.learning_rate": (1e-3, 1e37)}, sampler="grid", seeds=(12,))
    assert sorted(each.state for each in here.run(2)) == ["complete", "fail"]
    (why,) = {each.why for each in here.trials()} - {""}
    assert why.startswith("a student's training broke off on sst2, seed 12")
    assert here.report()["best"] == {"student.learning_rate": 1e-3}
    assert list(here.run(2)) == []


def test_equal_points_are_computed_once(make_sweep):
    here = make_sweep(space={"select.score.alpha": (0.1,)}, seeds=(12,))
    one, two = here.run(2)
    assert one.value == two.value
    (folder,) = (here.out / "trials" / here.ground).iterdir()
    assert len((folder / "cells.jsonl").read_text().splitlines()) == 1


def test_another_question_is_another_study(make_sweep, untrained):
    list(make_sweep().run(2))
    assert make_sweep(seeds=(12,)).trials() == []
    assert make_sweep(space=ALPHA).trials() == []
    assert len(make_sweep().trials()) == 2


def test_other_rows_are_another_study_with_cells_of_its_own(make_sweep, data):
    """In the same folder: the first point has the same recipe there."""
    here = make_sweep(space=ALPHA, seeds=(12,))
    (first,) = here.run(1)
    with (data / "sst2" / "train.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"text": "one more", "label": "positive"}\n')
    assert here.trials() == []
    (again,) = here.run(1)
    assert (again.number, again.recipe) == (first.number, first.recipe)
    assert len(list((here.out / "trials").iterdir())) == 2


def test_other_weights_by_the_same_name_are_another_study(
    make_sweep, untrained, tiny_folder, tmp_path
):
    copy = tmp_path / "bert"
    shutil.copytree(tiny_folder("bert"), copy)
    list(make_sweep(backbone=str(copy)).run(1))
    sweep._weights.cache_clear()  # as another process finds them
    weights = load_file(copy / "model.safetensors")
    save_file({name: value + 1 for name, value in weights.items()}, copy / "model.safetensors")
    assert make_sweep(backbone=str(copy)).trials() == []


@pytest.mark.parametrize("out", ["{x}", "{", "{{0}}"])
def test_a_folder_may_have_braces_in_its_name(make_sweep, untrained, out):
    here = make_sweep(out)
    assert len(list(here.run(1))) == 1
    assert (here.out / "sweep.db").is_file()


def test_a_folder_has_one_worker_unless_they_share_a_storage(make_sweep, untrained):
    here = make_sweep()
    list(here.run(1))
    with FileLock(here.out / sweep.LOCK), pytest.raises(RunError) as error:
        next(here.run(2))
    assert "--storage" in error.value.hint


def test_workers_of_one_storage_share_the_trials(make_sweep, untrained, tmp_path):
    storage = f"sqlite:///{tmp_path / 'workers.db'}"
    one, two = (make_sweep(name, storage=storage, seeds=(12,)) for name in ("one", "two"))
    first = one.run(4)
    begun = [next(first), next(first)]
    rest = list(two.run(4))
    assert list(first) == []
    assert [each.number for each in begun + rest] == [0, 1, 2, 3]
    assert one.report()["tried"] == two.report()["tried"]  # wherever a point was computed


# ── what is told ─────────────────────────────────────────────────────────────────────────────


def test_the_report_has_every_trial_and_fits_the_paper_s_table(make_sweep, untrained):
    here = make_sweep()
    list(here.run(3))
    told = here.report()
    assert told == json.loads((here.out / "sweep.json").read_text())
    assert told["space"] == {name: list(values) for name, values in SPACE.items()}
    assert (told["trials"], told["states"]) == (3, {"complete": 3})
    best = max(told["tried"], key=lambda each: each["value"])
    assert (told["best"], told["value"]) == (best["params"], best["value"])
    assert [cell["seed"] for cell in best["cells"]] == [12, 21]
    assert "importance" not in told
    assert "best of 2 points (3 trials)" in told["note"]
    read = read_sweep(here.out / "sweep.json")
    assert (read.best, read.trials) == (told["best"], 3)


def test_with_enough_trials_it_is_told_which_entry_matters(make_sweep, untrained):
    here = make_sweep(space=ALPHA | {"student.tuning.width": (2, 4)}, sampler="grid")
    list(here.run(100))
    told = here.report()
    assert told["trials"] == here.points == 10
    assert told["importance"]["select.score.alpha"] > 0.9
    assert told["best"] == {"select.score.alpha": 0.3, "student.tuning.width": 4}


def test_warnings_of_optuna_go_to_our_log(make_sweep, untrained, monkeypatch, capfd, caplog):
    def broken(*_):
        raise DataError("no rows", "give some")

    monkeypatch.setattr(Sweep, "cells", broken)
    with pytest.raises(DataError):
        list(make_sweep().run(1))
    assert any(line.startswith("optuna: Trial 0 failed") for line in caplog.messages)
    assert tuple(capfd.readouterr()) == ("", "")


# ── the command ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def line(data, tmp_path, tiny_folder) -> str:
    return (
        f"sweep {data} -o {tmp_path / 'out'} --backbone {tiny_folder('bert')} --tasks sst2 "
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
    told = json.loads(again.out)
    assert told == json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert told["trials"] == 4


def test_the_command_takes_a_space_and_rounds(line, untrained, tmp_path):
    (tmp_path / "space.toml").write_text('"select.score.alpha" = [0.2, 0.4]\n')
    said = command(f"{line} --space {tmp_path / 'space.toml'} --sampler grid --rounds 1 --json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["best"] == {"select.score.alpha": 0.4}
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
    said = command(f"{line} {flags}")
    assert (said.code, problem in said.err) == (1, True), said.err
    assert "hint: " in said.err
