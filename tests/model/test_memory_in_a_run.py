"""The memory of frozen layers in a run: planned at its start, forgotten at its end."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

import by_hand
from cut_models import TEXTS
from selftrain.method.spec import Tune
from selftrain.model.backbone import Backbone
from selftrain.model.fast.trunk import Memory, memory_of
from selftrain.model.pel import Adapter
from selftrain.training.job import Job
from selftrain.training.loop import Round, self_train
from selftrain.training.machine import Machine

# ── in a run ──


def rounds_of(
    backbone: Backbone,
    machine: Machine = by_hand.MACHINE,
    done: Sequence[Round] = (),
    teacher: Tune = by_hand.METHOD.teacher,
    **student: Any,
) -> Generator[Round]:
    how = replace(by_hand.STUDENT, tuning=Adapter(width=4, layers=1), **student)
    method = replace(by_hand.METHOD, teacher=teacher, student=(how,), rounds=2)
    job = Job(by_hand.TASK, by_hand.SPLIT, method, backbone, 3)
    yield from self_train(job, done=done, machine=machine)


def run(backbone: Backbone, machine: Machine = by_hand.MACHINE, **student: Any) -> list[Round]:
    return list(rounds_of(backbone, machine, **student))


def test_a_run_plans_all_its_rows_and_learns_as_without_memory(backbone: Backbone) -> None:
    memory = memory_of(backbone, 2)
    small = replace(by_hand.MACHINE, cache_mb=0)
    with_memory = [(round_, memory.planned) for round_ in rounds_of(backbone)]
    with_none = [(round_, memory.planned) for round_ in rounds_of(backbone, small)]
    remembered, planned = zip(*with_memory, strict=True)
    without, none = zip(*with_none, strict=True)
    assert min(planned) > len(by_hand.SPLIT.labelled) + by_hand.METHOD.pool
    assert set(none) == {0}
    for one, other in zip(remembered, without, strict=True):
        for name, tensor in one.model.state().items():
            torch.testing.assert_close(tensor, other.model.state()[name], atol=1e-4, rtol=1e-3)


def test_nothing_is_remembered_after_a_run_or_one_that_was_left(backbone: Backbone) -> None:
    """Else the disk stays taken, and a later model would read states that it did not ask for."""
    memory = memory_of(backbone, 2)
    run(backbone)
    assert memory.planned == 0
    left = rounds_of(backbone)
    next(left)
    assert memory.planned > 0
    left.close()
    assert memory.planned == 0


def test_a_finished_run_plans_nothing(backbone: Backbone, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(backbone)
    monkeypatch.setattr(Memory, "plan", lambda *_, **__: pytest.fail("planned again"))
    assert list(rounds_of(backbone, done=done)) == []


def test_a_teacher_cut_elsewhere_is_remembered_too(backbone: Backbone) -> None:
    teacher = replace(by_hand.METHOD.teacher, tuning=Adapter(width=4, layers=2))
    left = rounds_of(backbone, teacher=teacher)
    next(left)
    assert memory_of(backbone, 1).planned == memory_of(backbone, 2).planned > 0
    left.close()


def test_a_run_keeps_states_in_half_when_asked_and_that_changes_answers(
    backbone: Backbone,
) -> None:
    whole = run(backbone)[-1].model.probabilities(TEXTS)
    half = run(backbone, states="fp16")[-1].model.probabilities(TEXTS)
    assert 0 < (whole - half).abs().max() < 0.1


def test_a_run_says_what_it_takes_of_the_disk_before_it_starts(
    backbone: Backbone, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "selftrain")
    plan = Memory.plan

    def large(memory: Memory, *rows: Any, limit: int, **options: Any) -> int:
        return 1000 * plan(memory, *rows, limit=limit // 1000, **options)

    monkeypatch.setattr(Memory, "plan", large)
    for megabytes in (4096, 2):
        next(rounds_of(backbone, replace(by_hand.MACHINE, cache_mb=megabytes)))
    notes = [line for line in caplog.messages if "frozen layers" in line]
    expected = r"frozen layers are computed once for \d+ texts: \d+ MB of disk meanwhile"
    assert re.fullmatch(expected, notes[0])
    assert re.fullmatch(expected + "; not all fit: the others are computed each time", notes[1])
