"""The options that commands share, each written once, in bundles.

A bundle's ``entries`` are its options as entries of a ``Config``: see ``config.settings_of``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from selftrain.data.places import Place
from selftrain.errors import ConfigError, require

if TYPE_CHECKING:
    from selftrain.data.read import Columns, Reading
    from selftrain.experiments.tables import Choice

DATA, METHOD, PROMPT, MACHINE = "Data", "Method", "Prompt methods", "Machine"
CELLS, OUTPUT = "Cells", "Output"
"""The groups of a help page."""

Entries = dict[str, Any]

# ── single options ──

RunFolder = Annotated[Path, typer.Argument(help="A run folder, as `selftrain fit` writes it.")]
CellsFile = Annotated[
    Path, typer.Argument(metavar="CELLS", help="Cells, as `selftrain bench` writes them.")
]


def place(text: str) -> Place:
    """Where rows come from; typer's own paths would lose a slash of ``s3://``."""
    return Place.of(text)


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ScoredOn = Annotated[
    Literal["test", "design"], typer.Option("--on", help="The rows scored at the end.")
]
RoundNumber = Annotated[
    int | None,
    typer.Option(
        "--round",
        metavar="N",
        help="Use the model of this round (0: the teacher), else the last accepted or kept one.",
    ),
]
Raw = Annotated[
    bool, typer.Option("--raw", help="Give the model's bare probabilities, not calibrated.")
]
Prior = Annotated[
    str,
    typer.Option(
        metavar="SHARES",
        help="Class shares that the answers are for: `model` (as they are), `pool` (estimated), "
        "or yours: good=0.2,bad=0.8. Other shares change answers.",
    ),
]
ExcelSafe = Annotated[
    bool,
    typer.Option("--excel-safe", help="CSV for spreadsheets: no text in it is run as a formula."),
]
RunBackbone = Annotated[
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
PresetName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="laptop or paper (laptop).", rich_help_panel=METHOD),
]

# ── where something is written: checked before any work is done ──


def local_folder(path: Path) -> Path:
    """A folder to write; an address of a store elsewhere is an error."""
    from selftrain.disk import check_local

    check_local(path, "a folder to write")
    return path


def target(path: Path | None) -> Path | None:
    """A file to write; an error where it could not be written."""
    from selftrain.disk import check_target

    if path is not None:
        check_target(path)
    return path


def targets(paths: list[Path] | None) -> list[Path] | None:
    """Files to write, in the same way."""
    for path in paths or ():
        target(path)
    return paths


# ── what a run is made of ──


@dataclass(frozen=True, slots=True)
class TextColumns:
    """Which columns of a file hold the texts."""

    text: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the text.", rich_help_panel=DATA),
    ] = None
    pair: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the second text.", rich_help_panel=DATA),
    ] = None
    id: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column that names each row.", rich_help_panel=DATA),
    ] = None

    def columns(self) -> Columns:
        """The same for a reader of files."""
        from selftrain.data.read import Columns

        return Columns(**asdict(self))

    def entries(self) -> Entries:
        """As entries of a Config."""
        return {"columns": asdict(self)}


@dataclass(frozen=True, slots=True)
class ColumnOptions(TextColumns):
    """Which columns of a file hold the texts and their labels."""

    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the label.", rich_help_panel=DATA),
    ] = None


@dataclass(frozen=True, slots=True)
class RunColumns(ColumnOptions):
    """The columns of all files of a run; those of the pool may have another name."""

    pool_text: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the text in the pool, if it has another name there.",
            rich_help_panel=DATA,
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class InputFormat:
    """The format of files whose names do not say it."""

    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of a file without an ending, or of - (csv): csv, tsv, jsonl, json, …",
            rich_help_panel=DATA,
        ),
    ] = None

    def reading(self) -> Reading:
        """The same for a reader of files."""
        from selftrain.data.read import Reading

        return Reading(**asdict(self))

    def entries(self) -> Entries:
        """As entries of a Config, which has the same names; a flag that is off says nothing."""
        return {name: value or None for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class ReadingOptions(InputFormat):
    """How labelled files are read: their format, and which labels are classes."""

    keep_na: Annotated[
        bool,
        typer.Option(
            "--keep-na", help="NA, NULL and None are classes, not empty.", rich_help_panel=DATA
        ),
    ] = False
    exact_labels: Annotated[
        bool,
        typer.Option(
            "--exact-labels",
            help="Labels that differ in case, or as 1 and 1.0, are two classes.",
            rich_help_panel=DATA,
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """The files of a run, and how many labelled rows it learns from."""

    labelled: Annotated[
        Place | None,
        typer.Argument(
            parser=place,
            help="Labelled texts: CSV, TSV, JSON, Parquet or Excel; - is stdin. Here and below a "
            'file may be a folder of them, a glob ("a/*.csv") or an address (s3://bucket/a).',
        ),
    ] = None
    labelled_file: Annotated[
        Place | None,
        typer.Option("--labelled", parser=place, metavar="FILE", help="The same as an option."),
    ] = None
    unlabelled: Annotated[
        list[Place],
        typer.Option(
            "--unlabelled",
            "-u",
            parser=place,
            metavar="FILE",
            help="Texts without labels; may be repeated.",
        ),
    ]
    dev: Annotated[
        Place | None,
        typer.Option(
            parser=place,
            metavar="FILE",
            help="Labelled texts, scored after each round; they change no decision.",
            rich_help_panel=DATA,
        ),
    ] = None
    test: Annotated[
        Place | None,
        typer.Option(
            parser=place,
            metavar="FILE",
            help="Labelled texts, removed from the pool and scored once at the end.",
            rich_help_panel=DATA,
        ),
    ] = None
    shots: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="Learn from K rows a class, drawn by seed.", rich_help_panel=DATA
        ),
    ] = None

    def __post_init__(self) -> None:
        given = [file for file in (self.labelled, self.labelled_file) if file is not None]
        if len(given) != 1:
            problem = "are given twice" if given else "are not given"
            raise ConfigError(
                f"the labelled texts {problem}; expected one file",
                "selftrain fit labelled.csv --unlabelled pool.csv -o run",
            )

    @property
    def gold(self) -> Place:
        """The file of the labelled texts."""
        file = self.labelled or self.labelled_file
        assert file is not None
        return file

    def entries(self) -> Entries:
        """As entries of a Config."""
        return {"shots": self.shots}


@dataclass(frozen=True, slots=True)
class MethodOptions:
    """A method and its backbone."""

    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="See `selftrain methods` (supcon; of a sweep upet-head-adapter).",
            rich_help_panel=METHOD,
        ),
    ] = None
    preset: PresetName = None
    backbone: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="minilm, minilm-mlm (for prompts), a folder, or a name on the hub.",
            rich_help_panel=METHOD,
        ),
    ] = None

    def entries(self) -> Entries:
        """As entries of a Config."""
        return {
            "backbone": self.backbone,
            "preset": self.preset,
            "method": {"name": self.method},
        }


@dataclass(frozen=True, slots=True)
class TrainingOptions(MethodOptions):
    """A method, its backbone, and what a single run may change."""

    rounds: Annotated[
        int | None,
        typer.Option(
            metavar="R",
            help="Rounds with a student of their own (supcon: 1; probe: 0; others 3; paper: 5).",
            rich_help_panel=METHOD,
        ),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Everything random follows from it (12).", rich_help_panel=METHOD
        ),
    ] = None
    config: ConfigFile = None

    def entries(self) -> Entries:
        """As entries of a Config."""
        return {
            **MethodOptions.entries(self),
            "seed": self.seed,
            "method": {"name": self.method, "rounds": self.rounds},
        }


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """How long a run may take, or what it would take."""

    minutes: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Train what fits into N minutes: stop after a whole round; the same command "
            "without it goes on.",
            rich_help_panel=METHOD,
        ),
    ] = None
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show the stages with their seconds, memory and disk; train and write nothing.",
        ),
    ] = False

    def __post_init__(self) -> None:
        hint = "--minutes 5, or leave it out: the run then takes the time it needs"
        valid = self.minutes is None or self.minutes > 0
        require(valid, "--minutes", self.minutes, "a number above 0", hint)


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """What a prompt method needs: a template, and a word for each class."""

    task: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="One of the seven tasks, or a TOML file.", rich_help_panel=PROMPT
        ),
    ] = None
    template: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help='Such as "{text} It was {mask} ."', rich_help_panel=PROMPT
        ),
    ] = None
    word: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL=WORD", help="Once for each class.", rich_help_panel=PROMPT),
    ] = None

    def words(self) -> dict[str, str]:
        """The label word of each class."""
        return words_of(self.word or ())

    def entries(self) -> Entries:
        """As entries of a Config."""
        task = {"name": self.task, "template": self.template, "words": self.words()}
        return {"task": task}


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """What computes."""

    device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="cpu, cuda or mps; else the best there is.",
            rich_help_panel=MACHINE,
        ),
    ] = None
    threads: Annotated[
        int | None,
        typer.Option(metavar="N", help="CPU threads of torch.", rich_help_panel=MACHINE),
    ] = None

    def entries(self) -> Entries:
        """As entries of a Config, which has the same names."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class MachineOptions(DeviceOptions):
    """What computes, and how much disk it may use while it trains."""

    cache: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="For states of frozen layers while it runs; else the run folder.",
            rich_help_panel=MACHINE,
        ),
    ] = None
    cache_mb: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="At most this many megabytes of them (4096); 0: none.",
            rich_help_panel=MACHINE,
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class FitMachineOptions(MachineOptions):
    """The same for `fit`, with what matters in training alone."""

    precision: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="fp32, tf32 (cuda) or bf16: the encoder's numbers. The run keeps it (fp32).",
            rich_help_panel=MACHINE,
        ),
    ] = None
    checkpointing: Annotated[
        bool | None,
        typer.Option(
            "--checkpointing",
            help="Less memory in training: encode each batch of a step twice. Same result.",
            rich_help_panel=MACHINE,
        ),
    ] = None
    accumulate: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="The same, in N batches a step or more; dropout then draws other noise (1).",
            rich_help_panel=MACHINE,
        ),
    ] = None


# ── what is made of cells, and how a result is written ──


@dataclass(frozen=True, slots=True)
class CellOptions:
    """Which cells of a file stand in a table or a figure."""

    scored_on: Annotated[
        Literal["test", "design"],
        typer.Option("--on", help="Cells scored on which rows.", rich_help_panel=CELLS),
    ] = "test"
    shots: Annotated[
        int, typer.Option(metavar="N", help="Labels a class.", rich_help_panel=CELLS)
    ] = 16
    backbone: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="This one only; a figure needs it where cells are of several.",
            rich_help_panel=CELLS,
        ),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Needed where cells are of several.", rich_help_panel=CELLS
        ),
    ] = None
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HASH",
            help="Where a method has cells of several; may be repeated.",
            rich_help_panel=CELLS,
        ),
    ] = None
    seeds: Annotated[
        str | None,
        typer.Option(metavar="N,N,…", help="These only, with commas.", rich_help_panel=CELLS),
    ] = None
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Cells of a bench with --rows N; needed where they are of several.",
            rich_help_panel=CELLS,
        ),
    ] = None

    def __post_init__(self) -> None:
        require(self.shots >= 1, "--shots", self.shots, "1 or more", "--shots 16")
        seeds_of(self.seeds)

    def choice(self, **more: Any) -> Choice:
        """The same for the room of tables, with what a table alone can choose."""
        from selftrain.experiments.tables import Choice

        return Choice(
            scored_on=self.scored_on,
            shots=self.shots,
            backbone=self.backbone,
            preset=self.preset,
            recipes=tuple(self.recipe or ()),
            seeds=tuple(seeds_of(self.seeds)),
            rows=self.rows,
            **more,
        )


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """How a result is printed: as a table, unless a flag says otherwise."""

    as_json: Json = False
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown instead of a table.")
    ] = False

    def __post_init__(self) -> None:
        if self.as_json and self.as_markdown:
            raise ConfigError("--json and --markdown are both given; expected one", "leave one out")


# ── values that are written in a small language ──


def words_of(items: Sequence[str]) -> dict[str, str]:
    """The label word of each class, from ``LABEL=WORD``; a label may hold an equals sign.

    Labels are cleaned as those of data files are.

    >>> words_of(["positive=great", "a=b=bad"])
    {'positive': 'great', 'a=b': 'bad'}
    """
    from selftrain.data.columns import clean_label

    words: dict[str, str] = {}
    for item in items:
        typed, equals, word = item.rpartition("=")
        label = clean_label(typed)
        if not (label and equals and word):
            raise ConfigError(f"--word is {item!r}; expected LABEL=WORD", "--word positive=great")
        if label in words:
            raise ConfigError(
                f"--word gives `{label}` two words: `{words[label]}` and `{word}`",
                "leave one out; several words of a class stand in a task file: --task FILE",
            )
        words[label] = word
    return words


def seeds_of(text: str | None) -> list[int]:
    """Seeds from a list with commas, each once; none where no list is given.

    >>> seeds_of("12, 21,12"), seeds_of(None)
    ([12, 21], [])
    """
    if text is None:
        return []
    try:
        return list(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise ConfigError(
            f"--seeds is {text!r}; expected whole numbers with commas", "--seeds 12,21,42"
        ) from None
