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
from selftrain.data.places import Place
from selftrain.errors import ConfigError, RunError, require

if TYPE_CHECKING:
    from selftrain.data.rows import Labelled
    from selftrain.experiments.figures import BeforeAfter, CalibratedRun, Wanted
    from selftrain.experiments.figures.drawing import Numbers
    from selftrain.experiments.figures.plane import View
    from selftrain.model.classifier import Classifier
    from selftrain.training.machine import Machine

figure = typer.Typer(
    help="The paper's figures, from finished cells and runs: PNG or SVG, and the numbers drawn."
    "\n\nselftrain figure rounds cells.jsonl -o rounds.png",
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

    def check_spared(self, *given: Path | Place) -> None:
        """Raise where the figure or its numbers would be written over what they are made of."""
        inputs.check_spared([*(self.out or ()), self.csv], *given)

    def write(self, numbers: Numbers) -> None:
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
    *,
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="CELLS|RUN", help="A file of cells; with --test, run folders."),
    ],
    test: Annotated[
        Place | None,
        typer.Option(
            parser=options.place,
            metavar="FILE",
            help="Labelled texts: draw runs, before and after calibration.",
        ),
    ] = None,
    columns: options.ColumnOptions,
    reading: options.ReadingOptions,
    hardware: options.DeviceOptions,
    drawn: DrawnOptions,
    cells: options.CellOptions,
    output: FigureOutput,
) -> None:
    """How sure beside how right: of runs before and after calibration, or of cells.

    selftrain figure calibration run --test test.csv -o calibration.png

    selftrain figure calibration cells.jsonl --task sst2 -o calibration.png

    On the diagonal, of the answers given with confidence 80 %, 80 % are right. Of cells there is a
    panel for each method on a task, or for each task of a method.
    """
    output.check_spared(*sources, *([test] if test else []))
    if test is not None:
        with Watch() as watch:
            labelled = labelled_rows(sources, test, columns, reading, watch)
            loader = RunLoader(cells.backbone, hardware, str(test), watch)
            output.write(loader.all_before_after(sources, labelled))
        return
    require(len(sources) == 1, "the number of files of cells", len(sources), "1", "--test FILE")

    from selftrain.experiments.results import read

    results = read(sources[0])

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
        Place,
        typer.Option(
            parser=options.place, metavar="FILE", help="Labelled texts the runs have never seen."
        ),
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
    with Watch() as watch:
        labelled = labelled_rows(runs, test, columns, reading, watch)
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


def labelled_rows(
    runs: Sequence[Path],
    test: Place,
    columns: options.ColumnOptions,
    reading: options.ReadingOptions,
    watch: Watch,
) -> list[Labelled]:
    """The rows of a file, if they are of the kind that all the runs know."""
    inputs.check_format_used(reading.format, test)

    from selftrain.data.read import read_labelled
    from selftrain.data.rows import Notes

    notes = Notes()
    with watch.busy("reading"):
        labelled = read_labelled(test, columns.columns(), reading.reading(), notes=notes)
        for run in runs:
            inputs.check_fits(run, [row.example for row in labelled])
    inputs.tell(notes)
    return labelled


@dataclass(frozen=True, slots=True)
class RunLoader:
    """Loads the final model of one run after the other, and asks it about rows."""

    backbone: str | None
    hardware: options.DeviceOptions
    file: str
    """The name of the rows, for an error."""
    watch: Watch

    def view(self, run: Path, name: str, rows: Sequence[Labelled]) -> View:
        """The rows on a plane, by the features that the final model of a run gives them."""
        from selftrain.experiments.figures import features, view

        final = self.final(run, rows)
        vectors = features(final.model, rows, final.machine)
        gold = [row.label for row in rows]
        with self.watch.busy("laying out"):
            return view(name, final.method, vectors, gold, seed=final.seed, number=final.number)

    def all_before_after(self, runs: Sequence[Path], rows: Sequence[Labelled]) -> BeforeAfter:
        """What the final models of runs say of rows, before and after calibration."""
        from selftrain.experiments.figures import BeforeAfter

        panels = (
            self.before_after(run, name, rows) for run, name in zip(runs, ends(runs), strict=True)
        )
        return BeforeAfter(tuple(panels), f"{len(rows):,} rows of {Path(self.file).name}")

    def before_after(self, run: Path, name: str, rows: Sequence[Labelled]) -> CalibratedRun:
        """The curves of the final model of a run, as it was trained and calibrated."""
        from selftrain.experiments.figures import CalibratedRun, curve
        from selftrain.experiments.figures.before_after import BARE, CALIBRATED
        from selftrain.method.scores import tempered
        from selftrain.training.evaluate import answered

        final = self.final(run, rows)
        temperature = final.model.temperature
        if temperature == 1:
            raise RunError(
                f"{run} has no estimate that calibrates its round {final.number}",
                "give the same `selftrain fit` again, which writes one if the labels allow it",
            )
        final.model.temperature = 1.0
        bare, gold = answered(final.model, rows, final.machine)
        after = tempered(bare, temperature)
        curves = curve(BARE, bare, gold), curve(CALIBRATED, after, gold)
        classes = len(final.model.labels)
        return CalibratedRun(
            name, final.method, final.seed, final.number, classes, temperature, curves
        )

    def final(self, run: Path, rows: Sequence[Labelled]) -> FinalModel:
        """The model of the last accepted round of a run, which knows the labels of these rows."""
        from selftrain.data.split import check_labels
        from selftrain.runs.read import answering, read_manifest

        chosen = answering(run)
        run, number = chosen.folder, chosen.number
        manifest = read_manifest(run)
        method = manifest.method.get("name")
        if not isinstance(method, str):
            raise RunError(f"the manifest of {run} names no method", "selftrain fit writes it")
        examples = [row.example for row in rows]
        model, machine = inputs.load_model(
            run, number, self.backbone, self.hardware, examples, self.watch
        )
        check_labels(rows, model.labels, self.file)
        return FinalModel(model, machine, method, manifest.seed, number)


@dataclass(frozen=True, slots=True)
class FinalModel:
    """The model of the last accepted round of a run, and what a figure says of it."""

    model: Classifier
    machine: Machine
    method: str
    seed: int
    number: int


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
