"""``selftrain predict`` and ``selftrain evaluate``: a run's answers, and how good they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftrain.cli import inputs, options
from selftrain.cli.bundles import with_options
from selftrain.cli.parts import answers_target, is_folder, numbers_of
from selftrain.cli.talk import Watch, json_of, say, show_evaluation, show_json
from selftrain.data.places import Place
from selftrain.errors import ConfigError, require

if TYPE_CHECKING:
    from selftrain.data.read import Columns, Reading
    from selftrain.data.rows import Example
    from selftrain.model.classifier import Classifier
    from selftrain.runs.answer_folder import Shard
    from selftrain.runs.predict import AnswerOptions, Count
    from selftrain.training.machine import Machine

    Load = Callable[[Iterable[Example], Watch], tuple[Classifier, Machine]]
    """Loads the model that answers, and warns of texts that it reads badly."""


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
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="CSV, TSV, JSONL or Parquet, by its name; with / at its end a folder of Parquet "
            "parts; without it CSV on stdout.",
            callback=answers_target,
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Write the parts of process I of N, from 0 to N - 1, into a folder they share.",
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
    Into a folder, `-o answers/`, a killed command goes on after its finished parts.
    """
    from selftrain.runs.predict import AnswerOptions

    require(passes >= 1, "--passes", passes, "1 or more", "--passes 10")
    require(0 <= abstain <= 1, "--abstain", abstain, "a probability from 0 to 1", "--abstain 0.8")
    if as_json and (out is not None or excel_safe):
        raise ConfigError("--json prints JSON lines, and no file or CSV", "-o answers.jsonl")
    in_parts = is_folder(out)
    own_parts = shard_of(shard, folder=in_parts)
    check_prior(prior, raw=raw)
    inputs.check_format_used(reading.format, texts)
    asked = Asked(
        run,
        texts,
        None if out is None else Path(out),
        columns.columns(),
        reading.reading(),
        AnswerOptions(passes, with_text, abstain, excel_safe),
    )
    asked.check_target(in_parts=in_parts)

    def load(examples: Iterable[Example], watch: Watch) -> tuple[Classifier, Machine]:
        model, machine = inputs.load_model(run, round_, backbone, hardware, examples, watch)
        set_probabilities(model, run, round_, prior, raw=raw)
        return model, machine

    if in_parts:
        probabilities = {"raw": raw, "prior": prior, "round": round_}
        count, calibrated = answer_in_parts(asked, own_parts, probabilities, load)
    else:
        count, calibrated = answer_at_once(asked, load, as_json=as_json)
    if abstain:
        say(str(count))
        if count.labelled and not calibrated:
            say("these probabilities are not calibrated: more or fewer labels may be right")


def shard_of(text: str | None, *, folder: bool) -> Shard:
    """The shard that ``--shard`` names; the only one if it is not given."""
    from selftrain.runs.answer_folder import Shard

    if text is None:
        return Shard()
    numbers = numbers_of(text)
    if not folder:
        raise ConfigError(
            "--shard writes its parts into a folder that all shards share", "-o answers/"
        )
    return Shard(*numbers)


@dataclass(frozen=True, slots=True)
class Asked:
    """What ``predict`` reads and writes, and what an answer should have."""

    run: Path
    texts: Place
    out: Path | None
    columns: Columns
    reading: Reading
    wanted: AnswerOptions

    def settings(self) -> dict[str, object]:
        """What changes an answer, or which rows are read."""
        form = {"format": self.reading.format}
        return {**asdict(self.wanted), **asdict(self.columns), **form}

    def check_target(self, *, in_parts: bool) -> None:
        """Raise where the answers could not be written, or would destroy what is read."""
        from selftrain.data.write import check_format
        from selftrain.runs.answer_folder import part_path

        if self.out is not None:
            file = part_path(self.out, 0) if in_parts else self.out
            check_format(file, excel_safe=self.wanted.excel_safe)
            inputs.check_spared([self.out], self.texts, self.run)


def answer_at_once(asked: Asked, load: Load, *, as_json: bool) -> tuple[Count, bool]:
    """Write answers to one file or to stdout; the count, and whether they are calibrated."""
    from selftrain.data.read import read_texts
    from selftrain.data.rows import Notes

    notes, out = Notes(), asked.out
    # Rows that run down a terminal are their own sign of life; a bar would be torn by them.
    with Watch(quiet=out is None and sys.stdout.isatty()) as watch:
        with watch.busy("reading"):
            inputs.check_fits(asked.run, ())  # what is no run is found before a long read
            table = read_texts(asked.texts, asked.columns, asked.reading, notes=notes)
            inputs.check_fits(asked.run, list(islice(table.examples, 1)))
        inputs.tell(notes)
        model, machine = load(table.examples, watch)

        from selftrain.runs.predict import Count, answers
        from selftrain.runs.predict import columns as names_of
        from selftrain.runs.predict import predict as write

        count = Count()
        if as_json:
            names = names_of(model, table, texts=asked.wanted.texts)
            for row in answers(model, table, asked.wanted, count, machine=machine):
                print(json_of(dict(zip(names, row, strict=True))))
        else:
            count = write(model, table, out, asked.wanted, machine=machine)
    if out is not None:
        say(f"written: {out}, {count.texts} rows")
    return count, model.temperature != 1


def answer_in_parts(
    asked: Asked, shard: Shard, probabilities: Mapping[str, object], load: Load
) -> tuple[Count, bool]:
    """Write the parts of a shard that a folder lacks; the count of all parts that are finished."""
    from selftrain.data.rows import Notes
    from selftrain.runs import answer_folder as parts
    from selftrain.runs.text_files import TextFiles

    notes, folder = Notes(), asked.out
    assert folder is not None
    with Watch() as watch:
        with watch.busy("reading"):
            inputs.check_fits(asked.run, ())
            source = TextFiles.of(asked.texts, asked.reading.format)
            settings = {**asked.settings(), **probabilities}
            order = parts.Order(folder, source, settings, shard)
            texts = order.open(asked.columns, asked.reading, notes)
            inputs.check_fits(asked.run, list(islice(texts, 1)))
        inputs.tell(notes)

        from selftrain.training.preflight import FIRST_TEXTS

        model, machine = load(list(islice(texts, FIRST_TEXTS)), watch)
        try:
            total = parts.write_parts(model, texts, order, asked.wanted, machine=machine)
        except KeyboardInterrupt:
            say("the same command goes on after the finished parts")
            raise
    done = parts.finished(folder)
    count = parts.counted(done.values())
    say(
        f"written: {folder}, {count.texts} rows in {total} part{'s' * (total != 1)}"
        if len(done) == total
        else f"{folder} has {len(done)} of {total} parts, {count.texts} rows"
    )
    return count, model.temperature != 1


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
