"""``selftrain bench``: methods beside each other, on many tasks and seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selftrain.cli import inputs, options
from selftrain.cli.config import Config
from selftrain.cli.fit import resumable
from selftrain.cli.inputs import seeds_of
from selftrain.cli.talk import Watch, say, show_json
from selftrain.errors import ConfigError
from selftrain.experiments.gridfile import COMPARED, read_grid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selftrain.experiments.bench import Bench
    from selftrain.experiments.grid import Grid
    from selftrain.experiments.results import Result

WORKERS = "Many workers"
HUB = "hub"
"""In the place of a folder: rows are fetched."""


def bench(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="A folder with a folder for each task, or hub: fetched from there."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where cells and runs go.")
    ] = Path("runs/bench"),
    grid: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A TOML file for all of this; flags override it."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Once for each; see `selftrain methods`."),
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Once for each of the tasks.")
    ] = None,
    backbone: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Once for each: minilm, minilm-mlm, a folder, a hub name."
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N,N,…", help="With commas (12,21,42,87,100).")
    ] = None,
    shots: Annotated[
        list[str] | None, typer.Option(metavar="N", help="Labels a class, or full; once for each.")
    ] = None,
    preset: options.PresetName = None,
    as_published: Annotated[
        bool,
        typer.Option("--as-published", help="Preset paper, baselines with their published sizes."),
    ] = False,
    rounds: Annotated[
        int | None, typer.Option(metavar="N", help="At most so many, of every method.")
    ] = None,
    on_rows: options.OnRows = "test",
    rows: Annotated[
        int | None, typer.Option(metavar="N", help="At most so many test rows (2000).")
    ] = None,
    shared: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Teachers and first votes of an earlier grid."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost, and stop.")
    ] = False,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="An Optuna storage: workers with the same command share the grid.",
            rich_help_panel=WORKERS,
        ),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Its name there; else the grid's.",
            rich_help_panel=WORKERS,
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="A Ray cluster that computes: its head, auto, or local.",
            rich_help_panel=WORKERS,
        ),
    ] = None,
    device: options.Device = None,
    threads: options.Threads = None,
    cache: options.Cache = None,
    cache_mb: options.CacheMb = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the new cells as JSON.")] = False,
) -> None:
    """Compare methods on tasks and seeds: each cell a run folder and a line of JSON.

    A killed grid goes on where it stopped. `selftrain table` makes tables of its cells.
    """
    check_workers(storage, study, ray)
    if as_published and preset is not None:
        raise ConfigError("--as-published is a preset of its own", "leave out --preset")
    flags = {
        "methods": method,
        "tasks": task,
        "backbones": backbone,
        "seeds": seeds_of(seeds) if seeds else None,
        "shots": shots,
        "preset": "published" if as_published else preset,
        "rounds": rounds,
        "rows": rows,
    }
    here = {"device": device, "threads": threads, "cache": cache, "cache_mb": cache_mb}
    asked: dict[str, Any] = {
        **read_grid(grid),
        **{key: value for key, value in flags.items() if value is not None},
    }
    if data != Path(HUB):
        inputs.check_tasks(data, asked.get("tasks", COMPARED), instead=f", or the word {HUB}")
    with Watch() as watch:
        with watch.busy("loading"):
            from selftrain.experiments.bench import Bench
            from selftrain.experiments.grid import grid_of

            machine = inputs.machine_of(Config().over(here), watch)
            chosen = grid_of(asked, on_rows)
        if data == Path(HUB):
            with watch.busy("fetching"):
                data = fetched(chosen, out)
        made = Bench(chosen, data, out, shared, machine)
        with watch.busy("estimating"):
            said = estimate(made)
        say(said)
        found: list[Result] = []
        if not dry_run:
            with resumable(watch):
                for result in computed(made, storage, study, ray):
                    say(line_of(result))
                    found.append(result)
            say(f"{len(found)} cells written: {out / 'cells.jsonl'}")
    if as_json:
        from dataclasses import asdict

        show_json([asdict(result) for result in found])


def check_workers(storage: str | None, study: str | None, ray: str | None) -> None:
    """Raise for flags of which one would be passed over in silence."""
    if storage is not None and ray is not None:
        raise ConfigError("--storage and --ray are both given; expected one", "leave one out")
    if study is not None and storage is None:
        raise ConfigError("--study names a grid in a storage", "--storage sqlite:///FILE.db")


def computed(
    made: Bench, storage: str | None, study: str | None, ray: str | None
) -> Iterator[Result]:
    """The cells, by this process alone or as one of many workers."""
    if storage is None and ray is None:
        return made.run()

    from selftrain.experiments.workers import optuna_groups, ray_groups

    return ray_groups(made, ray) if ray else optuna_groups(made, storage or "", study)


def fetched(grid: Grid, out: Path) -> Path:
    """A folder with the rows of every task, as the hub has them."""
    from selftrain.experiments.hub import fetch

    for name in grid.tasks:
        fetch(name, out / "data")
    return out / "data"


def estimate(made: Bench) -> str:
    """How many cells are to do, and about how long they take on this machine."""
    missing = made.missing()
    cells = (
        f"{len(missing)} of {sum(len(made.grid.names(g)) for g in made.grid.groups())} cells to do"
    )
    if not missing:
        return cells
    return f"{cells}: {spoken(made.seconds())} on this machine, as far as can be told"


def spoken(seconds: float) -> str:
    """A length of time as people say it.

    >>> spoken(40), spoken(600), spoken(9000)
    ('about a minute', 'about 10 minutes', 'about 2.5 hours')
    """
    if seconds < 90:
        return "about a minute"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} minutes"
    return f"about {seconds / 3600:.1f} hours"


def line_of(result: Result) -> str:
    """One line for a finished cell."""
    rounds = " → ".join("–" if each is None else f"{100 * each:.1f}" for each in result.by_round)
    taken = "" if result.seconds is None else f"   {result.seconds:.0f} s"
    scored = rounds or f"{100 * result.accuracy:.1f}"
    place = f"{result.task}   {result.backbone}   {result.shots} shots   seed {result.seed}"
    return f"{place}   {result.method}   {scored}{taken}"
