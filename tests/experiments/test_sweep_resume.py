"""A stopped or killed search resumes, and workers share its trials."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock
from safetensors.torch import load_file, save_file

from by_hand import METHOD
from selftrain.errors import RunError, TrainingError
from selftrain.experiments import sweep
from selftrain.experiments.sweep import Sweep
from small_sweep import ALPHA, SPACE, WIDTH, complete

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
    assert complete(here.trials()) == complete(whole)
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
    assert complete(parts.trials()) == complete(whole)
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
    assert complete(here.trials()) == complete(make_sweep("whole").run(3))[:2]


def test_a_point_that_cannot_be_trained_is_passed_over_for_good(make_sweep, untrained, monkeypatch):
    cells = Sweep.cells

    def some(self, method, _):
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
    (folder,) = (here.out / "trials" / here.inputs_hash).iterdir()
    assert len((folder / "cells.jsonl").read_text().splitlines()) == 1


def test_another_question_is_another_study(make_sweep, untrained):
    list(make_sweep().run(2))
    assert make_sweep(seeds=(12,)).trials() == []
    assert make_sweep(space=ALPHA).trials() == []
    assert len(make_sweep().trials()) == 2


def test_other_rows_are_another_study_with_cells_of_its_own(make_sweep, sweep_data):
    """In the same folder: the first point has the same recipe there."""
    here = make_sweep(space=ALPHA, seeds=(12,))
    (first,) = here.run(1)
    with (sweep_data / "sst2" / "train.jsonl").open("a", encoding="utf-8") as file:
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
