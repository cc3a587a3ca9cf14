"""``selftrain table``: the paper's tables from a file of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from selftrain.cli import options
from selftrain.cli.bundles import with_options
from selftrain.cli.inputs import check_spared
from selftrain.cli.talk import json_of, say, show
from selftrain.errors import ConfigError, require
from selftrain.escape import printable

if TYPE_CHECKING:
    from selftrain.experiments.tables import Sheet

Kind = Literal["main", "pel", "shots", "alpha", "ablation", "nonbert", "data", "grid", "speed"]
Format = Literal["text", "markdown", "csv", "latex"]

WHICH = frozenset({"file", "scored_on", "backbone", "preset", "recipe", "seeds", "rows"})
"""Flags that say which cells are meant."""
SCORED = WHICH | {"metric", "shots", "compare", "paper"}
READ: dict[Kind, frozenset[str]] = {
    "main": SCORED,
    "pel": SCORED,
    "shots": SCORED - {"shots"},
    "alpha": SCORED,
    "ablation": SCORED,
    "nonbert": WHICH,  # it always shows the paper's numbers
    "data": frozenset({"data"}),
    "grid": frozenset({"sweep"}),
    "speed": WHICH | {"shots"},
}
"""The flags that a table reads, beside those that say how it is written."""
ENDINGS = {".md": "markdown", ".csv": "csv", ".tex": "latex"}


@dataclass(frozen=True, slots=True)
class SheetOptions:
    """What a table shows of its cells, and what it shown."""

    metric: Annotated[
        Literal["accuracy", "macro_f1", "f1"],
        typer.Option(help="f1: of the class that the task names.", rich_help_panel=options.CELLS),
    ] = "accuracy"
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B",
            help="Test these two methods and no others: a family of one comparison.",
            rich_help_panel=options.CELLS,
        ),
    ] = None
    paper: Annotated[bool, typer.Option("--paper", help="The paper's own numbers below ours.")] = (
        False
    )

    def __post_init__(self) -> None:
        if self.compare is not None:
            two, hint = self.compare[0] != self.compare[1], "--compare upet-head-adapter head-st"
            require(two, "--compare", " ".join(self.compare), "two methods", hint)


@dataclass(frozen=True, slots=True)
class TableOutput:
    """How a table is written, and where."""

    form: Annotated[
        Format | None,
        typer.Option(
            "--format", help="Else by the name of --out, else text.", rich_help_panel=options.OUTPUT
        ),
    ] = None
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Instead of stdout; may be repeated.",
            rich_help_panel=options.OUTPUT,
            callback=options.targets,
        ),
    ] = None
    as_json: options.Json = False
    excel_safe: options.ExcelSafe = False

    def forms(self) -> list[tuple[str, Path | None]]:
        """Each format, with the file it goes to."""
        outs: Sequence[Path | None] = self.out or (None,)
        forms = [(format_of(self.form, out, as_json=self.as_json), out) for out in outs]
        if self.excel_safe and {form for form, _ in forms} != {"csv"}:
            raise ConfigError(
                "--excel-safe guards CSV, and another format is asked for", "-o table.csv"
            )
        return forms


@with_options
def table(
    *,
    context: typer.Context,
    kind: Annotated[Kind, typer.Argument(help="Which table.")],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="CELLS", help="Cells, as `selftrain bench` writes them."),
    ] = None,
    cells: options.CellOptions,
    shown: SheetOptions,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="For `data`: one folder for each task."),
    ] = None,
    sweep: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For `grid`: a report of a sweep.")
    ] = None,
    output: TableOutput,
) -> None:
    """The paper's tables from finished cells: means over seeds, and whether a difference is luck.

    selftrain table main cells.jsonl --paper

    selftrain table data --data folder
    """
    check_read(context, kind)
    forms = output.forms()  # before anything is read
    check_spared([out for _, out in forms], file, sweep)
    if kind == "data":
        sheets = [data_sheet(data)]
    elif kind == "grid":
        sheets = [grid_sheet(sweep)]
    else:
        sheets = cell_sheets(kind, file, cells, shown)
    for form, out in forms:
        if form == "text":
            show_sheets(sheets)
        else:
            write(sheets, form, out, excel_safe=output.excel_safe)


def check_read(context: typer.Context, kind: Kind) -> None:
    """Raise for a flag that this table would ignore."""
    read = READ[kind] | {"kind", "form", "out", "as_json", "excel_safe"}
    for each in context.command.params:
        source = context.get_parameter_source(each.name or "")
        if source is not None and source.name == "COMMANDLINE" and each.name not in read:
            named = each.opts[0] if each.opts[0].startswith("-") else "CELLS"
            raise ConfigError(f"table {kind} does not read {named}", f"leave out {named}")


def format_of(form: Format | None, out: Path | None, *, as_json: bool = False) -> str:
    """The format asked for, else that of the file's name, else a table for the terminal."""
    if as_json:
        alone = form is None and (out is None or out.suffix.lower() not in ENDINGS)
        if not alone:
            raise ConfigError("--json is a format, and another is asked for", "leave one out")
        return "json"
    if out is None:
        return form or "text"
    found = form or ENDINGS.get(out.suffix.lower())
    if found is None or found == "text":
        what = "is for a terminal" if found else f"has an ending that says no format: {out.name}"
        raise ConfigError(
            f"{'text' if found else '--out'} {what}",
            f"--format markdown, csv or latex; or a name that ends in {', '.join(ENDINGS)}",
        )
    return found


def cell_sheets(
    kind: Kind, file: Path | None, cells: options.CellOptions, shown: SheetOptions
) -> list[Sheet]:
    """The sheets of a table that is made of cells."""
    if file is None:
        raise ConfigError(
            f"table {kind} is made of cells, and no file of them is given",
            f"selftrain table {kind} cells.jsonl",
        )

    from selftrain.experiments.results import read

    results = read(file)  # first: a bad file is found before torch is loaded

    from selftrain.experiments.tables import KINDS

    choice = cells.choice(metric=shown.metric, compare=shown.compare, paper=shown.paper)
    return KINDS[kind](results, choice)


def data_sheet(data: Path | None) -> Sheet:
    """Table 7."""
    if data is None:
        raise ConfigError("table data counts the rows of a folder", "--data DIR")

    from selftrain.experiments.tables import corpora

    return corpora(data)


def grid_sheet(sweep: Path | None) -> Sheet:
    """Table 8."""
    from selftrain.experiments.tables import read_sweep, search

    return search(read_sweep(sweep) if sweep else None)


def show_sheets(sheets: Sequence[Sheet]) -> None:
    """Tables for a terminal, with the notes of each below it."""
    for place, sheet in enumerate(sheets):
        if place:
            print()
        numeric = sheet.words < len(sheet.head)
        show(sheet.head, sheet.rows, title=sheet.title, numeric=numeric)
        for note in sheet.notes:
            print(printable(note))


def write(sheets: Sequence[Sheet], form: str, out: Path | None, *, excel_safe: bool) -> None:
    """The sheets as text of that format, on stdout or in a file that appears complete."""
    from selftrain.disk import replacing
    from selftrain.experiments.tables import FORMATS
    from selftrain.experiments.tables.sheet import csv

    if form == "json":
        text = json_of([asdict(sheet) for sheet in sheets], indent=2)
    elif form == "csv":
        text = csv(sheets, excel_safe=excel_safe)
    else:
        text = FORMATS[form](sheets)
    if out is None:
        print(text)
        return
    with replacing(out.resolve()) as temporary:  # resolved: a link stays, its target is replaced
        temporary.write_text(text + "\n", encoding="utf-8")
    say(f"written: {out}")
