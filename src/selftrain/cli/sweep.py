"""``selftrain sweep``: the paper's search, on rows cut from train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from selftrain.cli import inputs, options
from selftrain.cli.bench import spoken
from selftrain.cli.fit import resumable
from selftrain.cli.inputs import seeds_of
from selftrain.cli.talk import Watch, say, show, show_json
from selftrain.errors import require
from selftrain.escape import printable
from selftrain.experiments.gridfile import COMPARED

if TYPE_CHECKING:
    from selftrain.experiments.sweep import Sweep, Tried
    from selftrain.method.spec import Method

SHOWN = 10  # trials of the table
SEARCH = "Search"


def sweep(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A folder with a folder for each task.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where trials and runs go.")
    ] = Path("runs/sweep"),
    method: options.MethodName = None,
    preset: options.PresetName = None,
    backbone: options.BackboneName = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Of the method, if it has any.", rich_help_panel=options.METHOD
        ),
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option("--tasks", "--task", metavar="NAME,…", help="With commas, or once for each."),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N,N,…", help="With commas (12,21,42,87,100).")
    ] = None,
    shots: Annotated[int, typer.Option(metavar="N", help="Labels a class.")] = 16,
    trials: Annotated[
        int,
        typer.Option(
            metavar="N", help="In all: those of an earlier start count.", rich_help_panel=SEARCH
        ),
    ] = 20,
    space: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML: an entry of the method = a list of values; else the paper's Table 8.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    sampler: Annotated[
        Literal["tpe", "random", "grid"],
        typer.Option(help="Who draws the next point.", rich_help_panel=SEARCH),
    ] = "tpe",
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="An Optuna storage where several workers meet; else OUT/sweep.db.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    device: options.Device = None,
    threads: options.Threads = None,
    cache: options.Cache = None,
    cache_mb: options.CacheMb = None,
    as_json: options.Json = False,
) -> None:
    """Search hyper-parameters on rows cut from train, by the mean over tasks and seeds.

    selftrain sweep DATA --method upet-head-prefix --trials 30

    A killed sweep goes on where it stopped. No test row is read. OUT/sweep.json has every trial.
    """
    require(shots >= 1, "--shots", shots, "1 or more", "--shots 16")
    require(trials >= 1, "--trials", trials, "1 or more", "--trials 20")
    named = [name.strip() for given in tasks or COMPARED for name in given.split(",")]
    chosen = seeds_of(seeds) if seeds else None
    here = {"device": device, "threads": threads, "cache": cache, "cache_mb": cache_mb}
    inputs.check_tasks(data, named)
    with Watch() as watch:
        with watch.busy("loading"):
            from selftrain.cli.config import Config
            from selftrain.experiments.grid import SEEDS
            from selftrain.experiments.space import paper_space, read_space
            from selftrain.experiments.sweep import Sweep
            from selftrain.method.changes import backbone_for
            from selftrain.method.recipes import DEFAULT, recipe

            preset = preset or "laptop"
            base = with_rounds(recipe(method or DEFAULT, preset), rounds)
            made = Sweep(
                base,
                read_space(space) if space else paper_space(base),
                data,
                out,
                tuple(dict.fromkeys(named)),
                backbone or backbone_for(base),
                tuple(chosen or SEEDS),
                shots,
                preset,
                sampler,
                storage=storage,
                machine=inputs.machine_of(Config().over(here), watch),
            )
            made.check_rows()
        say(f"{made.points} points: {', '.join(map(spelt, made.space.items()))}")
        with watch.busy("estimating"):
            said = estimate(made, trials)
        say(said)
        with resumable(watch):
            for each in made.run(trials):
                say(line_of(each))
        told = made.report()
    say(f"{told['trials']} trials: {out / 'sweep.json'}")
    if as_json:
        show_json(told)
    else:
        show_best(made, told)


def with_rounds(method: Method, rounds: int | None) -> Method:
    """The method with so many rounds, if it has any."""
    from dataclasses import replace

    if rounds is None or not method.rounds:
        return method
    require(rounds >= 1, "--rounds", rounds, "1 or more", "--rounds 3")
    return replace(method, rounds=rounds)


def estimate(made: Sweep, trials: int) -> str:
    """What a trial is, and about how long it takes; one with a longer prefix takes longer."""
    one = made.bench(made.method, made.out / "estimate")  # no such folder: nothing is done there
    return f"{trials} trials of {len(one.missing())} cells: {spoken(one.seconds())} each"


def spelt(entry: tuple[str, Sequence[object]]) -> str:
    """An entry of a space in a sentence.

    >>> spelt(("teacher.batch_size", (4, 8)))
    'teacher.batch_size 4 8'
    """
    name, values = entry
    return f"{name} {' '.join(map(str, values))}"


def line_of(each: Tried) -> str:
    """One line for one trial."""
    from selftrain.experiments.sweep import mean_of

    point = "   ".join(f"{name} {value}" for name, value in each.params.items())
    return f"trial {each.number}   {point}   {mean_of(each) if each.cells else each.why}"


def show_best(made: Sweep, told: Mapping[str, Any]) -> None:
    """The best trials as a table on stdout, and how to read it."""
    from selftrain.experiments.sweep import best_first, mean_of

    every = best_first(made.trials())
    rows = [
        [str(each.number), *(str(each.params[name]) for name in made.space), mean_of(each)]
        for each in every[:SHOWN]
    ]
    about = f"{made.method.name} on design rows of {', '.join(made.tasks)}, {made.shots} shots"
    show(["trial", *made.space, "accuracy"], rows, title=printable(about), figures=True)
    for note in notes(made, told):
        print(printable(note))


def notes(made: Sweep, told: Mapping[str, Any]) -> list[str]:
    """What a reader of the table should know."""
    several = "mean over tasks and seeds" + (" ± sd over seeds" if len(made.seeds) > 1 else "")
    found = [f"accuracy: {several}."]
    if "importance" in told:
        each = ", ".join(f"{name} {share:.2f}" for name, share in told["importance"].items())
        found.append(f"importance (fANOVA): {each}.")
    return [*found, told["note"] + "."]
