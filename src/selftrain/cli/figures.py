"""``selftrain figure``: the paper's figures, from finished cells and runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from selftrain.cli import options
from selftrain.cli.answer import check_fits, loaded
from selftrain.cli.inputs import seeds_of
from selftrain.cli.talk import Watch, say, show_json, warn
from selftrain.errors import ConfigError, RunError, require

if TYPE_CHECKING:
    from selftrain.experiments.figures import Calibration, Plane, Rounds, Wanted

figure = typer.Typer(
    help="The paper's figures, from finished cells and runs: PNG or SVG, and the numbers drawn.",
    no_args_is_help=True,
)

CellsFile = Annotated[
    Path, typer.Argument(metavar="CELLS", help="Cells, as `selftrain bench` writes them.")
]
MethodNames = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help="Once for each; else UPET's students, else all.",
        rich_help_panel=options.CELLS,
    ),
]
TaskNames = Annotated[
    list[str] | None,
    typer.Option(
        "--task", metavar="NAME", help="Once for each; else all.", rich_help_panel=options.CELLS
    ),
]
Outs = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="PNG or SVG, by its name; may be repeated.",
        rich_help_panel=options.OUTPUT,
    ),
]
CsvFile = Annotated[
    Path | None,
    typer.Option(
        "--csv", metavar="FILE", help="The numbers drawn.", rich_help_panel=options.OUTPUT
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the numbers drawn.", rich_help_panel=options.OUTPUT)
]


@figure.command()
def rounds(
    cells: CellsFile,
    method: MethodNames = None,
    task: TaskNames = None,
    on_rows: options.CellsOn = "test",
    shots: options.CellShots = 16,
    backbone: options.CellBackbone = None,
    preset: options.CellPreset = None,
    recipe: options.CellRecipes = None,
    seeds: options.CellSeeds = None,
    rows: options.CellRows = None,
    out: Outs = None,
    csv: CsvFile = None,
    as_json: Json = False,
) -> None:
    """Score by round: a panel for each task, mean ± sd over seeds (Figure 3).

    selftrain figure rounds cells.jsonl -o rounds.png -o rounds.svg --csv rounds.csv

    A run that ended early adds nothing to the rounds it does not have.
    """
    check_out(out, csv, as_json)

    from selftrain.experiments.results import read

    results = read(cells)  # first: a bad file is found before torch is loaded

    from selftrain.experiments.figures import by_round

    wanted = wanted_of(method, task, on_rows, shots, backbone, preset, recipe, seeds, rows)
    show(by_round(results, wanted), out, csv, as_json)


@figure.command()
def calibration(
    cells: CellsFile,
    method: MethodNames = None,
    task: TaskNames = None,
    on_rows: options.CellsOn = "test",
    shots: options.CellShots = 16,
    backbone: options.CellBackbone = None,
    preset: options.CellPreset = None,
    recipe: options.CellRecipes = None,
    seeds: options.CellSeeds = None,
    rows: options.CellRows = None,
    out: Outs = None,
    csv: CsvFile = None,
    as_json: Json = False,
) -> None:
    """How sure beside how right: a panel for each method on a task, or for each task of a method.

    selftrain figure calibration cells.jsonl --task sst2 -o calibration.png

    On the diagonal, of the answers given with confidence 80 %, 80 % are right.
    """
    check_out(out, csv, as_json)

    from selftrain.experiments.results import read

    results = read(cells)

    from selftrain.experiments.figures import calibration as pooled

    wanted = wanted_of(method, task, on_rows, shots, backbone, preset, recipe, seeds, rows)
    show(pooled(results, wanted), out, csv, as_json)


@figure.command()
def tsne(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Run folders, as `fit` and `bench` write them."),
    ],
    test: Annotated[
        Path, typer.Option(metavar="FILE", help="Labelled texts the runs have never seen.")
    ],
    rows: Annotated[
        int, typer.Option(metavar="N", help="At most so many, drawn by a hash of each text.")
    ] = 1000,
    text: options.TextColumn = None,
    pair: options.PairColumn = None,
    label: options.LabelColumn = None,
    id_: options.IdColumn = None,
    backbone: options.GivenBackbone = None,
    device: options.Device = None,
    threads: options.Threads = None,
    out: Outs = None,
    csv: CsvFile = None,
    as_json: Json = False,
) -> None:
    """The features of the same texts in each run, on a plane by t-SNE (Figure 4).

    selftrain figure tsne run-with run-without --test test.jsonl -o features.png

    The silhouette below each panel says how far apart the classes are: of the features
    themselves, by cosine and gold class, from -1 over 0 (mixed) to 1 (far apart).
    """
    check_out(out, csv, as_json)
    require(rows >= 3, "--rows", rows, "3 or more", "--rows 1000")

    from selftrain.data.read import Columns, read_labelled
    from selftrain.data.rows import Notes
    from selftrain.runs.read import last_accepted, read_manifest

    notes = Notes()
    with Watch() as watch:
        with watch.busy("reading"):
            columns = Columns(text=text, pair=pair, label=label, id=id_)
            given = read_labelled(test, columns, notes=notes)
            for run in runs:
                check_fits(run, [row.example for row in given])
        warn(notes)
        with watch.busy("loading"):
            from selftrain.data.split import check_labels
            from selftrain.experiments.figures import Plane, chosen, features, view
            from selftrain.experiments.figures.plane import perplexity

        drawn = chosen(given, rows)
        gold = tuple(row.label for row in drawn)
        views = []
        for run, here in zip(runs, ends(runs), strict=True):
            manifest = read_manifest(run)
            name = manifest.method.get("name")
            if not isinstance(name, str):
                raise RunError(f"the manifest of {run} names no method", "selftrain fit writes it")
            last, texts = last_accepted(run), [row.example for row in drawn]
            model, on = loaded(run, last, texts, watch, backbone, device, threads)
            check_labels(drawn, model.labels, str(test))
            vectors = features(model, drawn, on)
            with watch.busy("laying out"):
                views.append(view(here, name, vectors, gold, seed=manifest.seed, number=last))
    near = f"{perplexity(len(drawn)):.3g}"
    setting = f"{len(drawn):,} rows of {test.name}; t-SNE by cosine, perplexity {near}"
    uids = tuple(row.example.uid for row in drawn)
    show(Plane(uids, gold, tuple(views), setting), out, csv, as_json)


def ends(runs: Sequence[Path]) -> list[str]:
    """The ends of the paths by which runs can be told apart, and no more of a machine's folders.

    >>> ends([Path("/home/me/seed-1/run"), Path("/home/me/seed-2/run")])
    ['seed-1/run', 'seed-2/run']
    """
    parts = [run.resolve().parts for run in runs]
    for length in range(1, max(map(len, parts))):
        found = ["/".join(each[-length:]) for each in parts]
        if len(set(found)) == len(set(parts)):
            return found
    return [str(run) for run in runs]


def check_out(out: list[Path] | None, csv: Path | None, as_json: bool) -> None:
    """Raise, before anything is read or trained, where nothing can be written."""
    if not (out or csv or as_json):
        raise ConfigError("nothing says where the figure goes", "-o figure.png -o figure.svg")
    if out:
        from selftrain.experiments.figures.drawing import check

        check(out)


def wanted_of(
    method: list[str] | None,
    task: list[str] | None,
    on_rows: Literal["test", "design"],
    shots: int,
    backbone: str | None,
    preset: str | None,
    recipe: list[str] | None,
    seeds: str | None,
    rows: int | None,
) -> Wanted:
    """Which cells are meant, from flags."""
    require(shots >= 1, "--shots", shots, "1 or more", "--shots 16")

    from selftrain.experiments.figures import Wanted
    from selftrain.experiments.tables import Choice

    choice = Choice(
        scored_on=on_rows,
        shots=shots,
        backbone=backbone,
        preset=preset,
        recipes=tuple(recipe or ()),
        seeds=tuple(seeds_of(seeds)) if seeds is not None else (),
        rows=rows,
    )
    return Wanted(choice, tuple(method or ()), tuple(task or ()))


def show(
    numbers: Rounds | Calibration | Plane, out: list[Path] | None, csv: Path | None, as_json: bool
) -> None:
    """Write the figure and its data file, and print the numbers if asked."""
    if out:
        from selftrain.experiments.figures.drawing import save

        save(numbers, out)
    if csv:
        from selftrain.experiments.figures import write

        write(csv, numbers.rows())
    for path in [*(out or ()), *([csv] if csv else [])]:
        say(f"written: {path}")
    if as_json:
        show_json(numbers.rows())
