"""``selftrain review``: a local page to check pseudo labels and to label what is most worth it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftrain.cli import inputs, options
from selftrain.cli.bundles import with_options
from selftrain.cli.talk import Watch, say, warn
from selftrain.data.places import Place
from selftrain.errors import ConfigError, require

if TYPE_CHECKING:
    from selftrain.data.rows import Labelled, Notes
    from selftrain.review.near import Read
    from selftrain.review.rows import Rows
    from selftrain.runs.corrections import Journal


@with_options
def review(
    *,
    run: options.RunFolder,
    unlabelled: Annotated[
        list[Place] | None,
        typer.Option(
            "--unlabelled",
            "-u",
            parser=options.place,
            metavar="FILE",
            help="The texts of the run's pool: its folder has none; may be repeated.",
        ),
    ] = None,
    labelled: Annotated[
        Place | None,
        typer.Option(
            parser=options.place,
            metavar="FILE",
            help="The labelled texts of the run: shows those most like the open row.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    corrections: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Where verdicts are written; one that exists is continued.",
            callback=options.target,
        ),
    ] = Path("corrections.jsonl"),
    port: Annotated[
        int, typer.Option(metavar="N", help="A port of this machine; 0: any that is free.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, open nothing.")
    ] = False,
    columns: options.RunColumns,
    reading: options.ReadingOptions,
    backbone: options.RunBackbone = None,
) -> None:
    """Check pseudo labels on a local page, and label the texts that are most worth it.

    selftrain review run --unlabelled pool.csv --labelled labelled.csv

    Every verdict is on disk before the page shows it; nothing of the run changes.
    Ctrl-C ends it; `selftrain fit --from run` learns from the verdicts.
    """
    from selftrain.data.rows import Notes
    from selftrain.review.serve import check_installed, listen, opened_browser, serve

    require(0 <= port < 65_536, "--port", port, "from 0 to 65535", "leave --port out")
    if not unlabelled:
        raise ConfigError(
            "no texts are given: a run folder has none",
            f"selftrain review {run} --unlabelled pool.csv",
        )
    check_installed()

    from selftrain.review.app import app_of
    from selftrain.review.door import Keys
    from selftrain.review.near import Neighbours
    from selftrain.review.session import Session
    from selftrain.runs.corrections import Journal, repeated
    from selftrain.runs.read import read_manifest

    inputs.check_spared([corrections], *unlabelled, labelled, run)
    notes = Notes()
    with Watch() as watch:
        with watch.busy("reading"):
            inputs.check_fits(run, ())  # what is no run folder is found before a long read
            rows, gold = read(run, (unlabelled, labelled), columns, reading, notes)
        inputs.tell(notes)
        warn(rows.warnings)
        with watch.busy("ordering"):
            from selftrain.review.worth import most_worth

            worth = most_worth(rows.rows, rows.labels)
    with listen(port) as listening, closing(Journal(corrections, read_manifest(run), run)) as file:
        if more := repeated(file.corrections):
            say(more)
        session = Session(rows, worth, file, read_manifest(run).digest())
        with closing(Neighbours(gold, partial(vectors_by, run, backbone))) as neighbours:
            keys = Keys(listening.getsockname()[1])
            say(f"review: {keys.url}")
            say("Ctrl-C ends it")
            with nullcontext(True) if no_browser else opened_browser(keys.url) as fine:
                if not fine:
                    say("no browser was found: open the address above in one on this machine")
                serve(app_of(session, neighbours, run.name, keys), listening)
    conclude(run, unlabelled, labelled, file)


def read(
    run: Path,
    files: tuple[list[Place], Place | None],
    columns: options.RunColumns,
    reading: options.ReadingOptions,
    notes: Notes,
) -> tuple[Rows, list[Labelled]]:
    """The rows of a run with their texts, and its labelled texts if they are given."""
    from selftrain.data.read import read_labelled, read_pool
    from selftrain.review.rows import read_rows

    unlabelled, labelled = files
    every = (*unlabelled, labelled)
    inputs.check_one_stdin(*every)
    inputs.check_format_used(reading.format, *every)
    names, how = columns.columns(), reading.reading()
    pool = read_pool(unlabelled, names, how, notes=notes)
    gold = read_labelled(labelled, names, how, notes=notes) if labelled else []
    inputs.check_fits(run, [row.example for row in gold])
    return read_rows(run, pool, ", ".join(map(str, unlabelled))), gold


def vectors_by(run: Path, backbone: str | None) -> Read:
    """How the model of a run reads texts; loading it takes seconds."""
    from selftrain.runs.read import load

    model = load(run, backbone=backbone)
    return lambda examples: model.read(examples).features


def conclude(run: Path, unlabelled: Sequence[Place], labelled: Place | None, file: Journal) -> None:
    """Say what was written, and how it is learnt from."""
    from selftrain.runs.corrections import counts, standing

    verdicts = standing(file.corrections)
    if verdicts:
        pool = " ".join(f"--unlabelled {shlex.quote(str(path))}" for path in unlabelled)
        gold = shlex.quote(str(labelled or "labelled.csv"))
        say(f"written: {file.path}, {counts(verdicts.values())}")
        say(
            f"to learn from it: selftrain fit --from {shlex.quote(str(run))} --labelled {gold} "
            f"{pool} --corrections {shlex.quote(str(file.path))} -o NEW"
        )
