"""What a run will take, shown before it starts; and the run that fits into some minutes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING

from selftrain.cli.options import TimeOptions
from selftrain.cli.talk import Watch, say, show, show_json
from selftrain.errors import ConfigError

if TYPE_CHECKING:
    from selftrain.data.rows import Labelled
    from selftrain.method.spec import Method
    from selftrain.training.budget import Budget, Pace
    from selftrain.training.job import Job
    from selftrain.training.machine import Machine
    from selftrain.training.plan import Plan, TimedStage


LARGE_POOL = 1_000_000  # rows: from here on answers take longer than a run
MACHINES = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a command may take, or that it only shows what it would take."""

    asked: TimeOptions
    started: float
    """When the command began, by the clock that only goes forward."""
    preset: str | None
    """Of the quick method that may take the place of the default; None where none may."""
    as_json: bool


def in_time(
    out: Path,
    job: Job,
    test: Sequence[Labelled],
    machine: Machine,
    watch: Watch,
    limits: Limits,
) -> tuple[Job, Pace | None]:
    """The job that fits into the time, and what stops it; a dry run is shown and has no pace."""
    from selftrain.method.recipes import QUICK, recipe
    from selftrain.training.budget import Budget, Pace

    if machine.ranks.count > 1:
        raise ConfigError(
            f"--minutes and --dry-run plan for one process, and here {machine.ranks.count} train",
            "leave them out, or plan first: selftrain fit … --dry-run",
        )
    loading = time.monotonic() - limits.started
    budget = Budget(60 * (limits.asked.minutes or inf), limits.started)
    replaceable = limits.asked.minutes is not None and limits.preset is not None
    quick = recipe(QUICK, limits.preset or "") if replaceable else None
    with watch.busy("measuring this machine"):
        job, plan = fitting(out, job, test, machine, budget, quick=quick)
    if limits.asked.dry_run:
        show_plan(plan, loading, budget.seconds, as_json=limits.as_json)
        return job, None
    by_name = f" and with --method {QUICK}" if job.method == quick else ""
    return job, Pace(plan, budget, f"the same command without --minutes{by_name} goes on")


def fitting(
    out: Path,
    job: Job,
    test: Sequence[Labelled],
    machine: Machine,
    budget: Budget,
    *,
    quick: Method | None,
) -> tuple[Job, Plan]:
    """The job that fits into the time, and its plan; nothing is written.

    Where the teacher does not fit, the ``quick`` method takes its place; without one, because the
    user chose the method, it is an error. A run in the folder keeps its method.
    """
    from selftrain.method.spec import to_plain
    from selftrain.runs.manifest import Manifest
    from selftrain.runs.read import existing, records
    from selftrain.runs.write import check_resumes
    from selftrain.training.calibration import calibrate
    from selftrain.training.plan import plan_of

    earlier = existing(out)
    if quick and earlier and earlier.method == to_plain(quick):
        job = replace(job, method=quick)
    check_resumes(out, Manifest.of(job, machine))
    finished = len(records(out)) - 1 if earlier else -1
    speed = calibrate(job, machine, test)
    plan = plan_of(job, speed, machine, test=test, finished=finished)
    if finished >= 0 or budget.holds_teacher(plan):
        return job, plan
    needed = plan.round_seconds(0) + plan.closing_seconds(0)
    problem = (
        f"the teacher of `{job.method.name}` needs about {needed:.0f} s with its estimate, "
        f"and {max(budget.left, 0):.0f} s are left"
    )
    if quick is None:
        minutes = ceil((needed + budget.seconds - budget.left) / 6) / 10
        raise ConfigError(problem, f"--minutes {minutes:g}, or leave out --method")
    say(f"{problem}: method `{quick.name}` takes its place")
    say(f"for `{job.method.name}` leave out --minutes, and choose another folder: -o NEW")
    job = replace(job, method=quick)
    plan = plan_of(job, speed, machine, test=test)
    if not budget.holds_teacher(plan):
        say(f"warning: `{quick.name}` too needs more time than is left: {plan.seconds:.0f} s")
    return job, plan


# ── the plan, on stdout ──


def show_plan(plan: Plan, loading: float, limit: float, *, as_json: bool) -> None:
    """A plan as tables or as JSON: stages, rows, memory and disk; and where a limit ends it."""
    from selftrain.training.budget import last_round

    total = loading + plan.seconds
    reached = last_round(plan, limit - loading)
    if as_json:
        show_json(
            {
                **plan.plain(),
                "loading_seconds": loading,
                "total_seconds": total,
                "last_round": reached,
            }
        )
        return
    timed = [("loading", "", f"{loading:.1f}"), *stage_rows(plan.stages)]
    show(("stage", "rounds", "seconds"), [*timed, ("total", "", f"{total:.1f}")], numeric=True)
    memory = [] if plan.memory is None else [("peak memory, MB", f"{plan.memory / 1e6:,.0f}")]
    facts = [
        *((f"rows {name}", f"{count:,}") for name, count in plan.rows.items()),
        *memory,
        ("disk, MB", f"{plan.disk / 1e6:,.1f}"),
        *pool_rows(plan),
    ]
    show((f"method {plan.method.name}", ""), facts, numeric=True)
    if reached < plan.method.total_rounds:
        say(f"the time ends after round {reached} of {plan.method.total_rounds}")


def pool_rows(plan: Plan) -> Iterator[tuple[str, str]]:
    """What every row of a large pool takes: a run draws a part of it, its answers are of all."""
    if plan.rows["pool"] < LARGE_POOL:
        return
    hours = plan.pool_seconds / 3600
    yield "the whole pool read once, hours", f"{hours:,.1f}"
    yield f"… on {MACHINES} machines like this one", f"{hours / MACHINES:,.1f}"


def stage_rows(stages: Sequence[TimedStage]) -> Iterator[tuple[str, str, str]]:
    """A line for each stage; the same stage of rounds in a row is one, and so are all scores."""
    scores = [stage for stage in stages if stage.name == "scores"]
    others = [stage for stage in stages if stage.name != "scores"]
    runs = [list(run) for _, run in groupby(others, lambda stage: stage.name)]
    for run in [*runs, *([scores] if scores else [])]:
        first, last = run[0].round, run[-1].round
        rounds = f"{first}" if first == last else f"{first} to {last}"
        yield run[0].name, rounds, f"{sum(stage.seconds for stage in run):.1f}"
