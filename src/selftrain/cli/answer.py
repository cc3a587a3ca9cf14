"""``selftrain predict`` and ``selftrain evaluate``: a run's answers, and how good they are."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftrain.cli import options
from selftrain.cli.talk import Watch, json_of, show_json, show_scores, warn
from selftrain.errors import ConfigError, require

if TYPE_CHECKING:
    from selftrain.data.rows import Example
    from selftrain.model.classifier import Classifier
    from selftrain.training.machine import Machine


Round = Annotated[
    int | None,
    typer.Option("--round", metavar="N", help="Of this round (0: the teacher); else the kept one."),
]


def predict(
    run: options.RunFolder,
    texts: Annotated[Path, typer.Argument(help="Texts to label: CSV, TSV, JSONL or Parquet.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="CSV, TSV, JSONL or Parquet, by its name; without it CSV on stdout.",
        ),
    ] = None,
    passes: Annotated[
        int, typer.Option(metavar="T", help="Dropout passes (last layer) that measure certainty.")
    ] = 10,
    with_text: Annotated[
        bool, typer.Option("--with-text", help="Repeat each text beside its answer.")
    ] = False,
    text: options.TextColumn = None,
    pair: options.PairColumn = None,
    id_: options.IdColumn = None,
    round_: Round = None,
    backbone: options.GivenBackbone = None,
    device: options.Device = None,
    threads: options.Threads = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON lines instead of CSV.")
    ] = False,
) -> None:
    """Label new texts: label, probability of each class, certainty.

    selftrain predict run new.csv -o answers.csv

    There is one answer for each row, in order.
    Certainty is 1 where dropout passes fully agree.
    """
    from selftrain.data.read import Columns, read_texts
    from selftrain.data.rows import Notes

    require(passes >= 1, "--passes", passes, "1 or more", "--passes 10")
    if as_json and out is not None:
        raise ConfigError("--json prints, and -o writes a file", "-o answers.jsonl")
    notes = Notes()
    # Rows that run down a terminal are their own sign of life; a bar would be torn by them.
    with Watch(quiet=out is None and sys.stdout.isatty()) as watch:
        with watch.busy("reading"):
            table = read_texts(texts, Columns(text=text, pair=pair, id=id_), notes=notes)
            check_fits(run, table.examples)
        warn(notes)
        model, machine = loaded(run, round_, table.examples, watch, backbone, device, threads)

        from selftrain.runs.predict import answers, columns
        from selftrain.runs.predict import predict as write

        if as_json:
            names = columns(model, table, texts=with_text)
            for row in answers(model, table, passes=passes, machine=machine, texts=with_text):
                print(json_of(dict(zip(names, row, strict=True))))
        else:
            write(model, table, out, passes=passes, machine=machine, texts=with_text)


def evaluate(
    run: options.RunFolder,
    test: Annotated[Path, typer.Argument(help="Labelled texts the model has never seen.")],
    text: options.TextColumn = None,
    pair: options.PairColumn = None,
    label: options.LabelColumn = None,
    id_: options.IdColumn = None,
    round_: Round = None,
    backbone: options.GivenBackbone = None,
    device: options.Device = None,
    threads: options.Threads = None,
    as_json: options.Json = False,
) -> None:
    """Score a run on labelled texts: accuracy, F1, calibration.

    selftrain evaluate run test.csv
    """
    from selftrain.data.read import Columns, read_labelled
    from selftrain.data.rows import Notes

    notes = Notes()
    with Watch() as watch:
        with watch.busy("reading"):
            columns = Columns(text=text, pair=pair, label=label, id=id_)
            rows = read_labelled(test, columns, notes=notes)
            examples = [row.example for row in rows]
            check_fits(run, examples)
        warn(notes)
        model, machine = loaded(run, round_, examples, watch, backbone, device, threads)

        from selftrain.training.evaluate import evaluate as score

        scores = score(model, rows, machine)
    if as_json:
        show_json(scores)
    else:
        show_scores(scores, str(test))


def check_fits(run: Path, examples: Sequence[Example]) -> None:
    """Raise where a run was trained on pairs and the rows are single texts, or the reverse."""
    from selftrain.data.split import check_kind
    from selftrain.runs.read import read_manifest

    check_kind(examples, pair=bool(read_manifest(run).task.get("pair")), who=str(run))


def loaded(
    run: Path,
    number: int | None,
    examples: Sequence[Example],
    watch: Watch,
    backbone: str | None,
    device: str | None,
    threads: int | None,
) -> tuple[Classifier, Machine]:
    """The model of a round, on the machine that is to answer; says how many texts it will cut."""
    with watch.busy("loading"):
        from selftrain.runs.read import load

        model = load(run, number, backbone=backbone)  # first: damage ends it before torch comes

        from selftrain.training.machine import Machine
        from selftrain.training.preflight import texts_cut

        machine = Machine(device=device, threads=threads, progress=watch.progress)
        warn(texts_cut(model, examples))
        return model.to(machine.accelerator().device), machine
