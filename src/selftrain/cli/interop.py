"""``selftrain export-labels`` and ``selftrain import``: to annotation tools and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftrain.cli import inputs, options
from selftrain.cli.bundles import with_options
from selftrain.cli.talk import Watch, say
from selftrain.data.places import Place
from selftrain.errors import ConfigError, closest
from selftrain.interop.formats import READ, TOOLS, find

if TYPE_CHECKING:
    from selftrain.data.pool import Pool
    from selftrain.data.rows import Example, Notes
    from selftrain.interop.annotations import Known

TO, FROM = (f"{', '.join(names[:-1])} or {names[-1]}." for names in (tuple(TOOLS), READ))
"""The names of the tools in a sentence."""


@with_options
def export_labels(
    *,
    run: options.RunFolder,
    to: Annotated[str, typer.Option("--to", metavar="TOOL", help=f"One of {TO}")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="OUT", help="The file; of label-studio and argilla a new folder."
        ),
    ],
    unlabelled: Annotated[
        list[Place] | None,
        typer.Option(
            "--unlabelled",
            "-u",
            parser=options.place,
            metavar="FILE",
            help="The pool of the run, given again.",
        ),
    ] = None,
    labelled: Annotated[
        Place | None,
        typer.Option(
            parser=options.place,
            metavar="FILE",
            help="The labelled texts of the run, to check them too.",
        ),
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(metavar="ROLE", help="Pool rows of this role alone: easy, hard or left."),
    ] = None,
    columns: options.RunColumns,
    reading: options.ReadingOptions,
) -> None:
    """Write the labels of a run for an annotation tool.

    selftrain export-labels run -u pool.csv --to label-studio -o to-check

    Each row of the pool has the label of the last round that judged it.
    A run holds no texts, so the files are given again.
    """
    from selftrain.data.rows import Notes
    from selftrain.interop.suggestions import ROLES, check_place, outgoing, without_texts

    tool = find(to, "--to")
    pools = unlabelled or []
    check_files(tool.title, pools, labelled, texts=tool.has_texts)
    if role is not None and role not in ROLES:
        near = closest(role, ROLES) or ROLES[0]
        raise ConfigError(f"--role is `{role}`; expected {', '.join(ROLES)}", f"--role {near}")
    if role is not None and not pools:
        raise ConfigError("--role chooses rows of the pool, and no pool is given", "-u pool.csv")
    check_place(out, tool)
    inputs.check_spared([out], run, labelled, *pools)
    inputs.check_one_stdin(labelled, *pools)
    inputs.check_format_used(reading.format, labelled, *pools)
    notes = Notes()
    with Watch() as watch, watch.busy("reading"):
        inputs.check_fits(run, ())  # first: what is no run folder is found before a long read
        if tool.has_texts:
            pool, gold = read_files(run, pools, labelled, columns, reading, notes)
            rows = outgoing(run, pool, gold, role=role, notes=notes)
        else:
            rows = without_texts(run)
        tool.write(out, rows)
    inputs.tell(notes)
    say(f"written: {out}, {len(rows.rows)} rows")


@with_options
def import_labels(
    *,
    file: Annotated[
        Path, typer.Argument(help="What the tool exported; of argilla also its folder.")
    ],
    source: Annotated[str, typer.Option("--from", metavar="TOOL", help=f"One of {FROM}")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Labelled texts for `fit`: CSV, TSV, JSONL or Parquet, by its name.",
            callback=options.target,
        ),
    ],
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", help="The run that was exported: its classes and rows are expected."
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="The classes, with commas, where there is no run."),
    ] = None,
    suggestions: Annotated[
        bool,
        typer.Option("--suggestions", help="Take the suggested label where nobody answered."),
    ] = False,
    columns: options.ColumnOptions,
) -> None:
    """Read labels from an annotation tool into a file for `fit`.

    selftrain import export.json --from label-studio --run run -o labelled.csv

    Where people disagree the most frequent label counts; ties are left out.
    Rows that are left out are counted.
    """
    from selftrain.data.rows import Notes
    from selftrain.data.write import check_format
    from selftrain.interop.annotations import labelled_rows, write

    tool = find(source, "--from")
    check_format(out)
    inputs.check_spared([out], file, run)
    if suggestions and not tool.has_suggestions:
        raise ConfigError(
            f"a file of {tool.title} does not tell suggestions from answers: all count",
            "leave out --suggestions",
        )
    notes = Notes()
    with Watch() as watch, watch.busy("reading"):
        known = known_of(run, labels)
        rows = labelled_rows(
            file, tool, columns.columns(), known, suggestions=suggestions, notes=notes
        )
        if run is not None:
            inputs.check_fits(run, [row.example for row in rows])
        write(out, rows)
    inputs.tell(notes)
    say(f"written: {out}, {len(rows)} rows")


def check_files(tool: str, pools: Sequence[Place], labelled: Place | None, *, texts: bool) -> None:
    """Raise unless the files are given that a tool's rows need."""
    if texts and not (pools or labelled):
        raise ConfigError(
            "a run holds no texts, and no file with them is given", "-u pool.csv, as for `fit`"
        )
    if not texts and (pools or labelled):
        raise ConfigError(
            f"the file for {tool} has no texts: it has the labelled rows of the run by uid",
            "leave out --unlabelled and --labelled",
        )


def read_files(
    run: Path,
    pools: Sequence[Place],
    labelled: Place | None,
    columns: options.RunColumns,
    reading: options.ReadingOptions,
    notes: Notes,
) -> tuple[Pool | None, list[Example] | None]:
    """The pool and the labelled texts of a run, where they are given."""
    from selftrain.data.read import read_labelled, read_pool

    names, how = columns.columns(), reading.reading()
    pool = read_pool(pools, names, how, notes=notes) if pools else None
    gold = None
    if labelled is not None:
        gold = [row.example for row in read_labelled(labelled, names, how, notes=notes)]
    inputs.check_fits(run, [*islice(pool or (), 1), *(gold or ())])
    return pool, gold


def known_of(run: Path | None, labels: str | None) -> Known:
    """The classes and rows that a file may have: those of a run, or the classes alone."""
    from selftrain.data.columns import clean_label
    from selftrain.interop.annotations import Known

    if run is not None and labels is not None:
        raise ConfigError("--run and --labels both name the classes", "leave one of them out")
    if run is not None:
        from selftrain.interop.suggestions import uids_of
        from selftrain.runs.read import labels_of

        return Known(labels_of(run), uids_of(run), str(run))
    names = tuple(filter(None, map(clean_label, (labels or "").split(","))))
    if labels is not None and len(names) < 2:
        raise ConfigError(f"--labels is {labels!r}; expected two classes or more", "--labels A,B")
    return Known(names)
