"""``selftrain audit``: how right the pseudo labels of a run were."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftrain.cli import options
from selftrain.cli.answer import check_fits
from selftrain.cli.talk import Watch, show, show_json, warn

if TYPE_CHECKING:
    from selftrain.runs.audit import Truth

Told = Sequence[tuple[int, "Truth"]]
Table = tuple[list[str], list[list[str]]]
NOTHING = "–"


def audit(
    run: options.RunFolder,
    gold: Annotated[
        Path,
        typer.Argument(help="Labels of the pool's texts, in a file no training has seen."),
    ],
    text: options.TextColumn = None,
    pair: options.PairColumn = None,
    label: options.LabelColumn = None,
    id_: options.IdColumn = None,
    as_json: options.Json = False,
    as_markdown: options.Markdown = False,
) -> None:
    """Tell how right the pseudo labels of each round were.

    selftrain audit run gold.csv

    Rows are joined by id, or by their text where the pool had no ids.
    Pool rows without a gold label are counted and left out.
    """
    from selftrain.data.read import Columns, read_labelled
    from selftrain.data.rows import Notes

    options.check_one(as_json, as_markdown)
    notes = Notes()
    with Watch() as watch:
        with watch.busy("reading"):
            check_fits(run, ())  # first: what is no run folder is found before a long file is read
            columns = Columns(text=text, pair=pair, label=label, id=id_)
            rows = read_labelled(gold, columns, notes=notes)
            check_fits(run, [row.example for row in rows])
        with watch.busy("comparing"):
            from selftrain.runs.audit import by_round, gold_labels, plain

            labels = gold_labels(rows, notes=notes)
            del rows  # their texts: a lesson can be long, and the names are enough
            warn(notes)
            told = by_round(run, labels)
    if as_json:
        show_json([plain(number, found) for number, found in told])
    elif as_markdown:
        from selftrain.experiments.tables.sheet import markdown_table

        tables = (markdown_table(*each) for each in (round_rows(told), class_rows(told)))
        print(*tables, sep="\n\n")
    else:
        for head, body in (round_rows(told), class_rows(told)):
            show(head, body, figures=True)


def round_rows(told: Told) -> Table:
    """A head and one line for each round: accuracies and the effective size in percent."""
    areas = ("confidence", "certainty", "weight")
    head = ["round", "judged", "gold", "all", "easy", "hard", "left", "effective", "ECE"]
    rows = []
    for number, found in told:
        parts = (found.parts[name] for name in ("all", "easy", "hard", "left"))
        rows.append(
            [
                *map(str, (number, found.audit_line, found.rows)),
                *(percent(part.accuracy) for part in parts),
                percent(found.effective_share),
                share(found.calibration_error),
                *(share(found.areas[name]) for name in areas),
            ]
        )
    return [*head, *(f"area of {name}" for name in areas)], rows


def class_rows(told: Told) -> Table:
    """A head and one line for each class and round: everything in percent."""
    head = "class|round|prior|pseudo|easy|accuracy|precision|easy accuracy|easy precision"
    rows = []
    for number, found in told:
        every, easy = found.parts["all"], found.parts["easy"]
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
