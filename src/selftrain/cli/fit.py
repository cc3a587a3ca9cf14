"""``selftrain fit``: learn a classifier from one's own files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selftrain.cli import inputs, options
from selftrain.cli.bundles import with_options
from selftrain.cli.config import settings_of
from selftrain.cli.talk import Watch, resumable, say, show_evaluation, show_json, warn

if TYPE_CHECKING:
    from selftrain.cli.config import Config
    from selftrain.data.rows import Labelled
    from selftrain.training.budget import Pace
    from selftrain.training.job import Job
    from selftrain.training.loop import Round
    from selftrain.training.machine import Machine


@with_options
def fit(
    *,
    files: options.DataOptions,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="The run folder to write.")
    ],
    columns: options.ColumnOptions,
    method: options.TrainingOptions,
    prompt: options.PromptOptions,
    hardware: options.MachineOptions,
    limits: options.TimeOptions,
    as_json: options.Json = False,
) -> None:
    """Learn a classifier from labelled and unlabelled texts.

    selftrain fit labelled.csv --unlabelled pool.csv -o run

    Every round is on disk when its line is printed. A run that was stopped or killed resumes
    from its last finished round: give the same command again, with more rounds if you like.
    """
    from selftrain.runs.read import check_place

    started = time.monotonic()
    settings = settings_of(method.config, files, columns, method, prompt, hardware)
    check_place(out)
    with Watch() as watch:
        job, test, machine = prepare(files, settings, watch)
        pace = None
        if limits.dry_run or limits.minutes is not None:
            from selftrain.cli.plan import fitting, show_plan
            from selftrain.method.recipes import QUICK, recipe
            from selftrain.training.budget import Budget, Pace

            loading = time.monotonic() - started
            budget = Budget(60 * (limits.minutes or inf), started)
            replaceable = limits.minutes is not None and not settings.method
            quick = recipe(QUICK, settings.preset) if replaceable else None
            with watch.busy("measuring this machine"):
                job, plan = fitting(out, job, test, machine, budget, quick=quick)
            if limits.dry_run:
                show_plan(plan, loading, budget.seconds, as_json=as_json)
                return
            by_name = f" and with --method {QUICK}" if job.method == quick else ""
            pace = Pace(plan, budget, f"the same command without --minutes{by_name} goes on")
        result = learn(out, job, test, machine, watch, pace)
    if as_json:
        show_json(result)
    elif "test" in result:
        show_evaluation(result["test"], f"{files.test}, round {result['final_round']}")


def prepare(
    files: options.DataOptions, settings: Config, watch: Watch
) -> tuple[Job, list[Labelled], Machine]:
    """Read and check everything before training: the job, the test rows, and the machine."""
    from selftrain.data.rows import Notes

    notes = Notes()
    with watch.busy("reading"):
        split, test = inputs.read_rows(files, settings, notes)
    warn(notes)
    with watch.busy("loading"):
        from selftrain.method.changes import method_of
        from selftrain.training.job import Job
        from selftrain.training.preflight import preflight

        machine = inputs.machine_of(settings, watch)
        method = method_of(settings.method, settings.preset)
        task = inputs.task_of(settings.task, split)
        job = Job(task, split, method, inputs.backbone_of(settings, method), settings.seed)
        warn(preflight(job))
    return job, test, machine


def learn(
    out: Path,
    job: Job,
    test: Sequence[Labelled],
    machine: Machine,
    watch: Watch,
    pace: Pace | None = None,
) -> dict[str, Any]:
    """Train round by round, with a line for each; estimate; score the final model on test rows.

    A pace may stop it after any round.
    """
    from selftrain.runs.estimates import estimated
    from selftrain.runs.lines import estimate_lines, line_of
    from selftrain.runs.train import train
    from selftrain.training.evaluate import evaluate, evaluation
    from selftrain.training.loop import last_accepted

    rounds, facts, stopped = [], [], ""
    with resumable(watch), closing(train(out, job, machine)) as training:
        for round_ in training:
            scores = evaluate(round_.model, job.split.dev, machine) if job.split.dev else {}
            say(line_of(round_, job.method.total_rounds, dev=scores.get("accuracy")))
            facts.append({**plain(round_), **({"dev": scores} if scores else {})})
            rounds.append(round_)
            if pace and not round_.last and (stopped := pace.why_stop(round_.number + 1)):
                say(f"{stopped}; {pace.hint}")
                training.close()  # or the run would stay locked
                break
        final = last_accepted(rounds)
        say(f"model: {out}, round {final.number}")
        estimate = estimated(out, job, rounds, machine)
    result: dict[str, Any] = {"run": str(out), "final_round": final.number, "rounds": facts}
    if stopped:
        result["stopped"] = stopped
    for line in estimate_lines(estimate, final.number, job.split.labelled):
        say(line)
    if estimate is not None:
        final.model.temperature = estimate.of(final.number).temperature
        result["estimate"] = asdict(estimate)
    if test:
        result["test"] = evaluation(final.model, test, machine)
    return result


def plain(round_: Round) -> dict[str, Any]:
    """A round as plain data, for ``--json``."""
    return {
        "number": round_.number,
        "accepted": round_.accepted,
        "why": round_.why,
        "numbers": dict(round_.numbers),
    }
