"""The command line: words and exit codes only.

stdout carries data, stderr talk. Heavy rooms are imported inside the commands, so that help is
instant and a bad path or column is reported before torch is loaded.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console

from selftrain.errors import ConfigError, SelftrainError

if TYPE_CHECKING:
    from rich.table import Table

    from selftrain.backbone import Backbone
    from selftrain.data import Columns, Labeled, Notes, Split
    from selftrain.machine import Machine
    from selftrain.method import Method
    from selftrain.task import Task

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="A strong, trustworthy text classifier from a few labels and many unlabelled texts.",
)
talk = Console(stderr=True, highlight=False, soft_wrap=True)

Seed = Annotated[int, typer.Option(help="Everything random follows from it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Device = Annotated[
    str | None, typer.Option(help="cpu, cuda or mps; chosen by accelerate when left out.")
]
Threads = Annotated[int | None, typer.Option(help="CPU threads of torch.", min=1)]
TextColumn = Annotated[str | None, typer.Option("--text", help="Column of the text.")]
PairColumn = Annotated[str | None, typer.Option("--pair", help="Column of the second text.")]
LabelColumn = Annotated[str | None, typer.Option("--label", help="Column of the label.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column that names each row.")]
RunFolder = Annotated[Path, typer.Argument(help="A run folder, as `selftrain fit` writes it.")]


def main() -> NoReturn:
    """Run the command; our own errors become one line and a hint, and exit code 1."""
    try:
        app()
    except SelftrainError as error:
        fail(error)
    except KeyboardInterrupt:
        talk.print("stopped; the same command goes on from the last whole round")
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    sys.exit(0)


def fail(error: SelftrainError) -> NoReturn:
    """Print what went wrong and what to try."""
    talk.print(f"error: {error.message}", markup=False)
    if error.hint:
        talk.print(f"\nhint: {error.hint}", markup=False)
    sys.exit(1)


@app.callback(invoke_without_command=True)
def top(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """A strong, trustworthy text classifier from a few labels and many unlabelled texts."""
    if version:
        from importlib.metadata import version as version_of

        print(version_of("selftrain"))
        raise typer.Exit


@app.command()
def fit(
    labelled: Annotated[Path, typer.Argument(help="Labelled texts: CSV, TSV, JSONL, Parquet.")],
    unlabelled: Annotated[Path, typer.Option("--unlabelled", "-u", help="Texts without labels.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder to write.")],
    method: Annotated[str | None, typer.Option(help="See `selftrain methods`.")] = None,
    preset: Annotated[str | None, typer.Option(help="laptop (default) or paper.")] = None,
    backbone: Annotated[
        str | None, typer.Option(help="minilm, minilm-mlm, a folder, or a hub name.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="One of the seven, or a TOML file.")] = None,
    template: Annotated[
        str | None, typer.Option(help='For prompts, e.g. "{text} It was {mask} ."')
    ] = None,
    word: Annotated[
        list[str] | None, typer.Option(help="For prompts: label=word, once for each class.")
    ] = None,
    dev: Annotated[Path | None, typer.Option(help="Labelled texts to report on by round.")] = None,
    test: Annotated[
        Path | None, typer.Option(help="Kept out of the pool, and read once at the end.")
    ] = None,
    shots: Annotated[
        int | None, typer.Option(help="Learn from this many rows a class, by seed.", min=2)
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds of self-training.", min=0)] = None,
    seed: Annotated[int | None, typer.Option(help="Everything random follows from it.")] = None,
    text: TextColumn = None,
    pair: PairColumn = None,
    label: LabelColumn = None,
    id_: IdColumn = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file for all of this.")] = None,
    device: Device = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Learn a classifier from labelled and unlabelled texts; goes on where it was stopped."""
    from selftrain import config as configs
    from selftrain.data import Notes

    settings = configs.read(config)
    columns = columns_of(settings.columns, text, pair, label, id_)
    notes = Notes()
    split, tested = read_split(labelled, unlabelled, dev, test, shots, seed or 0, columns, notes)
    say_notes(notes)
    changes = settings.method
    chosen = configs.method_of(method, preset or settings.preset, changes, rounds)
    about = task_of(task, split, settings.task, template, word)
    loaded = load_backbone(chosen, backbone or settings.backbone, settings.revision)
    seeded = seed if seed is not None else settings.seed if settings.seed is not None else 12
    check_method(about, loaded, chosen)
    on = machine(device, threads)

    from selftrain.evaluate import evaluate
    from selftrain.experiment import train
    from selftrain.report import line_of

    last = None
    for round_ in train(out, about, split, chosen, backbone=loaded, seed=seeded, on=on):
        on_dev = (
            f"   dev {100 * evaluate(round_.model, split.dev)['accuracy']:.1f}" if split.dev else ""
        )
        talk.print(line_of(round_, chosen.rounds) + on_dev, markup=False)
        last = round_ if round_.accepted else last
    talk.print(f"model: {out} (round {last.number if last else 0})", markup=False)
    if tested and last is not None:
        show(evaluate(last.model, tested), as_json, "test")


@app.command()
def predict(
    run: RunFolder,
    texts: Annotated[Path, typer.Argument(help="Texts to label: CSV, TSV, JSONL, Parquet.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV, JSONL or Parquet; stdout without it.")
    ] = None,
    passes: Annotated[int, typer.Option(help="Dropout passes for the certainty.", min=1)] = 10,
    text: TextColumn = None,
    pair: PairColumn = None,
    id_: IdColumn = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Label new texts: the label, a probability for each class, and the certainty."""
    from selftrain.data import Notes, read_texts

    notes = Notes()
    table = read_texts(texts, columns_of({}, text, pair, None, id_), notes=notes)
    say_notes(notes)

    from selftrain.predict import predict as answer
    from selftrain.runs import load

    answer(load(run), table, out, passes=passes, on=machine(device, threads))


@app.command()
def evaluate(
    run: RunFolder,
    test: Annotated[Path, typer.Argument(help="Labelled texts the model has never seen.")],
    text: TextColumn = None,
    pair: PairColumn = None,
    label: LabelColumn = None,
    id_: IdColumn = None,
    as_json: Json = False,
) -> None:
    """Score a run on labelled rows: accuracy, F1 and calibration."""
    from selftrain.data import Notes, read_labelled

    notes = Notes()
    rows = read_labelled(test, columns_of({}, text, pair, label, id_), notes=notes)
    say_notes(notes)

    from selftrain.evaluate import evaluate as score
    from selftrain.runs import load

    show(score(load(run), rows), as_json, str(test))


@app.command()
def methods(as_json: Json = False, preset: str = "laptop") -> None:
    """The methods there are, and what each one does."""
    from selftrain.method import to_plain
    from selftrain.recipes import BY_NAME, recipe

    every = [recipe(name, preset) for name in BY_NAME]
    if as_json:
        print(json.dumps([to_plain(each) for each in every], indent=2))
        return
    table = new_table("method", "reads", "teacher", "student", "rounds", "pool", "passes")
    for each in every:
        student = each.student[0].changes.kind if each.student else "-"
        table.add_row(
            each.name,
            each.teacher.reads,
            each.teacher.changes.kind,
            student,
            *map(str, (each.rounds, each.pool, each.passes)),
        )
    Console().print(table)


@app.command()
def check(
    task: Annotated[str, typer.Option(help="One of the seven, or a TOML file.")],
    backbone: Annotated[str, typer.Option(help="minilm-mlm, a folder, or a hub name.")] = (
        "minilm-mlm"
    ),
    as_json: Json = False,
) -> None:
    """Check template and label words against a backbone, before any training."""
    from selftrain.task import find

    about = find(task)

    from selftrain.backbone import load
    from selftrain.prompt import check as findings

    words = findings(about, load(backbone))
    if as_json:
        print(json.dumps([asdict(word) for word in words], indent=2))
    else:
        table = new_table("class", "word", "tokens", "verdict")
        for word in words:
            table.add_row(word.label, word.word, " ".join(word.pieces), word.problem or "ok")
        Console().print(table)
    if not all(word.ok for word in words):
        raise typer.Exit(1)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Versions, device, threads, and what is cached: what to send with a bug report."""
    from selftrain.doctor import facts

    show(facts(), as_json, "selftrain doctor")


@app.command()
def demo(
    seeds: Annotated[str, typer.Option(help="One seed or several, with commas.")] = "12",
    data: Annotated[
        Path | None,
        typer.Option(help="Your own labelled file (or the archive), instead of fetching."),
    ] = None,
    cut: Annotated[
        str, typer.Option(help="movies (positive or negative?) or sources (written where?).")
    ] = "movies",
    on_rows: Annotated[
        str, typer.Option("--on", help="The rows scored at the end: test or design.")
    ] = "test",
    method: Annotated[str | None, typer.Option(help="See `selftrain methods`.")] = None,
    backbone: Annotated[str | None, typer.Option(help="minilm or minilm-mlm.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where run folders go.")] = Path(
        "runs/demo"
    ),
    config: Annotated[Path | None, typer.Option(help="A TOML file for the method.")] = None,
    device: Device = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """See it work: 16 labels a class, a pool of sentences, and an honest closing table."""
    from selftrain import config as configs
    from selftrain import demo as demos

    numbers = [whole_number(part) for part in seeds.split(",")]
    settings = configs.read(config)
    about, rows = demos.rows_of(cut, data)
    chosen = configs.method_of(method, settings.preset, settings.method, None)
    loaded = load_backbone(chosen, backbone or settings.backbone, settings.revision)
    check_method(about, loaded, chosen)
    on = machine(device, threads)

    from selftrain.experiment import cells, train
    from selftrain.report import closing_table, line_of

    scores: dict[str, list[float]] = {}
    for seed in numbers:
        part = demos.cut(rows, seed)
        folder = out / cut / f"{chosen.name}-{loaded.name}-seed{seed}"
        talk.print(f"seed {seed}: {len(part.labelled)} labels, {len(part.pool)} in the pool")
        rounds = []
        for round_ in train(folder, about, part.split(), chosen, backbone=loaded, seed=seed, on=on):
            talk.print(line_of(round_, chosen.rounds), markup=False)
            rounds.append(round_)
        held = part.design if on_rows == "design" else part.test
        for cell in cells(rounds, about, part.split(), held, backbone=loaded, seed=seed):
            scores.setdefault(cell.system, []).append(cell.accuracy)
    if as_json:
        print(json.dumps({"seeds": numbers, "on": on_rows, "accuracy": scores}, indent=2))
        return
    title = f"{about.name}: accuracy on {on_rows} rows, {chosen.name} on {loaded.name}"
    Console().print(closing_table(title, scores, numbers))
    talk.print(f"run folders: {out / cut}", markup=False)


def whole_number(text: str) -> int:
    """A seed from a list with commas."""
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"seed `{text}` is not a whole number", "--seeds 12,21,42") from None


def read_split(
    labelled: Path,
    unlabelled: Path,
    dev: Path | None,
    test: Path | None,
    shots: int | None,
    seed: int,
    columns: Columns,
    notes: Notes,
) -> tuple[Split, list[Labeled]]:
    """What the run may see, and the test rows it may not; nothing heavy is loaded yet."""
    from selftrain.data import (
        check_labels,
        make_split,
        read_labelled,
        read_unlabelled,
        remove_overlap,
    )
    from selftrain.fewshot import sample

    gold = read_labelled(labelled, columns, notes=notes)
    if shots is not None:
        gold, _ = sample(gold, shots, seed, notes=notes)
    pool = read_unlabelled(unlabelled, columns, notes=notes)
    held = read_labelled(dev, columns, notes=notes) if dev else []
    tested = read_labelled(test, columns, notes=notes) if test else []
    check_labels(tested, {row.label for row in gold}, "test")
    if tested:
        pool = remove_overlap(pool, tested, notes, "test")
    return make_split(gold, pool, held, notes=notes), tested


def task_of(
    name: str | None,
    split: Split,
    settings: Mapping[str, Any],
    template: str | None,
    words: Sequence[str] | None,
) -> Task:
    """The task: one by name or file, else the labels seen; flags and the config file on top."""
    from selftrain.task import find, from_labels

    labels = {row.label for row in split.labeled}
    pair = split.labeled[0].example.pair is not None
    about = find(name) if name else from_labels(labels, pair=pair)
    changes = dict(settings)
    if template is not None:
        changes["template"] = template
    if words:
        changes["words"] = dict(word_pair(item) for item in words)
    return about.changed(changes).checked(labels, pair)


def word_pair(item: str) -> tuple[str, str]:
    """``positive=great`` as a pair."""
    label, equals, word = item.rpartition("=")
    if not equals or not label or not word:
        raise ConfigError(f"--word is {item!r}; expected label=word", "--word positive=great")
    return label, word


def load_backbone(method: Method, name: str | None, revision: str | None) -> Backbone:
    """The backbone asked for, else the embedded one the method can use."""
    from selftrain.backbone import load

    return load(name or ("minilm-mlm" if method.prompts else "minilm"), revision=revision)


def check_method(task: Task, backbone: Backbone, method: Method) -> None:
    """Build teacher and student once, so that what cannot work is said before anything is written."""
    from selftrain.loop import fresh

    for how in (method.teacher, *method.student):
        fresh(task, how, backbone, seed=0)


def columns_of(
    settings: Any, text: str | None, pair: str | None, label: str | None, id_: str | None
) -> Columns:
    """The columns named by flags, else by the file."""
    from selftrain.data import Columns

    known = {"text": text, "pair": pair, "label": label, "id": id_}
    for name in settings:
        if name not in known:
            raise ConfigError(f"unknown entry `columns.{name}`", f"known: {', '.join(known)}")
    return Columns(**{name: flag or settings.get(name) for name, flag in known.items()})


def say_notes(notes: Notes) -> None:
    """Tell what was put right while reading."""
    for what, count in notes:
        talk.print(f"warning: {what}: {count}", markup=False)


def new_table(*names: str) -> Table:
    """A plain table."""
    from rich.table import Table

    table = Table()
    for name in names:
        table.add_column(name)
    return table


def show(scores: Any, as_json: bool, title: str) -> None:
    """Print scores as a table or as JSON."""
    if as_json:
        print(json.dumps(dict(scores), indent=2))
        return
    table = new_table(title, "")
    for name, value in scores.items():
        table.add_row(name, f"{value:.0f}" if name == "rows" else f"{value:.3f}")
    Console().print(table)


def machine(device: str | None, threads: int | None) -> Machine:
    """Where to run, with a progress bar on stderr for whatever takes long."""
    from selftrain.machine import Machine

    return Machine(device=device, threads=threads, track=progress)


def progress(steps: Iterable[int], what: str, total: int) -> Iterator[int]:
    """The steps, with a bar that leaves nothing behind; none where stderr is not a terminal."""
    from rich.progress import track

    return iter(
        track(steps, what, total, console=talk, transient=True, disable=not talk.is_terminal)
    )
