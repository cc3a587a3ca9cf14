"""``selftrain fit``: learn a classifier from one's own files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selftrain.cli import inputs, options
from selftrain.cli.options import DATA, METHOD
from selftrain.cli.talk import Watch, say, show_json, show_scores, warn

if TYPE_CHECKING:
    from selftrain.cli.config import Config
    from selftrain.training.loop import Round


def fit(
    labelled: Annotated[Path, typer.Argument(help="Labelled texts: CSV, TSV, JSONL or Parquet.")],
    unlabelled: Annotated[
        Path, typer.Option("--unlabelled", "-u", metavar="FILE", help="Texts without labels.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="The run folder to write.")
    ],
    dev: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labelled texts to report on by round; they choose nothing.",
            rich_help_panel=DATA,
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labelled texts kept out of the pool, and scored once at the end.",
            rich_help_panel=DATA,
        ),
    ] = None,
    shots: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="Learn from K rows a class, drawn by seed.", rich_help_panel=DATA
        ),
    ] = None,
    text: options.TextColumn = None,
    pair: options.PairColumn = None,
    label: options.LabelColumn = None,
    id_: options.IdColumn = None,
    method: options.MethodName = None,
    preset: options.PresetName = None,
    backbone: options.BackboneName = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            metavar="R", help="Rounds of self-training (3; paper: 5).", rich_help_panel=METHOD
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Everything random follows from it (12).", rich_help_panel=METHOD
        ),
    ] = None,
    config: options.ConfigFile = None,
    task: options.TaskName = None,
    template: options.TemplateText = None,
    word: options.LabelWords = None,
    device: options.Device = None,
    threads: options.Threads = None,
    cache: options.Cache = None,
    cache_mb: options.CacheMb = None,
    as_json: options.Json = False,
) -> None:
    """Learn a classifier from labelled and unlabelled texts.

    selftrain fit labelled.csv --unlabelled pool.csv -o run

    Every round is on disk when its line is printed.
    Stopped or killed, the same command goes on from the last whole round; so does one with more
    rounds.
    """
    from selftrain.cli.config import read as read_config
    from selftrain.runs.read import check_place

    flags = {
        "backbone": backbone,
        "preset": preset,
        "seed": seed,
        "shots": shots,
        "columns": {"text": text, "pair": pair, "label": label, "id": id_},
        "task": {"name": task, "template": template, "words": inputs.words_of(word)},
        "method": {"name": method, "rounds": rounds},
        "device": device,
        "threads": threads,
        "cache": cache,
        "cache_mb": cache_mb,
    }
    settings = read_config(config).over(flags)
    check_place(out)
    files = inputs.Files(labelled, unlabelled, dev, test)
    with Watch() as watch:
        result = learn(files, settings, out, watch)
    if as_json:
        show_json(result)
    elif "test" in result:
        show_scores(result["test"], f"{test}, round {result['final_round']}")


def learn(files: inputs.Files, settings: Config, out: Path, watch: Watch) -> dict[str, Any]:
    """Read, check, train and score; what is found is said as it comes, and returned."""
    from selftrain.data.rows import Notes

    notes = Notes()
    with watch.busy("reading"):
        split, test = files.read(settings, notes)
    warn(notes)
    with watch.busy("loading"):
        from selftrain.method.changes import method_of
        from selftrain.runs.lines import line_of
        from selftrain.runs.train import train
        from selftrain.training.evaluate import evaluate
        from selftrain.training.job import Job
        from selftrain.training.loop import last_accepted
        from selftrain.training.preflight import preflight

        machine = inputs.machine_of(settings, watch)
        method = method_of(settings.method, settings.preset)
        task = inputs.task_of(settings.task, split)
        job = Job(task, split, method, inputs.backbone_of(settings, method), settings.seed)
        warn(preflight(job))
    rounds, facts = [], []
    with resumable(watch):
        for round_ in train(out, job, machine):
            scores = evaluate(round_.model, split.dev, machine) if split.dev else {}
            say(line_of(round_, method.rounds, dev=scores.get("accuracy")))
            facts.append({**plain(round_), **({"dev": scores} if scores else {})})
            rounds.append(round_)
    final = last_accepted(rounds)
    say(f"model: {out}, round {final.number}")
    on_test = {"test": evaluate(final.model, test, machine)} if test else {}
    return {"run": str(out), "final_round": final.number, "rounds": facts, **on_test}


@contextmanager
def resumable(watch: Watch) -> Iterator[None]:
    """Rounds are trained in here: a sign of life, and a word to whoever stops them."""
    with watch.busy("self-training"):
        try:
            yield
        except KeyboardInterrupt:
            say("the same command resumes from the last finished round")
            raise


def plain(round_: Round) -> dict[str, Any]:
    """A round as plain data, for ``--json``."""
    return {
        "number": round_.number,
        "accepted": round_.accepted,
        "why": round_.why,
        "numbers": dict(round_.numbers),
    }
