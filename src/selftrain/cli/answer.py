"""``selftrain predict`` and ``selftrain evaluate``: a run's answers, and how good they are."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftrain.cli import inputs, options
from selftrain.cli.bundles import with_options
from selftrain.cli.talk import Watch, json_of, say, show_evaluation, show_json
from selftrain.data.places import Place
from selftrain.errors import ConfigError, require

if TYPE_CHECKING:
    from selftrain.model.classifier import Classifier


@with_options
def predict(
    *,
    run: options.RunFolder,
    texts: Annotated[
        Place,
        typer.Argument(
            parser=options.place,
            help="Texts to label: CSV, TSV, JSON, Parquet or Excel, a folder of them, a glob or an "
            "address (s3://…); - is stdin.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="CSV, TSV, JSONL or Parquet, by its name; without it CSV on stdout.",
            callback=options.target,
        ),
    ] = None,
    passes: Annotated[
        int, typer.Option(metavar="T", help="Dropout passes (last layer) that measure certainty.")
    ] = 10,
    with_text: Annotated[
        bool, typer.Option("--with-text", help="Repeat each text beside its answer.")
    ] = False,
    abstain: Annotated[
        float,
        typer.Option(metavar="P", help="Give no label to a text whose label is less probable."),
    ] = 0.0,
    excel_safe: options.ExcelSafe = False,
    raw: options.Raw = False,
    prior: options.Prior = "model",
    columns: options.TextColumns,
    reading: options.InputFormat,
    round_: options.RoundNumber = None,
    backbone: options.RunBackbone = None,
    hardware: options.DeviceOptions,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON lines instead of CSV.")
    ] = False,
) -> None:
    """Label new texts: label, probability of each class, certainty.

    selftrain predict run new.csv -o answers.csv

    There is one answer for each row, in order.
    Certainty is 1 where dropout passes fully agree.
    """
    from selftrain.data.read import read_texts
    from selftrain.data.rows import Notes
    from selftrain.data.write import check_format

    require(passes >= 1, "--passes", passes, "1 or more", "--passes 10")
    require(0 <= abstain <= 1, "--abstain", abstain, "a probability from 0 to 1", "--abstain 0.8")
    if as_json and (out is not None or excel_safe):
        raise ConfigError("--json prints JSON lines, and no file or CSV", "-o answers.jsonl")
    if out is not None:
        check_format(out, excel_safe=excel_safe)
        inputs.check_spared([out], texts, run)
    check_prior(prior, raw=raw)
    inputs.check_format_used(reading.format, texts)
    notes = Notes()
    # Rows that run down a terminal are their own sign of life; a bar would be torn by them.
    with Watch(quiet=out is None and sys.stdout.isatty()) as watch:
        with watch.busy("reading"):
            inputs.check_fits(run, ())  # first: what is no run folder is found before a long read
            table = read_texts(texts, columns.columns(), reading.reading(), notes=notes)
            inputs.check_fits(run, table.examples)
        inputs.tell(notes)
        model, machine = inputs.load_model(run, round_, backbone, hardware, table.examples, watch)
        set_probabilities(model, run, round_, prior, raw=raw)

        from selftrain.runs.predict import AnswerOptions, Count, answers
        from selftrain.runs.predict import columns as names_of
        from selftrain.runs.predict import predict as write

        wanted, count = AnswerOptions(passes, with_text, abstain, excel_safe), Count()
        if as_json:
            names = names_of(model, table, texts=with_text)
            for row in answers(model, table, wanted, count, machine=machine):
                print(json_of(dict(zip(names, row, strict=True))))
        else:
            count = write(model, table, out, wanted, machine=machine)
    if out is not None:
        say(f"written: {out}, {count.texts} rows")
    if abstain:
        say(str(count))
        if count.labelled and model.temperature == 1:
            say("these probabilities are not calibrated: more or fewer labels may be right")


@with_options
def evaluate(
    *,
    run: options.RunFolder,
    test: Annotated[
        Place,
        typer.Argument(parser=options.place, help="Labelled texts the model has never seen."),
    ],
    columns: options.ColumnOptions,
    reading: options.ReadingOptions,
    raw: options.Raw = False,
    prior: options.Prior = "model",
    round_: options.RoundNumber = None,
    backbone: options.RunBackbone = None,
    hardware: options.DeviceOptions,
    as_json: options.Json = False,
) -> None:
    """Score a run on labelled texts: accuracy, F1, calibration, and where it errs.

    selftrain evaluate run test.csv
    """
    from selftrain.data.read import read_labelled
    from selftrain.data.rows import Notes

    check_prior(prior, raw=raw)
    inputs.check_format_used(reading.format, test)
    notes = Notes()
    with Watch() as watch:
        with watch.busy("reading"):
            inputs.check_fits(run, ())
            rows = read_labelled(test, columns.columns(), reading.reading(), notes=notes)
            examples = [row.example for row in rows]
            inputs.check_fits(run, examples)
        inputs.tell(notes)
        model, machine = inputs.load_model(run, round_, backbone, hardware, examples, watch)
        set_probabilities(model, run, round_, prior, raw=raw)

        from selftrain.runs.estimates import round_estimate
        from selftrain.training.evaluate import evaluation

        result = evaluation(model, rows, machine)
        estimate = round_estimate(run, round_)
    if estimate is not None and model.prior_shift is None:  # it is one of the model's own answers
        result["expected"] = asdict(estimate.expected)
    if as_json:
        show_json(result)
    else:
        show_evaluation(result, str(test))


def check_prior(prior: str, *, raw: bool) -> None:
    """Raise where bare probabilities should be corrected: it takes calibrated ones."""
    if raw and prior != "model":
        raise ConfigError(
            "--prior corrects calibrated probabilities, --raw asks for bare ones",
            f"leave out --raw: --prior {prior}",
        )


def set_probabilities(
    model: Classifier, run: Path, number: int | None, prior: str, *, raw: bool
) -> None:
    """Let a loaded model give bare probabilities, or answer for other class shares."""
    if raw:
        model.temperature = 1.0
    if prior != "model":
        from selftrain.runs.prior import shares

        found = shares(run, number, model.labels, prior)
        found.apply_to(model)
        say(str(found))
