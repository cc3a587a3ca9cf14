"""One TOML file for everything a run decides; flags of the command line override it.

backbone = "minilm"          # and revision, for one from the hub
preset = "laptop"
seed = 12
shots = 16                   # learn from this many rows a class, drawn by seed
threads = 2                  # and device, cache, cache_mb: where it runs, and last bits alone

[columns]                    # text, pair, label, id, pool_text
text = "review"

[task]                       # name (one of the seven, or a file); template and words, for prompts
template = "{text} It was {mask} ."
words = { positive = "great", negative = "terrible" }

[method]                     # a recipe, and what differs from it
name = "upet-prompt-adapter"
rounds = 2
[method.select]
how = "topk"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import NoneType
from typing import Any, Protocol, get_args, get_origin, get_type_hints

from selftrain.data.read import Columns, Reading
from selftrain.data.toml import check_name, read_toml
from selftrain.errors import ConfigError
from selftrain.method.changes import Plain, given, merged

SPOKEN = {
    str: ("text in quotes", '{} = "…"'),
    int: ("a whole number", "{} = 12"),
    bool: ("true or false", "{} = true"),
    dict: ("a table", "[{}]"),
}
"""What a kind is called, and how it is written."""
COLUMNS = tuple(each.name for each in fields(Columns))


class Bundle(Protocol):
    """Options of a command that are entries of a Config: see ``options``."""

    def entries(self) -> dict[str, Any]:
        """The entries; None for an option that was not given."""


@dataclass(frozen=True, slots=True)
class Config:
    """What a run decides; the tables hold only what differs from the recipe or the task."""

    backbone: str | None = None
    """minilm, minilm-mlm, a folder, or a name on the hub. Nothing: the embedded one that the
    method can use."""
    revision: str | None = None
    """The commit or branch of a backbone on the hub. Nothing: its main branch."""
    preset: str = "laptop"
    """Where a recipe's numbers come from: laptop or paper."""
    seed: int = 12
    """Everything random follows from it."""
    shots: int | None = None
    """Learn from this many rows a class, drawn by seed. Nothing: from all labelled rows."""
    device: str | None = None
    """cpu, cuda or mps. Nothing: the best this machine has."""
    threads: int | None = None
    """CPU threads of torch. Nothing: torch chooses."""
    cache: str | None = None
    """The folder for states of frozen layers while a run lasts. Nothing: the run folder."""
    cache_mb: int = 4096
    """At most this many megabytes of them; 0: they are computed each time."""
    precision: str = "fp32"
    """What the encoder computes with: fp32, tf32 or bf16."""
    checkpointing: bool = False
    """Whether a training step keeps what one batch needs, and encodes each batch twice."""
    accumulate: int = 1
    """Into how many batches the rows of a step are dealt at least; above 1 the same holds."""
    format: str | None = None
    """Of files whose names do not say it: csv, tsv, jsonl, json, parquet or xlsx. Nothing: csv for
    standard input and pipes."""
    keep_na: bool = False
    """Whether `NA`, `NULL` and `None` are classes and not empty labels."""
    exact_labels: bool = False
    """Whether labels that differ only in case, or as `1` and `1.0`, are different classes."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Which column holds what; see below."""
    task: Plain = field(default_factory=dict)
    """A known task or a task file by `name`, and what differs from it; see below."""
    method: Plain = field(default_factory=dict)
    """A recipe by `name`, and what differs from it; see below."""

    def reading(self) -> Reading:
        """How files are read."""
        return Reading(self.format, self.keep_na, self.exact_labels)

    def over(self, flags: Plain) -> Config:
        """The same with flags on top; one that was not given is None and changes nothing."""
        return Config(**merged(asdict(self), given(flags)))


def entry_kind(hint: Any) -> type:
    """The type of an entry in a TOML file, from the type of its field.

    >>> entry_kind(int | None), entry_kind(Mapping[str, str])
    (<class 'int'>, <class 'dict'>)
    """
    if get_origin(hint) is Mapping:
        return dict
    (kind,) = (each for each in get_args(hint) or (hint,) if each is not NoneType)
    assert isinstance(kind, type)
    return kind


KINDS = {name: entry_kind(hint) for name, hint in get_type_hints(Config).items()}


def settings_of(file: Path | None, *bundles: Bundle, start: Config | None = None) -> Config:
    """The settings of a command: the entries of its config file, and its options on top.

    ``start`` has what holds where neither says anything.
    """
    settings = read(file, start)
    for bundle in bundles:
        settings = settings.over(bundle.entries())
    return settings


def read(path: Path | None, start: Config | None = None) -> Config:
    """The file's entries, each checked for name and kind; the defaults where there is no file."""
    start = start or Config()
    if path is None:
        return start
    table = read_toml(path, "--config", hint='texts stand in quotes: backbone = "minilm"')
    for name, value in table.items():
        check_name(name, KINDS, str(path))
        if type(value) is not KINDS[name]:  # exactly: True would pass for a whole number
            kind, written = SPOKEN[KINDS[name]]
            raise ConfigError(
                f"{path}: `{name}` is {value!r}; expected {kind}", written.format(name)
            )
    for name, value in table.get("columns", {}).items():
        check_name(name, COLUMNS, f"{path}: columns")
        if not isinstance(value, str):
            raise ConfigError(f"{path}: `columns.{name}` is {value!r}", f'{name} = "COLUMN"')
    return replace(start, **table)
