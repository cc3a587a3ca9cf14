"""The flags that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from selftrain.errors import ConfigError

DATA, METHOD, PROMPT, MACHINE = "Data", "Method", "Prompt methods", "Machine"
"""The groups of a help page."""

RunFolder = Annotated[Path, typer.Argument(help="A run folder, as `selftrain fit` writes it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown instead of a table.")]
OnRows = Annotated[
    Literal["test", "design"], typer.Option("--on", help="The rows scored at the end.")
]

CELLS, OUTPUT = "Cells", "Output"
"""The groups of a help page of what is made of cells."""

CellsOn = Annotated[
    Literal["test", "design"],
    typer.Option("--on", help="Cells scored on which rows.", rich_help_panel=CELLS),
]
CellShots = Annotated[
    int, typer.Option("--shots", metavar="N", help="Labels a class.", rich_help_panel=CELLS)
]
CellBackbone = Annotated[
    str | None,
    typer.Option(
        "--backbone",
        metavar="NAME",
        help="This one only; a figure needs it where cells are of several.",
        rich_help_panel=CELLS,
    ),
]
CellPreset = Annotated[
    str | None,
    typer.Option(
        "--preset", metavar="NAME", help="Needed where cells are of several.", rich_help_panel=CELLS
    ),
]
CellRecipes = Annotated[
    list[str] | None,
    typer.Option(
        "--recipe",
        metavar="HASH",
        help="Where a method has cells of several; may be repeated.",
        rich_help_panel=CELLS,
    ),
]
CellSeeds = Annotated[
    str | None,
    typer.Option(
        "--seeds", metavar="N,N,…", help="These only, with commas.", rich_help_panel=CELLS
    ),
]
CellRows = Annotated[
    int | None,
    typer.Option(
        "--rows",
        metavar="N",
        help="Cells of a bench with --rows N; needed where they are of several.",
        rich_help_panel=CELLS,
    ),
]

TextColumn = Annotated[
    str | None,
    typer.Option("--text", metavar="COLUMN", help="Column of the text.", rich_help_panel=DATA),
]
PairColumn = Annotated[
    str | None,
    typer.Option(
        "--pair", metavar="COLUMN", help="Column of the second text.", rich_help_panel=DATA
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label", metavar="COLUMN", help="Column of the label.", rich_help_panel=DATA),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COLUMN", help="Column that names each row.", rich_help_panel=DATA
    ),
]

MethodName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="See `selftrain methods` (upet-head-adapter).", rich_help_panel=METHOD
    ),
]
PresetName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="laptop or paper (laptop).", rich_help_panel=METHOD),
]
BackboneName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="minilm, minilm-mlm (for prompts), a folder, or a name on the hub.",
        rich_help_panel=METHOD,
    ),
]
GivenBackbone = Annotated[
    str | None,
    typer.Option(
        "--backbone",
        metavar="NAME",
        help="Where the run's backbone is, if it is not an embedded one.",
        rich_help_panel=METHOD,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A TOML file for all of this; flags override it.",
        rich_help_panel=METHOD,
    ),
]

TaskName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="One of the seven tasks, or a TOML file.", rich_help_panel=PROMPT
    ),
]
TemplateText = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help='Such as "{text} It was {mask} ."', rich_help_panel=PROMPT),
]
LabelWords = Annotated[
    list[str] | None,
    typer.Option(
        "--word", metavar="LABEL=WORD", help="Once for each class.", rich_help_panel=PROMPT
    ),
]

Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="cpu, cuda or mps; else the best there is.", rich_help_panel=MACHINE
    ),
]
Threads = Annotated[
    int | None, typer.Option(metavar="N", help="CPU threads of torch.", rich_help_panel=MACHINE)
]
Cache = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="For states of frozen layers while it runs; else the run folder.",
        rich_help_panel=MACHINE,
    ),
]
CacheMb = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="The most megabytes of that (4096); 0: none.", rich_help_panel=MACHINE
    ),
]


def check_one(as_json: bool, as_markdown: bool) -> None:
    """Raise where two formats are asked for: one would be passed over in silence."""
    if as_json and as_markdown:
        raise ConfigError("--json and --markdown are both given; expected one", "leave one out")
