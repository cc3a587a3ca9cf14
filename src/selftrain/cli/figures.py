"""``selftrain figure``: the paper's figures, from finished cells and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftrain.cli import inputs, options
from selftrain.cli.bundles import Once, with_options
from selftrain.cli.talk import Watch, say, show_json
from selftrain.errors import ConfigError, RunError, require

if TYPE_CHECKING:
    from selftrain.data.rows import Labelled
    from selftrain.experiments.figures import Calibration, Plane, Rounds, Wanted
    from selftrain.experiments.figures.plane import View

figure = typer.Typer(
    help="The paper's figures, from finished cells and runs: PNG or SVG, and the numbers drawn.",
    no_args_is_help=True,
)


@dataclass(frozen=True, slots=True)
class DrawnOptions:
    """The methods and tasks of a figure."""

    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Once for each; else UPET's students, else all.",
            rich_help_panel=options.CELLS,
        ),
    ] = None
    task: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Once for each; else all.", rich_help_panel=options.CELLS
        ),
    ] = None

    def wanted(self, cells: options.CellOptions) -> Wanted:
        """The same for the room of figures."""
        from selftrain.experiments.figures import Wanted

        return Wanted(cells.choice(), tuple(self.method or ()), tuple(self.task or ()))


@dataclass(frozen=True, slots=True)
class FigureOutput:
    """Where a figure and its numbers go; raises, before anything is read, where nowhere."""

    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="PNG or SVG, by its name; may be repeated.",
            rich_help_panel=options.OUTPUT,
            callback=options.targets,
        ),
    ] = None
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The numbers drawn.",
            rich_help_panel=options.OUTPUT,
            callback=options.target,
        ),
    ] = None
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the numbers drawn.", rich_help_panel=options.OUTPUT),
    ] = False
    excel_safe: options.ExcelSafe = False

    def __post_init__(self) -> None:
        if self.excel_safe and self.csv is None:
            raise ConfigError("--excel-safe guards CSV, and none is asked for", "--csv numbers.csv")
        if not (self.out or self.csv or self.as_json):
            raise ConfigError("nothing says where the figure goes", "-o figure.png -o figure.svg")
        if self.out:
            from selftrain.experiments.figures.drawing import check

            check(self.out)

    def check_spared(self, *given: Path) -> None:
        """Raise where the figure or its numbers would be written over what they are made of."""
        inputs.check_spared([*(self.out or ()), self.csv], *given)

    def write(self, numbers: Rounds | Calibration | Plane) -> None:
        """Write the figure and its data file, and print the numbers if asked."""
        if self.out:
            from selftrain.experiments.figures.drawing import save

            save(numbers, self.out)
        if self.csv:
            from selftrain.experiments.figures import write

            write(self.csv, numbers.rows(), excel_safe=self.excel_safe)
        for path in [*(self.out or ()), *([self.csv] if self.csv else [])]:
            say(f"written: {path}")
        if self.as_json:
            show_json(numbers.rows())


@figure.command(cls=Once)
@with_options
def rounds(
    file: options.CellsFile,
    drawn: DrawnOptions,
    cells: options.CellOptions,
    output: FigureOutput,
) -> None:
    """Score by round: a panel for each task, mean ± sd over seeds (Figure 3).

    selftrain figure rounds cells.jsonl -o rounds.png -o rounds.svg --csv rounds.csv

    A run that ended early adds nothing to the rounds it does not have.
    """
    from selftrain.experiments.results import read

    output.check_spared(file)
    results = read(file)  # first: a bad file is found before torch is loaded

    from selftrain.experiments.figures import by_round

    output.write(by_round(results, drawn.wanted(cells)))


@figure.command(cls=Once)
@with_options
def calibration(
    file: options.CellsFile,
    drawn: DrawnOptions,
    cells: options.CellOptions,
    output: FigureOutput,
) -> None:
    """How sure beside how right: a panel for each method on a task, or for each task of a method.

    selftrain figure calibration cells.jsonl --task sst2 -o calibration.png

    On the diagonal, of the answers given with confidence 80 %, 80 % are right.
    """
    from selftrain.experiments.results import read

    results = read(file)

    from selftrain.experiments.figures import calibration as pooled

    output.write(pooled(results, drawn.wanted(cells)))


@figure.command(cls=Once)
@with_options
def tsne(
    *,
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Run folders, as `fit` and `bench` write them."),
    ],
    test: Annotated[
        Path, typer.Option(metavar="FILE", help="Labelled texts the runs have never seen.")
    ],
    rows: Annotated[
        int, typer.Option(metavar="N", help="At most this many, drawn by a hash of each text.")
    ] = 1000,
    columns: options.ColumnOptions,
    reading: options.ReadingOptions,
    backbone: options.RunBackbone = None,
    hardware: options.DeviceOptions,
    output: FigureOutput,
) -> None:
    """The features of the same texts in each run, on a plane by t-SNE (Figure 4).

    selftrain figure tsne run-with run-without --test test.jsonl -o features.png

    The silhouette below each panel says how far apart the classes are: of the features
    themselves, by cosine and gold class, from -1 over 0 (mixed) to 1 (far apart).
    """
    require(rows >= 3, "--rows", rows, "3 or more", "--rows 1000")
    output.check_spared(test, *runs)
    inputs.check_format_used(reading.format, test)

    from selftrain.data.read import read_labelled
    from selftrain.data.rows import Notes

    notes = Notes()
    with Watch() as watch:
        with watch.busy("reading"):
            labelled = read_labelled(test, columns.columns(), reading.reading(), notes=notes)
            for run in runs:
                inputs.check_fits(run, [row.example for row in labelled])
        inputs.tell(notes)
        with watch.busy("loading"):
            from selftrain.experiments.figures import Plane, chosen
            from selftrain.experiments.figures.plane import perplexity

        plotted = chosen(labelled, rows)
        loader = RunLoader(backbone, hardware, str(test), watch)
        views = [
            loader.view(run, name, plotted) for run, name in zip(runs, ends(runs), strict=True)
        ]
    near = f"{perplexity(len(plotted)):.3g}"
    setting = f"{len(plotted):,} rows of {test.name}; t-SNE by cosine, perplexity {near}"
    uids, gold = zip(*((row.example.uid, row.label) for row in plotted), strict=True)
    output.write(Plane(uids, gold, tuple(views), setting))


@dataclass(frozen=True, slots=True)
class RunLoader:
    """Lays out the features of one run after the other."""

    backbone: str | None
    hardware: options.DeviceOptions
    file: str
    """The name of the rows, for an error."""
    watch: Watch

    def view(self, run: Path, name: str, rows: Sequence[Labelled]) -> View:
        """The rows on a plane, by the features that the final model of a run gives them."""
        from selftrain.data.split import check_labels
        from selftrain.experiments.figures import features, view
        from selftrain.runs.read import last_accepted, read_manifest

        manifest, number = read_manifest(run), last_accepted(run)
        method = manifest.method.get("name")
        if not isinstance(method, str):
            raise RunError(f"the manifest of {run} names no method", "selftrain fit writes it")
        examples = [row.example for row in rows]
        model, machine = inputs.load_model(
            run, number, self.backbone, self.hardware, examples, self.watch
        )
        check_labels(rows, model.labels, self.file)
        vectors = features(model, rows, machine)
        gold = [row.label for row in rows]
        with self.watch.busy("laying out"):
            return view(name, method, vectors, gold, seed=manifest.seed, number=number)


def ends(runs: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that still differ, without more of a machine's folders.

    >>> ends([Path("/home/me/seed-1/run"), Path("/home/me/seed-2/run")])
    ['seed-1/run', 'seed-2/run']
    """
    parts = [run.resolve().parts for run in runs]
    for length in range(1, max(map(len, parts))):
        names = ["/".join(each[-length:]) for each in parts]
        if len(set(names)) == len(set(parts)):
            return names
    return [str(run) for run in runs]
