"""A search: the points it tries, what scores them, and what it reports."""

from __future__ import annotations

import json
import sys
from statistics import fmean

import pytest

from selftrain.errors import ConfigError, DataError
from selftrain.experiments import tasksets
from selftrain.experiments.sweep import Sweep
from selftrain.experiments.tables import read_sweep
from selftrain.method.recipes import recipe
from small_sweep import ALPHA, BATCH, SPACE


def test_a_point_is_judged_by_its_mean_over_cells_on_design_rows(make_sweep):
    here = make_sweep(sampler="grid")
    (first, second) = here.run(2)
    for each in (first, second):
        assert each.value == fmean(cell.accuracy for cell in each.cells)
        assert [(cell.task, cell.seed) for cell in each.cells] == [("sst2", 12), ("sst2", 21)]
        cells = here.out / "trials" / here.inputs_hash / each.recipe / "cells.jsonl"
        lines = [json.loads(line) for line in cells.read_text().splitlines()]
        assert {(line["scored_on"], line["rows"]) for line in lines} == {("design", 20)}
        assert all((cells.parent / line["run"] / "manifest.json").exists() for line in lines)
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


def test_the_report_has_every_trial_and_fits_the_paper_s_table(make_sweep, untrained):
    here = make_sweep()
    list(here.run(3))
    report = here.report()
    assert report == json.loads((here.out / "sweep.json").read_text())
    assert report["space"] == {name: list(values) for name, values in SPACE.items()}
    assert (report["trials"], report["states"]) == (3, {"complete": 3})
    best = max(report["tried"], key=lambda each: each["value"])
    assert (report["best"], report["value"]) == (best["params"], best["value"])
    assert [cell["seed"] for cell in best["cells"]] == [12, 21]
    assert "importance" not in report
    assert "best of 2 points (3 trials)" in report["note"]
    read = read_sweep(here.out / "sweep.json")
    assert (read.best, read.trials) == (report["best"], 3)


def test_with_enough_trials_it_is_told_which_entry_matters(make_sweep, untrained):
    here = make_sweep(space=ALPHA | {"student.tuning.width": (2, 4)}, sampler="grid")
    list(here.run(100))
    report = here.report()
    assert report["trials"] == here.points == 10
    assert report["importance"]["select.score.alpha"] > 0.9
    assert report["best"] == {"select.score.alpha": 0.3, "student.tuning.width": 4}


def test_warnings_of_optuna_go_to_our_log(make_sweep, untrained, monkeypatch, capfd, caplog):
    def broken(*_):
        raise DataError("no rows", "give some")

    monkeypatch.setattr(Sweep, "cells", broken)
    with pytest.raises(DataError):
        list(make_sweep().run(1))
    assert any(line.startswith("optuna: Trial 0 failed") for line in caplog.messages)
    assert tuple(capfd.readouterr()) == ("", "")
