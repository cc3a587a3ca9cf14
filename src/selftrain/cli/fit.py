"""``selftrain fit``: learn a classifier from one's own files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
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
    as_json: options.Json = False,
) -> None:
    """Learn a classifier from labelled and unlabelled texts.

    selftrain fit labelled.csv --unlabelled pool.csv -o run

    Every round is on disk when its line is printed. A run that was stopped or killed resumes
    from its last finished round: give the same command again, with more rounds if you like.
    """
    from selftrain.runs.read import check_place

    settings = settings_of(method.config, files, columns, method, prompt, hardware)
    check_place(out)
    with Watch() as watch:
        job, test, machine = prepare(files, settings, watch)
        result = learn(out, job, test, machine, watch)
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
        from selftrain.training.preflight import preflight, prompt_unused

        machine = inputs.machine_of(settings, watch)
        method = method_of(settings.method, settings.preset)
        warn(prompt_unused(settings.task, method))
        task = inputs.task_of(settings.task, split)
        job = Job(task, split, method, inputs.backbone_of(settings, method), settings.seed)
        warn(preflight(job))
    return job, test, machine


def learn(
    out: Path, job: Job, test: Sequence[Labelled], machine: Machine, watch: Watch
) -> dict[str, Any]:
    """Train round by round, with a line for each; estimate; score the final model on test rows."""
    from selftrain.runs.estimates import estimated
    from selftrain.runs.lines import estimate_lines, line_of
    from selftrain.runs.train import train
    from selftrain.training.evaluate import evaluate, evaluation
    from selftrain.training.loop import last_accepted

    rounds, facts = [], []
    with resumable(watch):
        for round_ in train(out, job, machine):
            scores = evaluate(round_.model, job.split.dev, machine) if job.split.dev else {}
            say(line_of(round_, job.method.total_rounds, dev=scores.get("accuracy")))
            facts.append({**plain(round_), **({"dev": scores} if scores else {})})
            rounds.append(round_)
        final = last_accepted(rounds)
        say(f"model: {out}, round {final.number}")
        estimate = estimated(out, job, rounds, machine)
    result: dict[str, Any] = {"run": str(out), "final_round": final.number, "rounds": facts}
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
