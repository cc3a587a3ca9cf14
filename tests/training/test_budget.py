"""A run that may take only so long, by a clock that a test sets."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import small_run
from selftrain.model.pel import Full
from selftrain.training.budget import Budget, Pace, last_round
from selftrain.training.calibration import Speed
from selftrain.training.plan import Plan, plan_of

ROWS_ARE_SECONDS = Speed(
    1.0,
    {(Full(), "gold"): 1.0, (Full(), "pool"): 1.0},
    {"gold": 1, "pool": 1, "scored": 1},
    lesson_rows=16,
)
TEACHER = 2 * 16 + 8 * 4 * 3
READING, GUARD = 24 + 16, 24 + 2 * 16
STUDENT = 12 + 6 * 8 * 3
LADDER = 3 * 16 + 40
"""8 labelled rows and 8 of class names, 24 drawn (40 by the frozen encoder); 8 steps of 4 rows, 6
steps of 8, at 3 each."""


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def plan(tiny_backbone) -> Plan:
    """A teacher, two rounds of its head, a student (round 3), two rounds of its head."""
    job = small_run.job(tiny_backbone("bert"), small_run.CONTRAST)
    return plan_of(job, ROWS_ARE_SECONDS, small_run.MACHINE)


def test_the_stages_of_a_plan_add_up(plan: Plan) -> None:
    heads = 4 * 0.01 * 24
    expected = TEACHER + READING + GUARD + STUDENT + READING + heads + LADDER
    assert plan.seconds == pytest.approx(expected, abs=0.1)  # saving takes a moment
    by_round = [plan.round_seconds(number) for number in range(6)]
    assert sum(by_round) + LADDER == pytest.approx(plan.seconds)
    assert by_round[0] == pytest.approx(TEACHER, abs=0.01)
    assert by_round[3] == pytest.approx(STUDENT + READING, abs=0.01)


def test_a_teacher_must_fit_with_the_estimate_that_ends_a_run(plan: Plan) -> None:
    needed = TEACHER + READING + GUARD + LADDER
    assert Budget(needed + 1, 0.0, Clock()).holds_teacher(plan)
    assert not Budget(needed - 1, 0.0, Clock()).holds_teacher(plan)
    assert not Budget(needed + 1, 0.0, Clock(2.0)).holds_teacher(plan)


def test_a_round_that_does_not_fit_is_not_trained_and_the_line_says_why(plan: Plan) -> None:
    clock = Clock()
    pace = Pace(plan, Budget(300 + LADDER, 0.0, clock))
    clock.now = TEACHER
    assert pace.why_stop(1) == ""
    clock.now = TEACHER + READING + GUARD
    assert pace.why_stop(2) == ""
    assert pace.why_stop(3) == (
        "stopped after round 2 of 5: the student needs about 284 s and 164 s are left"
    )
    assert pace.why_stop(6) == ""  # there is no such round


def test_a_teacher_alone_is_named_as_such(plan: Plan) -> None:
    clock = Clock()
    pace = Pace(plan, Budget(200 + LADDER, 0.0, clock))
    clock.now = TEACHER
    assert pace.why_stop(1) == (
        "stopped after the teacher: round 1 needs about 184 s and 160 s are left"
    )


def test_rounds_that_take_twice_as_long_as_planned_let_the_next_count_twice(plan: Plan) -> None:
    clock = Clock()
    pace = Pace(plan, Budget(2 * TEACHER + 300, 0.0, clock))
    clock.now = TEACHER
    assert pace.why_stop(1) == ""
    clock.now = 2 * TEACHER
    assert "needs about 368 s and 300 s are left" in pace.why_stop(1)


def test_the_last_round_within_a_time_is_the_last_whole_one(plan: Plan) -> None:
    first = TEACHER + READING + GUARD + LADDER + 0.5
    assert last_round(plan, 10) == 0  # a teacher is always trained
    assert last_round(plan, first + 1) == 2
    assert last_round(plan, first + STUDENT + READING - 1) == 2
    assert last_round(plan, first + STUDENT + READING + 1) == 5
    assert last_round(plan, float("inf")) == 5


def test_rounds_on_disk_cost_nothing(tiny_backbone) -> None:
    job = small_run.job(tiny_backbone("bert"), small_run.CONTRAST)
    resumed = plan_of(job, ROWS_ARE_SECONDS, small_run.MACHINE, finished=2)
    assert min(stage.round for stage in resumed.stages) == 3
    assert Pace(resumed, Budget(1, 0.0, Clock())).why_stop(2) == ""
    assert "needs about 380 s" in Pace(resumed, Budget(1, 0.0, Clock())).why_stop(3)
