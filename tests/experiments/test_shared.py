"""What cells share: one teacher, its first votes, their time, and no bit that differs."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from by_hand import MACHINE, METHOD, STUDENT
from selftrain.data.rows import examples
from selftrain.data.task import find
from selftrain.experiments import bench, shared, tasksets
from selftrain.experiments.shared import read_about, read_votes, write_votes
from selftrain.method.scores import Votes
from selftrain.model.pel import Adapter
from selftrain.runs import read as runs
from selftrain.runs.train import train
from selftrain.training import loop
from selftrain.training.annotate import annotate
from selftrain.training.draw import pool_of_round
from selftrain.training.evaluate import answered
from selftrain.training.job import Job
from small_bench import ST


def test_a_shared_teacher_and_shared_votes_change_no_bit(small_bench):
    """The same method beside others, and by itself in a folder of its own."""
    here = small_bench(seeds=(12,), references=())
    list(here.run())
    alone = small_bench("alone", seeds=(12,), references=(), methods={"upet": METHOD})
    (group,) = alone.grid.groups()
    rows = tasksets.Taskset.read(alone.data, find("sst2"))
    backbone = bench.load(group.backbone)
    split = rows.split(group.shots, group.seed)
    job = Job(rows.task, split, METHOD, backbone, group.seed)
    by_itself = list(train(alone.out / "run", job, MACHINE))
    folder = here.folder(group, "upet", METHOD)
    for round_ in by_itself:
        beside = runs.load(folder, round_.number, backbone=group.backbone).state()
        mine = round_.model.state()
        assert all(torch.equal(mine[name], beside[name]) for name in mine)


def test_methods_of_one_teacher_train_it_once(small_bench, monkeypatch):
    here = small_bench(seeds=(12,), references=())
    list(here.run())
    assert len(list((here.out / "shared" / "teachers").iterdir())) == 1
    # upet and st have the same pool and passes, so they have the same first votes
    assert len(list((here.out / "shared" / "votes").iterdir())) == 1


def test_a_teacher_is_shared_by_methods_that_annotate_otherwise(small_bench):
    more = replace(METHOD, name="more", pool=20, passes=2)
    here = small_bench(seeds=(12,), references=(), methods={"upet": METHOD, "more": more})
    assert len(list(here.run())) == 2
    assert len(list((here.out / "shared" / "teachers").iterdir())) == 1
    assert len(list((here.out / "shared" / "votes").iterdir())) == 2


def test_another_teacher_is_not_shared(small_bench):
    other = replace(METHOD, name="other", teacher=replace(METHOD.teacher, learning_rate=1e-3))
    here = small_bench(seeds=(12,), references=(), methods={"upet": METHOD, "other": other})
    list(here.run())
    assert len(list((here.out / "shared" / "teachers").iterdir())) == 2
    assert len(list((here.out / "shared" / "votes").iterdir())) == 2


def test_a_teacher_with_a_trunk_is_not_shared(small_bench):
    low = replace(METHOD.teacher, tuning=Adapter(width=2, layers=1))
    here = small_bench(seeds=(12,), references=(), methods={"low": replace(METHOD, teacher=low)})
    assert len(list(here.run())) == 1
    assert not (here.out / "shared").exists()


def test_a_teacher_that_methods_share_is_scored_once(small_bench, monkeypatch):
    asked = []

    def watched(model, rows, machine):
        asked.append(model)
        return answered(model, rows, machine)

    monkeypatch.setattr(bench, "answered", watched)
    upet, st = small_bench(seeds=(12,), references=(), methods={"upet": METHOD, "st": ST}).run()
    assert upet.by_round[0] == st.by_round[0]
    assert len(asked) == 1 + 2 * METHOD.rounds
    alone = small_bench("alone", seeds=(12,), references=(), methods={"st": ST})
    assert [result.by_round for result in alone.run()] == [st.by_round]


def test_votes_of_other_rows_or_damaged_ones_are_not_taken(small_bench, data):
    here = small_bench(seeds=(12,), references=(), methods={"upet": METHOD})
    list(here.run())
    (path,) = (here.out / "shared" / "votes").iterdir()
    rows = tasksets.Taskset.read(data, find("sst2"))
    job = Job(rows.task, rows.split(4, 12), METHOD, bench.load(here.grid.backbones[0]), 12)
    pool = pool_of_round(job, 1)
    found = read_votes(path, pool, 2, METHOD.passes)
    assert found is not None
    assert read_votes(path, pool[::-1], 2, METHOD.passes) is None
    assert read_votes(path, pool, 3, METHOD.passes) is None
    assert read_votes(path, pool, 2, METHOD.passes + 1) is None
    spoilt = replace(found, mean=found.mean * float("nan"))
    write_votes(path, pool, spoilt, seconds=1.0, by="x")
    assert read_votes(path, pool, 2, METHOD.passes) is None
    path.write_bytes(path.read_bytes()[:-9])
    assert read_votes(path, pool, 2, METHOD.passes) is None
    assert read_about(path) is None


def test_votes_of_another_teacher_are_not_taken(small_bench, monkeypatch):
    """Its folder was removed, say, and newer code has trained another in its place."""
    here = small_bench(seeds=(12,), references=(), methods={"upet": METHOD})
    list(here.run())
    (path,) = (here.out / "shared" / "votes").iterdir()
    before = read_about(path)
    shutil.rmtree(here.out / "shared" / "teachers")
    first_fit = loop.fit

    def otherwise(model, *given, **more):
        first_fit(model, *given, **more)
        return first_fit(model, *given, **more)

    monkeypatch.setattr(loop, "fit", otherwise)
    list(small_bench(seeds=(12,), references=(), methods={"st": ST}).run())
    assert read_about(path).by != before.by


def test_a_pipe_in_the_place_of_votes_is_not_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "votes")
    monkeypatch.setattr(shared, "safe_open", lambda *_: pytest.fail("it was opened"))
    assert read_votes(tmp_path / "votes", [], 2, 4) is None
    assert read_about(tmp_path / "votes") is None


def test_votes_that_are_not_there_or_of_another_shape_or_type_are_not_taken(tmp_path):
    rows, path = examples(["a", "b", "c"]), tmp_path / "votes.safetensors"
    right = {name: torch.zeros(3, 2, dtype=torch.float64) for name in shared.PARTS}
    right["entropy"] = torch.zeros(3, dtype=torch.float64)
    assert read_votes(path, rows, 2, 4) is None
    for changes, taken in (
        ({}, True),
        ({"mean": torch.zeros(3, 3, dtype=torch.float64)}, False),
        ({"entropy": torch.zeros(3, 1, dtype=torch.float64)}, False),
        ({"wins": torch.zeros(3, 2)}, False),
    ):
        write_votes(path, rows, Votes(**{**right, **changes}, passes=4), seconds=1.0, by="x")
        assert (read_votes(path, rows, 2, 4) is not None) == taken


def test_the_time_of_shared_votes_counts_for_whoever_did_not_make_them(small_bench, monkeypatch):
    """Also for the one that made them and was killed before its round was whole."""

    def slowly(*given, **more):
        time.sleep(1)
        yield from annotate(*given, **more)

    monkeypatch.setattr(shared, "annotate", slowly)
    both = {name: replace(method, rounds=1) for name, method in (("upet", METHOD), ("st", ST))}
    here = small_bench(seeds=(12,), references=(), methods=both)
    first, second = here.run()
    annotating = [annotated(here.out / each.run) for each in (first, second)]
    assert annotating[0] > 1 > annotating[1]
    assert min(first.seconds, second.seconds) > 1
    (here.out / "cells.jsonl").unlink()
    shutil.rmtree(here.out / first.run / "rounds" / "1")
    again, _ = here.run()
    assert annotated(here.out / again.run) < 1 < again.seconds


def test_a_broken_student_has_the_time_of_its_votes_once(small_bench):
    wild = replace(METHOD, rounds=1, student=(replace(STUDENT, learning_rate=1e37),))
    (only,) = small_bench(methods={"wild": wild}, seeds=(12,), references=()).run()
    rounds = small_bench().out / only.run / "rounds"
    records = [json.loads((rounds / number / "round.json").read_text("utf-8")) for number in "01"]
    spent = sum(record["numbers"]["seconds"] for record in records)
    assert only.seconds == pytest.approx(spent, abs=0.011)  # it made them itself: two decimals


def annotated(folder: Path) -> float:
    """Seconds of round 1."""
    return runs.records(folder)[1].numbers["seconds annotating"]
