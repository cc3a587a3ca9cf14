"""``selftrain annotate``: one part of a round's annotation, for a run of several machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from selftrain.cli import inputs, options
from selftrain.cli.again import Earlier
from selftrain.cli.bundles import with_options
from selftrain.cli.config import settings_of
from selftrain.cli.parts import numbers_of
from selftrain.cli.talk import Watch, say, warn


@with_options
def annotate(
    *,
    run: options.RunFolder,
    files: options.DataOptions,
    shard: Annotated[
        str,
        typer.Option(metavar="I/N", help="Which part of how many; the first of eight is 0/8."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="The folder that all parts share; else `parts` in the run folder.",
        ),
    ] = None,
    columns: options.RunColumns,
    reading: options.ReadingOptions,
    backbone: options.RunBackbone = None,
    hardware: options.MachineOptions,
) -> None:
    """Annotate a part of the pool for the round that a run trains next.

    selftrain annotate run labelled.csv --unlabelled pool.csv --shard 0/8 -o parts

    Give the files of the run's `selftrain fit`, on as many machines as there are parts. A part that
    is finished is not computed again. `selftrain fit … --parts parts` then trains the round.
    """
    from selftrain.runs.read import PARTS, read_manifest

    number, of = numbers_of(shard)
    earlier = Earlier(run, read_manifest(run), ())
    parts = run / PARTS if out is None else out
    start = earlier.settings(None).over({"backbone": backbone})
    settings = settings_of(None, files, columns, reading, hardware, start=start)
    with Watch() as watch:
        job, _, machine = inputs.prepare(files, settings, watch, earlier)

        from selftrain.runs.annotate import annotate_part, check_has_parts, check_same_run
        from selftrain.training.annotate import Part

        check_has_parts(job.method)
        warn(check_same_run(run, job, machine))
        with watch.busy("annotating"):
            new = annotate_part(job, run, parts, Part(number, of), machine)
    say(f"{'written' if new else 'already there'}: {parts}, part {shard}")
