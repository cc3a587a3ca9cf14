"""``selftrain audit``: how many pseudo labels of a run were right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from selftrain.cli import options
from selftrain.cli.bundles import with_options
from selftrain.cli.inputs import check_fits, check_format_used, tell
from selftrain.cli.talk import Watch, show, show_json
from selftrain.data.places import Place

if TYPE_CHECKING:
    from selftrain.runs.audit import Truth

Truths = Sequence[tuple[int, "Truth"]]
"""The numbers of rounds, and how right the pseudo labels of each were."""
Table = tuple[list[str], list[list[str]]]
NOTHING = "–"


@with_options
def audit(
    run: options.RunFolder,
    gold: Annotated[
        Place,
        typer.Argument(
            parser=options.place,
            help="Labels of the pool's texts, in a file no training has seen.",
        ),
    ],
    columns: options.ColumnOptions,
    reading: options.ReadingOptions,
    form: options.FormatOptions,
) -> None:
    """Show how many pseudo labels of each round were right.

    selftrain audit run gold.csv

    Rows are joined by id, or by their text where the pool had no ids.
    Pool rows without a gold label are counted and left out.
    """
    from selftrain.data.read import read_labelled
    from selftrain.data.rows import Notes

    check_format_used(reading.format, gold)
    notes = Notes()
    with Watch() as watch:
        with watch.busy("reading"):
            check_fits(run, ())  # first: what is no run folder is found before a long file is read
            rows = read_labelled(gold, columns.columns(), reading.reading(), notes=notes)
            check_fits(run, [row.example for row in rows])
        with watch.busy("comparing"):
            from selftrain.runs.audit import by_round, gold_labels, plain

            labels = gold_labels(rows, notes=notes)
            del rows  # a lesson can be long; the labels are enough
            tell(notes)
            truths = by_round(run, labels)
    tables = (round_rows(truths), class_rows(truths))
    if form.as_json:
        show_json([plain(number, truth) for number, truth in truths])
    elif form.as_markdown:
        from selftrain.experiments.tables.sheet import markdown_table

        print(*(markdown_table(*each) for each in tables), sep="\n\n")
    else:
        for head, rows_shown in tables:
            show(head, rows_shown, numeric=True)


def round_rows(truths: Truths) -> Table:
    """A head and one line for each round: accuracies and the effective size in percent."""
    areas = ("confidence", "certainty", "weight")
    head = ["round", "judged", "gold", "all", "easy", "hard", "left", "effective", "ECE"]
    rows = []
    for number, truth in truths:
        parts = (truth.parts[name] for name in ("all", "easy", "hard", "left"))
        rows.append(
            [
                *map(str, (number, truth.judged, truth.rows)),
                *(percent(part.accuracy) for part in parts),
                percent(truth.effective_share),
                share(truth.calibration_error),
                *(share(truth.areas[name]) for name in areas),
            ]
        )
    return [*head, *(f"area of {name}" for name in areas)], rows


def class_rows(truths: Truths) -> Table:
    """A head and one line for each class and round: everything in percent."""
    head = "class|round|prior|pseudo|easy|accuracy|precision|easy accuracy|easy precision"
    rows = []
    for number, truth in truths:
        every, easy = truth.parts["all"], truth.parts["easy"]
        prior, pseudo, picked = every.prior, every.histogram, easy.histogram
        for label in every.classes:
            both = (every.classes[label], easy.classes[label])
            scores = (score for each in both for score in (each.accuracy, each.precision))
            shares = (prior[label], pseudo[label], picked[label], *scores)
            rows.append([label, str(number), *map(percent, shares)])
    return head.split("|"), sorted(rows, key=lambda row: row[0])  # rounds stay in order


def percent(value: float | None) -> str:
    """A share as people read it, or a dash.

    >>> percent(0.8517), percent(None)
    ('85.2', '–')
    """
    return NOTHING if value is None else f"{100 * value:.1f}"


def share(value: float | None) -> str:
    """A share as it is, or a dash.

    >>> share(0.8517), share(None)
    ('0.852', '–')
    """
    return NOTHING if value is None else f"{value:.3f}"
