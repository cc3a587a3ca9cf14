"""A run that may take only so long: it stops after a whole round, before one that does not fit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from selftrain.training.plan import Plan

Clock = Callable[[], float]
"""Seconds since some moment."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The time that a command may take, from its start."""

    seconds: float
    started: float
    clock: Clock = time.monotonic

    @property
    def left(self) -> float:
        """Seconds that are left; below 0 after the end."""
        return self.started + self.seconds - self.clock()

    def holds_teacher(self, plan: Plan) -> bool:
        """Whether the teacher fits, with the estimate that ends every run."""
        return plan.round_seconds(0) + plan.closing_seconds(0) <= self.left


class Pace:
    """Says before each round whether it still fits; where rounds take longer than planned, so will
    the next."""

    def __init__(self, plan: Plan, budget: Budget, hint: str = "") -> None:
        self.plan = plan
        self.budget = budget
        self.hint = hint
        """How a run that was stopped goes on."""
        self._begun = budget.clock()

    def why_stop(self, number: int) -> str:
        """Why the round of this number is not trained; empty where it is, or is on disk."""
        plan, total = self.plan, self.plan.method.total_rounds
        if not plan.finished < number <= total:
            return ""
        needed = plan.round_seconds(number) + plan.closing_seconds(number)
        needed, left = self._slower(number) * needed, self.budget.left
        if needed <= left:
            return ""
        done = f"round {number - 1} of {total}" if number > 1 else "the teacher"
        deep = any(stage.name == "student" and stage.round == number for stage in plan.stages)
        what = "the student" if deep else f"round {number}"
        return (
            f"stopped after {done}: {what} needs about {needed:.0f} s "
            f"and {max(left, 0):.0f} s are left"
        )

    def _slower(self, number: int) -> float:
        """How many times as long as planned the rounds before this one took; at least 1."""
        planned = sum(map(self.plan.round_seconds, range(self.plan.finished + 1, number)))
        spent = self.budget.clock() - self._begun
        return max(1.0, spent / planned) if planned else 1.0


def last_round(plan: Plan, seconds: float) -> int:
    """The round after which a run stops that has so many seconds and goes as planned."""
    spent = 0.0
    for number in range(plan.finished + 1, plan.method.total_rounds + 1):
        spent += plan.round_seconds(number)
        if number and spent + plan.closing_seconds(number) > seconds:
            return number - 1
    return plan.method.total_rounds
