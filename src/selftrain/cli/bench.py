"""``selftrain bench``: methods beside each other, on many tasks and seeds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selftrain.cli import inputs, options
from selftrain.cli.bundles import with_options
from selftrain.cli.config import settings_of
from selftrain.cli.talk import Watch, duration, resumable, say, show_json
from selftrain.errors import ConfigError, SelftrainError
from selftrain.experiments.gridfile import COMPARED, read_grid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from selftrain.experiments.bench import Bench
    from selftrain.experiments.grid import Grid
    from selftrain.experiments.results import Result

WORKERS = "Many workers"
HUB = "hub"
"""In the place of a folder: rows are fetched."""


@dataclass(frozen=True, slots=True)
class GridOptions:
    """What is compared: grid files, and flags that override them."""

    grid: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="A TOML file for all of this, or several; flags override it."
        ),
    ] = None
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Once for each; see `selftrain methods`."),
    ] = None
    task: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Once for each of the tasks.")
    ] = None
    backbone: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Once for each: minilm, minilm-mlm, a folder, a hub name."
        ),
    ] = None
    seeds: Annotated[
        str | None, typer.Option(metavar="N,N,…", help="With commas (12,21,42,87,100).")
    ] = None
    shots: Annotated[
        list[str] | None, typer.Option(metavar="N", help="Labels a class, or full; once for each.")
    ] = None
    preset: options.PresetName = None
    as_published: Annotated[
        bool,
        typer.Option("--as-published", help="Preset paper, baselines with their published sizes."),
    ] = False
    rounds: Annotated[
        int | None, typer.Option(metavar="N", help="At most this many, of every method.")
    ] = None
    scored_on: options.ScoredOn = "test"
    rows: Annotated[
        int | None, typer.Option(metavar="N", help="At most this many test rows (2000).")
    ] = None

    def __post_init__(self) -> None:
        if self.as_published and self.preset is not None:
            raise ConfigError("--as-published is a preset of its own", "leave out --preset")

    def entries(self) -> list[dict[str, Any]]:
        """The entries of each grid file, with the flags that were given on top."""
        flags = {
            "methods": self.method,
            "tasks": self.task,
            "backbones": self.backbone,
            "seeds": options.seeds_of(self.seeds or None) or None,
            "shots": self.shots,
            "preset": "published" if self.as_published else self.preset,
            "rounds": self.rounds,
            "rows": self.rows,
        }
        given = {name: value for name, value in flags.items() if value is not None}
        paths: Sequence[Path | None] = self.grid or (None,)
        return [{**read_grid(path), **given} for path in paths]


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Who computes, where it is not this process alone."""

    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="An Optuna storage: workers with the same command share the grid. A database, "
            "journal://FILE or grpc://HOST:PORT.",
            rich_help_panel=WORKERS,
        ),
    ] = None
    study: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Its name there; else the grid's.", rich_help_panel=WORKERS
        ),
    ] = None
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="A Ray cluster that computes: its head, auto, or local.",
            rich_help_panel=WORKERS,
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.storage is not None and self.ray is not None:
            raise ConfigError("--storage and --ray are both given; expected one", "leave one out")
        if self.study is not None and self.storage is None:
            raise ConfigError("--study names a grid in a storage", "--storage sqlite:///FILE.db")


@with_options
def bench(
    *,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="A folder with a folder for each task, or hub: fetched from there."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Where cells and runs go.",
            callback=options.local_folder,
        ),
    ] = Path("runs/bench"),
    compared: GridOptions,
    shared: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Teachers and first votes of an earlier grid."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what it would cost, and stop.")
    ] = False,
    workers: WorkerOptions,
    hardware: options.MachineOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print the new cells as JSON.")] = False,
) -> None:
    """Compare methods on tasks and seeds: each cell is a run folder and a line of JSON.

    selftrain bench DATA --method supcon --method head-ft --task sst2 -o runs/mine

    A killed grid resumes where it stopped. `selftrain table` makes tables of its cells.
    """
    asked = compared.entries()
    if data != Path(HUB):
        for entries in asked:
            inputs.check_tasks(data, entries.get("tasks", COMPARED), instead=f", or the word {HUB}")
    results: list[Result] = []
    with Watch() as watch:
        with watch.busy("loading"):
            from selftrain.experiments.bench import Bench
            from selftrain.experiments.grid import grid_of

            machine = inputs.machine_of(settings_of(None, hardware), watch)
            grids = [grid_of(entries, compared.scored_on) for entries in asked]
        if data == Path(HUB):
            with watch.busy("fetching"):
                data = fetched(grids, out)
        comparisons = [Bench(grid, data, out, shared, machine) for grid in grids]
        with watch.busy("estimating"):
            costs = estimates(comparisons, [path.stem for path in compared.grid or ()])
        for cost in costs:
            say(cost)
        if not dry_run:
            with resumable(watch):
                for result in computed(comparisons, workers):
                    say(line_of(result))
                    results.append(result)
            say(f"{len(results)} cells written: {out / 'cells.jsonl'}")
    if as_json:
        show_json([asdict(result) for result in results])


def computed(comparisons: Sequence[Bench], workers: WorkerOptions) -> Iterator[Result]:
    """The cells of one grid after the other; the error of the first that failed is the last."""
    failed: list[SelftrainError] = []
    for comparison in comparisons:
        try:
            yield from computed_by(comparison, workers)
        except SelftrainError as error:
            failed.append(error)
    if failed:
        raise failed[0]


def computed_by(comparison: Bench, workers: WorkerOptions) -> Iterator[Result]:
    """The cells of a grid, by this process alone or as one of many workers."""
    if workers.storage is None and workers.ray is None:
        return comparison.run()

    from selftrain.experiments.workers import optuna_groups, ray_groups

    if workers.ray:
        return ray_groups(comparison, workers.ray)
    return optuna_groups(comparison, workers.storage or "", workers.study)


def fetched(grids: Sequence[Grid], out: Path) -> Path:
    """A folder with the rows of every task, fetched from the hub."""
    from selftrain.experiments.hub import fetch

    for name in dict.fromkeys(name for grid in grids for name in grid.tasks):
        fetch(name, out / "data")
    return out / "data"


def estimates(comparisons: Sequence[Bench], names: Sequence[str]) -> list[str]:
    """The cost of a grid; of several a line for each, and one for all of them.

    What a later grid shares with an earlier one is counted once.
    """
    times = comparisons[0].cell_times()
    costs = [(*counted(each), each.seconds(times)) for each in comparisons]
    if len(costs) == 1:
        return [estimate(*costs[0])]
    lines = [f"{name}: {estimate(*cost)}" for name, cost in zip(names, costs, strict=True)]
    missing, every, seconds = map(sum, zip(*costs, strict=True))
    return [*lines, f"all grids: {estimate(missing, every, seconds)}"]


def counted(comparison: Bench) -> tuple[int, int]:
    """How many cells of a grid are missing, and how many it has."""
    grid = comparison.grid
    return len(comparison.missing()), sum(len(grid.names(group)) for group in grid.groups())


def estimate(missing: int, every: int, seconds: float) -> str:
    """How many cells are to do, and about how long they take on this machine.

    >>> estimate(3, 5, 600), estimate(0, 5, 0)
    ('3 of 5 cells to do: about 10 minutes on this machine (an estimate)', '0 of 5 cells to do')
    """
    cells = f"{missing} of {every} cells to do"
    return f"{cells}: {duration(seconds)} on this machine (an estimate)" if missing else cells


def line_of(result: Result) -> str:
    """One line for a finished cell."""
    rounds = " → ".join("–" if each is None else f"{100 * each:.1f}" for each in result.by_round)
    seconds = "" if result.seconds is None else f"   {result.seconds:.0f} s"
    scored = rounds or f"{100 * result.accuracy:.1f}"
    place = f"{result.task}   {result.backbone}   {result.shots} shots   seed {result.seed}"
    return f"{place}   {result.method}   {scored}{seconds}"
