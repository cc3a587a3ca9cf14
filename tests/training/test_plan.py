"""Memory and disk of a run before it starts."""

from __future__ import annotations

import resource
import sys
from dataclasses import replace

import pytest

import small_run
from selftrain.method.recipes import recipe
from selftrain.model.pel import Adapter, Full
from selftrain.training.calibration import Speed
from selftrain.training.loop import self_train
from selftrain.training.plan import LESSON_ROW, ROUND_FILES, later_bytes, model_bytes, plan_of

FROZEN = recipe("frozen")
SPEED = Speed(
    0.001,
    {(Full(), "gold"): 1, (Full(), "pool"): 1, (Adapter(width=4, layers=1), "pool"): 1},
    {"gold": 9, "pool": 9},
    lesson_rows=8,
)


def test_a_model_takes_the_bytes_that_it_saves(tiny_backbone):
    job = small_run.job(tiny_backbone("bert"), small_run.CONTRAST)
    for round_ in self_train(job, machine=small_run.MACHINE):
        head_alone = round_.encoder_of is not None
        state = round_.model.head_state() if head_alone else round_.model.state()
        saved = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
        assert model_bytes(job, round_.number) == saved


def test_the_disk_of_a_plan_is_that_of_models_and_audits(tiny_backbone):
    job = small_run.job(tiny_backbone("bert"), small_run.CONTRAST)
    models = sum(model_bytes(job, number) for number in range(6))
    expected = models + 5 * 24 * LESSON_ROW + 6 * ROUND_FILES
    assert plan_of(job, SPEED, small_run.MACHINE).disk == expected


def test_states_of_frozen_layers_count_as_disk_while_a_run_lasts(tiny_backbone):
    """Two draws of 24 rows of 9 tokens."""
    bert = tiny_backbone("bert")
    job = small_run.job(bert)
    models = sum(model_bytes(job, number) for number in range(3))
    without = models + 2 * 24 * LESSON_ROW + 3 * ROUND_FILES
    states = 2 * 24 * 9 * bert.width * 4
    assert plan_of(job, SPEED, small_run.MACHINE).disk == without + states


def test_a_pass_over_the_pool_reads_every_row_of_it_once(tiny_backbone):
    """Forty rows of nine tokens, a millisecond each, whatever a round draws."""
    job = small_run.job(tiny_backbone("bert"), small_run.CONTRAST)
    plan = plan_of(job, SPEED, small_run.MACHINE)
    assert plan.rows["drawn"] == 24
    assert plan.pool_seconds == pytest.approx(40 * 9 * 0.001)
    assert plan.plain()["pool_pass_seconds"] == plan.pool_seconds


def test_the_memory_of_a_plan_is_the_peak_so_far_and_what_a_run_keeps(tiny_backbone):
    """Vectors, the gradients of the teacher, a copy of the student."""
    bert = tiny_backbone("bert")
    job = small_run.job(bert, small_run.CONTRAST)
    assert later_bytes(job, 24, teacher=100) == 24 * bert.width * 4 + 200
    assert later_bytes(replace(job, method=FROZEN), 24, teacher=100) == 24 * bert.width * 4
    unit = 1 if sys.platform == "darwin" else 1024
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    plan = plan_of(job, SPEED, small_run.MACHINE)
    assert plan.memory is not None
    assert plan.memory >= before + later_bytes(job, 24, model_bytes(job, 0))
