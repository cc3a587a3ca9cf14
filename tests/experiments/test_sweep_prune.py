"""A point that does worse than most is stopped after a round, and that is all it is: stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from by_hand import METHOD
from selftrain.cli.sweep import notes
from selftrain.experiments import pruning
from selftrain.experiments.bench import Bench
from selftrain.experiments.space import changed
from selftrain.experiments.tables import read_sweep, search
from selftrain.method.spec import digest
from small_sweep import cell_of, complete

ALPHA = {"select.score.alpha": tuple(number / 20 for number in range(1, 20))}


def score_of(method, seed: int, number: int) -> float:
    """Made up: the nearer alpha is to 0.3 the better; later rounds are a little better."""
    return 0.8 - abs(method.select.score.alpha - 0.3) + number / 100 + seed / 10_000


@pytest.fixture
def cells(monkeypatch):
    """Cells whose rounds are made up at once; gives the list of the rounds that were computed."""
    computed = []

    def trained_cell(self, inputs, name, method):
        group, by_round = inputs.group, []
        for number in range(method.total_rounds + 1):
            computed.append((method.select.score.alpha, group.seed, number))
            by_round.append(score_of(method, group.seed, number))
            if self.after_round is not None:
                self.after_round(group, by_round[-1], True)
        cell = cell_of(method, group.seed, by_round[-1])
        return replace(
            cell,
            recipe=digest(method),
            backbone=group.backbone,
            by_round=tuple(by_round),
            final_round=method.total_rounds,
            run="runs/x",
        )

    monkeypatch.setattr(Bench, "trained_cell", trained_cell)
    monkeypatch.setattr(Bench, "load", lambda self, name: None)
    monkeypatch.setattr(Bench, "inputs", lambda self, group, _: SimpleNamespace(group=group))
    return computed


def pruning_sweep(make_sweep, out="out", **changes):
    fields = {"method": METHOD, "space": ALPHA, "sampler": "random", "prune": "median"}
    return make_sweep(out, **fields | changes)


def test_five_complete_points_come_before_one_is_stopped():
    assert not pruning.hopeless(0.1, [0.9] * 4)
    assert pruning.hopeless(0.1, [0.9] * 5)
    assert not pruning.hopeless(0.7, [0.6, 0.6, 0.7, 0.8, 0.9])  # as good as the median


def test_a_hopeless_point_is_stopped_at_the_first_round_below_the_median(make_sweep, cells):
    here = pruning_sweep(make_sweep)
    trials = list(here.run(10))
    assert {trial.state for trial in trials[:5]} == {"complete"}
    pruned = [trial for trial in trials if trial.state == "pruned"]
    assert pruned
    finished = {trial.recipe for trial in trials if trial.state == "complete"}
    for trial in pruned:
        assert (trial.value, trial.cells) == (None, ())
        assert trial.why.startswith("stopped after round 0 of sst2, seed 12: ")
        alpha = trial.params["select.score.alpha"]
        if trial.recipe not in finished:
            assert {cell for cell in cells if cell[0] == alpha} == {(alpha, 12, 0)}


def test_a_pruned_point_is_counted_apart_and_never_queued_again(make_sweep, cells):
    here = pruning_sweep(make_sweep)
    trials = list(here.run(10))
    pruned = sum(trial.state == "pruned" for trial in trials)
    report = here.report()
    assert report["states"] == {"complete": 10 - pruned, "pruned": pruned}
    assert report["trials"] == 10 - pruned
    assert report["prune"] == "median"
    tried = json.loads((here.out / "sweep.json").read_text())["tried"]
    assert sum(trial["why"].startswith("stopped after") for trial in tried) == pruned
    assert f"stopped early, without a score: {pruned}." in notes(here, report)
    assert (
        f"Stopped early, without a score: {pruned}."
        in search(read_sweep(here.out / "sweep.json")).notes
    )
    before = len(cells)
    assert list(here.run(10)) == []
    assert len(cells) == before


def test_without_the_option_every_point_is_complete(make_sweep, cells):
    here = pruning_sweep(make_sweep, prune="none")
    assert {trial.state for trial in here.run(10)} == {"complete"}
    assert here.name == replace(here, prune="none").name != pruning_sweep(make_sweep).name


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_a_stopped_search_prunes_what_a_whole_one_prunes(make_sweep, cells, monkeypatch, sampler):
    """Stopped in the second cell of each point: the rounds of the first are reported again."""
    whole = pruning_sweep(make_sweep, "whole", sampler=sampler)
    list(whole.run(9))
    here = pruning_sweep(make_sweep, "parts", sampler=sampler)
    trained_cell, seen = Bench.trained_cell, set()

    def interrupted(self, inputs, name, method):
        point = (method.select.score.alpha, inputs.group.seed)
        if point[1] == 21 and point not in seen:
            seen.add(point)
            raise KeyboardInterrupt
        return trained_cell(self, inputs, name, method)

    monkeypatch.setattr(Bench, "trained_cell", interrupted)
    for _ in range(30):
        try:
            list(here.run(9))
        except KeyboardInterrupt:
            continue
        break
    assert complete(here.trials()) == complete(whole.trials())
    parts, pieces = (
        [(trial.params, trial.why) for trial in sweep.trials() if trial.state == "pruned"]
        for sweep in (here, whole)
    )
    assert parts == pieces
    assert parts


def test_a_pruned_point_leaves_its_round_on_disk_and_no_lock(make_sweep, monkeypatch):
    """Trained for once; any accuracy is below a median above one."""
    monkeypatch.setattr(pruning, "FIRST_POINTS", 1)
    monkeypatch.setattr(pruning, "median", lambda others: 1.1)
    here = pruning_sweep(make_sweep, method=replace(METHOD, rounds=1), seeds=(12,))
    first, second = here.run(2)
    assert (first.state, second.state) == ("complete", "pruned")
    folder = here.out / "trials" / here.inputs_hash / second.recipe
    assert not (folder / "cells.jsonl").exists()
    (run,) = {path.parents[2] for path in folder.rglob("round.json")}
    assert [path.name for path in (run / "rounds").iterdir()] == ["0"]
    monkeypatch.setattr(pruning, "FIRST_POINTS", 99)
    here.cells(changed(here.method, second.params))  # it can go on: nothing holds a lock
    assert sorted(path.name for path in (run / "rounds").iterdir()) == ["0", "1"]
