"""``selftrain report``: the page of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftrain.cli import inputs, options
from selftrain.cli.bundles import with_options
from selftrain.cli.config import settings_of
from selftrain.cli.talk import Watch, say, warn
from selftrain.data.places import Place
from selftrain.errors import ConfigError

if TYPE_CHECKING:
    from selftrain.report.points import Given


@with_options
def report(
    *,
    run: options.RunFolder,
    unlabelled: Annotated[
        list[Place] | None,
        typer.Option(
            "--unlabelled",
            "-u",
            parser=options.place,
            metavar="FILE",
            help="The pool of the run, for the map and the table of texts; may be repeated.",
        ),
    ] = None,
    labelled: Annotated[
        Place | None,
        typer.Option(
            parser=options.place,
            metavar="FILE",
            help="The labelled file of the run, to show its texts too.",
        ),
    ] = None,
    no_texts: Annotated[
        bool, typer.Option("--no-texts", help="Show no text: a page to share.")
    ] = False,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The page to write; its numbers go beside it, as .json.",
            callback=options.target,
        ),
    ] = Path("report.html"),
    columns: options.RunColumns,
    reading: options.ReadingOptions,
    backbone: options.RunBackbone = None,
    hardware: options.DeviceOptions,
) -> None:
    """Write one page about a run: how good it probably is, what it learnt from, where it errs.

    selftrain report run --unlabelled pool.csv --labelled labelled.csv

    The page is one file that needs no network. A run folder holds no texts: give the files of the
    run again to see them. `fit` writes the same page without texts into the run folder.
    """
    pools = unlabelled or []
    check_place(run, out, [*pools, labelled])
    with Watch() as watch:
        with watch.busy("reading"):
            from selftrain.runs.saved import read_run

            saved = read_run(run)
            given = read_files(run, pools, labelled, columns, reading)
        with watch.busy("drawing"):
            from selftrain.report.page import draw

            machine = inputs.machine_of(settings_of(None, hardware), watch)
            given = replace(given, texts=not no_texts)
            page = draw(saved, given, backbone=backbone, machine=machine)
        page.save(out)
    warn(page.warnings)
    texts = "with texts" if given.texts and (pools or labelled) else "without texts"
    say(f"written: {out}, {texts}, and {out.with_suffix('.json')}")


def check_place(run: Path, out: Path, files: Sequence[Place | None]) -> None:
    """Raise where the page would be written over a file that is read, or into the run."""
    from selftrain.runs.read import belongs_to, read_manifest

    read_manifest(run)  # first: what is no run folder is found before anything else
    if out.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"{out} ends in `{out.suffix}`; expected .html", "-o report.html")
    numbers = out.with_suffix(".json")
    options.target(numbers)
    for path in (out, numbers):
        if belongs_to(run, path):
            raise ConfigError(
                f"{path} belongs to the run: only `selftrain fit` writes there, without texts",
                "choose another place: -o ../report.html",
            )
    inputs.check_spared([out, numbers], *files)


def read_files(
    run: Path,
    unlabelled: Sequence[Place],
    labelled: Place | None,
    columns: options.RunColumns,
    reading: options.ReadingOptions,
) -> Given:
    """The files of the run, given again."""
    from selftrain.data.read import read_labelled, read_pool
    from selftrain.data.rows import Notes
    from selftrain.report.points import Given

    inputs.check_one_stdin(*unlabelled, labelled)
    inputs.check_format_used(reading.format, *unlabelled, labelled)
    names, how, notes = columns.columns(), reading.reading(), Notes()
    pool = read_pool(unlabelled, names, how, notes=notes) if unlabelled else None
    gold = read_labelled(labelled, names, how, notes=notes) if labelled else []
    inputs.check_fits(run, list(islice(pool or (), 1)))
    inputs.check_fits(run, [row.example for row in gold])
    inputs.tell(notes)
    return Given(pool, ", ".join(map(str, unlabelled)), gold)
