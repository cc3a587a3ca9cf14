"""``selftrain sweep``: the paper's search, on rows cut from train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from selftrain.cli import inputs, options
from selftrain.cli.bundles import with_options
from selftrain.cli.config import settings_of
from selftrain.cli.talk import Watch, duration, resumable, say, show, show_json
from selftrain.errors import require
from selftrain.escape import printable
from selftrain.experiments.gridfile import COMPARED

if TYPE_CHECKING:
    from selftrain.experiments.sweep import Sweep, Tried
    from selftrain.method.spec import Method

SHOWN = 10  # trials of the table
SEARCH = "Search"


@dataclass(frozen=True, slots=True)
class RowOptions:
    """The rows that every trial learns from: tasks, seeds and labels a class."""

    tasks: Annotated[
        list[str] | None,
        typer.Option("--tasks", "--task", metavar="NAME,…", help="With commas, or once for each."),
    ] = None
    seeds: Annotated[
        str | None, typer.Option(metavar="N,N,…", help="With commas (12,21,42,87,100).")
    ] = None
    shots: Annotated[int, typer.Option(metavar="N", help="Labels a class.")] = 16

    def __post_init__(self) -> None:
        require(self.shots >= 1, "--shots", self.shots, "1 or more", "--shots 16")

    def task_names(self) -> tuple[str, ...]:
        """The tasks, each once."""
        names = (name.strip() for part in self.tasks or COMPARED for name in part.split(","))
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How the search goes."""

    trials: Annotated[
        int,
        typer.Option(
            metavar="N", help="In all: those of an earlier start count.", rich_help_panel=SEARCH
        ),
    ] = 20
    space: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML: an entry of the method = a list of values; else the paper's Table 8.",
            rich_help_panel=SEARCH,
        ),
    ] = None
    sampler: Annotated[
        Literal["tpe", "random", "grid"],
        typer.Option(help="Who draws the next point.", rich_help_panel=SEARCH),
    ] = "tpe"
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="An Optuna storage where several workers meet; else OUT/sweep.db. A database "
            "(sqlite:///F.db, postgresql://…), journal://FILE (also on NFS), grpc://HOST:PORT.",
            rich_help_panel=SEARCH,
        ),
    ] = None
    prune: Annotated[
        Literal["none", "median"],
        typer.Option(
            help="Stop a point whose accuracy so far, after any round of any cell, is below the "
            "median of five or more complete points.",
            rich_help_panel=SEARCH,
        ),
    ] = "none"

    def __post_init__(self) -> None:
        require(self.trials >= 1, "--trials", self.trials, "1 or more", "--trials 20")


@with_options
def sweep(
    *,
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A folder with a folder for each task.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Where trials and runs go.",
            callback=options.local_folder,
        ),
    ] = Path("runs/sweep"),
    method: options.MethodOptions,
    rounds: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Of the method, if it has any.", rich_help_panel=options.METHOD
        ),
    ] = None,
    rows: RowOptions,
    search: SearchOptions,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what it would cost, and stop.")
    ] = False,
    hardware: options.MachineOptions,
    as_json: options.Json = False,
) -> None:
    """Search hyper-parameters on rows cut from train, by the mean over tasks and seeds.

    selftrain sweep DATA --method upet-head-prefix --trials 30

    A killed sweep resumes where it stopped. No test row is read. OUT/sweep.json has every trial.
    """
    tasks, seeds = rows.task_names(), options.seeds_of(rows.seeds or None)
    inputs.check_tasks(data, tasks)
    with Watch() as watch:
        with watch.busy("loading"):
            from selftrain.experiments.grid import SEEDS
            from selftrain.experiments.space import paper_space, read_space
            from selftrain.experiments.sweep import Sweep
            from selftrain.method.changes import backbone_for
            from selftrain.method.recipes import THE_PAPERS, recipe

            preset = method.preset or "laptop"
            base = with_rounds(recipe(method.method or THE_PAPERS, preset), rounds)
            study = Sweep(
                base,
                read_space(search.space) if search.space else paper_space(base),
                data,
                out,
                tasks,
                method.backbone or backbone_for(base),
                tuple(seeds or SEEDS),
                rows.shots,
                preset,
                search.sampler,
                storage=search.storage,
                prune=search.prune,
                machine=inputs.machine_of(settings_of(None, hardware), watch),
            )
            study.check_rows()
        say(f"{study.points} points: {', '.join(map(spelt, study.space.items()))}")
        with watch.busy("estimating"):
            cost = estimate(study, search.trials)
        say(cost)
        if dry_run:
            return
        with resumable(watch):
            for trial in study.run(search.trials):
                say(line_of(trial))
        report = study.report()
    say(f"{report['trials']} trials: {out / 'sweep.json'}")
    if as_json:
        show_json(report)
    else:
        show_best(study, report)


def with_rounds(method: Method, rounds: int | None) -> Method:
    """The method with this many rounds, if it has any."""
    from dataclasses import replace

    if rounds is None or not method.rounds:
        return method
    require(rounds >= 1, "--rounds", rounds, "1 or more", "--rounds 3")
    return replace(method, rounds=rounds)


def estimate(study: Sweep, trials: int) -> str:
    """What a trial is, and about how long it takes; one with a longer prefix takes longer."""
    one = study.bench(study.method, study.out / "estimate")  # no such folder: nothing is done there
    cost = f"{trials} trials of {len(one.missing())} cells: {duration(one.seconds())} each"
    done = study.trials_done()
    return f"{cost}, {done} of them done" if done else cost


def spelt(entry: tuple[str, Sequence[object]]) -> str:
    """An entry of a space in a sentence.

    >>> spelt(("teacher.batch_size", (4, 8)))
    'teacher.batch_size 4 8'
    """
    name, values = entry
    return f"{name} {' '.join(map(str, values))}"


def line_of(trial: Tried) -> str:
    """One line for one trial."""
    from selftrain.experiments.sweep import mean_of

    point = "   ".join(f"{name} {value}" for name, value in trial.params.items())
    return f"trial {trial.number}   {point}   {mean_of(trial) if trial.cells else trial.why}"


def show_best(study: Sweep, report: Mapping[str, Any]) -> None:
    """The best trials as a table on stdout, and how to read it."""
    from selftrain.experiments.sweep import best_first, mean_of

    every = best_first(study.trials())
    rows = [
        [str(each.number), *(str(each.params[name]) for name in study.space), mean_of(each)]
        for each in every[:SHOWN]
    ]
    about = f"{study.method.name} on design rows of {', '.join(study.tasks)}, {study.shots} shots"
    show(["trial", *study.space, "accuracy"], rows, title=printable(about), numeric=True)
    for note in notes(study, report):
        print(printable(note))


def notes(study: Sweep, report: Mapping[str, Any]) -> list[str]:
    """What a reader of the table should know."""
    several = "mean over tasks and seeds" + (" ± sd over seeds" if len(study.seeds) > 1 else "")
    lines = [f"accuracy: {several}."]
    if pruned := report["states"].get("pruned"):
        lines.append(f"stopped early, without a score: {pruned}.")
    if "importance" in report:
        shares = ", ".join(f"{name} {share:.2f}" for name, share in report["importance"].items())
        lines.append(f"importance (fANOVA): {shares}.")
    return [*lines, report["note"] + "."]
