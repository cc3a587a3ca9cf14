"""Answers for new texts, row by row in the order they came.

Each has the label, the probability of every class, and the certainty: how far dropout passes
agree (1: fully). A row is found again by its id, or else by its number; its text is repeated
only when asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from selftrain.data.read import Table
from selftrain.data.split import check_kind
from selftrain.data.write import write_delimited, write_table

if TYPE_CHECKING:
    from selftrain.model.classifier import Classifier
    from selftrain.training.machine import Machine

Answer = tuple[object, ...]


def predict(
    model: Classifier,
    table: Table,
    out: str | Path | None = None,
    *,
    passes: int = 10,
    machine: Machine,
    texts: bool = False,
) -> None:
    """Write an answer for every row: CSV, TSV, JSON lines or Parquet by name, CSV to stdout.

    The file appears when it is whole. ``texts`` repeats each text beside its answer.
    """
    check_kind(table.examples, pair=model.task.pair, who="the model")
    names = columns(model, table, texts=texts)
    rows = answers(model, table, passes=passes, machine=machine, texts=texts)
    if out is None:
        write_delimited(sys.stdout, names, rows)
    else:
        write_table(Path(out), names, rows)


def columns(model: Classifier, table: Table, *, texts: bool = False) -> list[str]:
    """The names of an answer's parts, the id's first, which keeps the name it came with."""
    ours = ["label", *(f"p_{label}" for label in model.labels), "certainty"]
    if texts:
        ours += ["text", "pair"] if model.task.pair else ["text"]
    first = table.id_column or "row"
    return ["id" if first in ours else first, *ours]


def answers(
    model: Classifier, table: Table, *, passes: int, machine: Machine, texts: bool = False
) -> Iterator[Answer]:
    """One answer a row, in the order of ``columns``.

    Label and probabilities come from the pass without dropout, the one ``evaluate`` scores. The
    others differ in the last layer alone, which was about as telling as all of them and far cheaper
    (docs/performance.md); where all layers are one, they differ in all. The certainty of a row
    varies a little with the rows around it, because dropout is drawn for a batch at a time. A model
    without dropout is always certain, and one pass is enough.
    """
    from selftrain.method.scores import certainty
    from selftrain.model.build import with_dropout_in
    from selftrain.model.surgery import dropout_rates
    from selftrain.training.annotate import annotate

    number = 0
    mc_model = with_dropout_in(model, "last")
    above = (part for part in mc_model.children() if part is not mc_model.trunk)
    passes = passes if any(any(dropout_rates(part)) for part in above) else 1
    for examples, votes in annotate(mc_model, table.examples, passes, seed=0, machine=machine):
        best = votes.plain.argmax(1).tolist()
        parts = zip(examples, best, votes.plain.tolist(), certainty(votes).tolist(), strict=True)
        for example, c, p, certain in parts:
            number += 1
            name = number if table.id_column is None else example.uid
            numbers = (round(value, 6) for value in (*p, certain))
            sides = (example.text, example.pair) if model.task.pair else (example.text,)
            yield (name, model.labels[c], *numbers, *(sides if texts else ()))
