"""Answers for new texts, row by row in the order they came.

Each answer has the label, the probability of every class, and the certainty: how far dropout
passes agree (1: fully). A row keeps its id, or gets its number.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from selftrain.data.read import Table
from selftrain.data.split import check_kind
from selftrain.data.write import write_delimited, write_table

if TYPE_CHECKING:
    from selftrain.model.classifier import Classifier
    from selftrain.training.machine import Machine

Answer = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """What an answer should have."""

    passes: int = 10
    """Dropout passes that measure certainty."""
    texts: bool = False
    """Whether each text is repeated beside its answer."""
    abstain: float = 0.0
    """A text whose label is less probable than this gets no label."""
    excel_safe: bool = False
    """Whether cells that a spreadsheet would run as a formula get a quote in front."""


@dataclass(slots=True)
class Count:
    """How many texts were answered, and how sure the model was of the labels it gave."""

    texts: int = 0
    labelled: int = 0
    confidence: float = 0.0
    """The sum over the labels given."""

    def __str__(self) -> str:
        if not self.labelled:
            return f"none of {self.texts} texts has a label"
        return (
            f"{self.labelled} of {self.texts} texts have a label "
            f"({self.labelled / self.texts:.0%}); "
            f"about {self.confidence / self.labelled:.0%} of these should be right"
        )


def predict(
    model: Classifier,
    table: Table,
    out: str | Path | None = None,
    wanted: AnswerOptions = AnswerOptions(),
    *,
    machine: Machine,
) -> Count:
    """Write an answer for every row: CSV, TSV, JSON lines or Parquet by name, CSV to stdout.

    The file appears when it is complete. Rows are read, answered and written chunk by chunk; none
    is kept.
    """
    check_kind([*islice(table.examples, 1)], pair=model.task.pair, who="the model")
    names, count = columns(model, table, texts=wanted.texts), Count()
    rows = answers(model, table, wanted, count, machine=machine)
    if out is None:
        write_delimited(sys.stdout, names, rows, excel_safe=wanted.excel_safe)
    else:
        write_table(Path(out), names, rows, excel_safe=wanted.excel_safe)
    return count


def columns(model: Classifier, table: Table, *, texts: bool = False) -> list[str]:
    """The column names of an answer; the id comes first and keeps its column name."""
    names = ["label", *(f"p_{label}" for label in model.labels), "certainty"]
    if texts:
        names += ["text", "pair"] if model.task.pair else ["text"]
    first = table.id_column or "row"
    return ["id" if first in names else first, *names]


def answers(
    model: Classifier, table: Table, wanted: AnswerOptions, count: Count, *, machine: Machine
) -> Iterator[Answer]:
    """One answer a row, in the order of ``columns``, counted on the way.

    Of more rows than a chunk the progress is that of the whole table.
    """
    from selftrain.training.annotate import CHUNK
    from selftrain.training.machine import silent

    if table.rows is None or table.rows <= CHUNK:
        yield from answers_of(model, table, wanted, count, machine=machine)
        return
    steps = iter(machine.progress(range(table.rows), "answering texts", table.rows))
    quiet = replace(machine, progress=silent)
    for row in answers_of(model, table, wanted, count, machine=quiet):
        next(steps, None)
        yield row
    next(steps, None)  # the last step is done


def answers_of(
    model: Classifier, table: Table, wanted: AnswerOptions, count: Count, *, machine: Machine
) -> Iterator[Answer]:
    """The same with a progress for each chunk.

    Label and probabilities come from the pass without dropout, which ``evaluate`` scores. The
    dropout passes have dropout in the last layer alone: certainty from it finds about as many
    errors as from all layers, and is far cheaper (docs/performance.md). Where all layers share
    their weights, all have dropout. The certainty of a row varies a little with the rows around it,
    because dropout is drawn for a batch at a time. A model without dropout is always certain, and
    one pass is enough.
    """
    from selftrain.method.scores import certainty, tempered
    from selftrain.model.build import with_dropout_in
    from selftrain.model.surgery import dropout_rates
    from selftrain.training.annotate import CHUNK, annotate

    mc_model = with_dropout_in(model, "last")
    above = (part for part in mc_model.children() if part is not mc_model.trunk)
    passes = wanted.passes if any(any(dropout_rates(part)) for part in above) else 1
    chunks = annotate(
        mc_model,
        table.examples,
        passes,
        seed=0,
        machine=machine,
        first_chunk=table.first // CHUNK,
    )
    for examples, votes in chunks:
        calibrated = tempered(votes.plain, model.temperature, model.prior_shift)
        # A temperature changes no answer, up to rounding; other class shares do.
        best = (votes.plain if model.prior_shift is None else calibrated).argmax(1).tolist()
        certainties = certainty(votes).tolist()
        parts = zip(examples, best, calibrated.tolist(), certainties, strict=True)
        for example, c, p, row_certainty in parts:
            count.texts += 1
            label = model.labels[c] if p[c] >= wanted.abstain else ""
            if label:
                count.labelled += 1
                count.confidence += p[c]
            name = table.first + count.texts if table.id_column is None else example.uid
            numbers = (round(value, 6) for value in (*p, row_certainty))
            sides = (example.text, example.pair) if model.task.pair else (example.text,)
            yield (name, label, *numbers, *(sides if wanted.texts else ()))
