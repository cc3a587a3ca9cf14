"""One TOML file for everything a run decides; flags of the command line override it.

backbone = "minilm"          # and revision, for one from the hub
preset = "laptop"
seed = 12
shots = 16                   # learn from this many rows a class, drawn by seed
threads = 2                  # and device, cache, cache_mb: where it runs, and last bits alone

[columns]                    # text, pair, label, id
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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from selftrain.errors import ConfigError

if TYPE_CHECKING:
    pass
from selftrain.data.toml import check_name, read_toml
from selftrain.method.changes import Plain, given, merged

KINDS = {
    "backbone": str,
    "revision": str,
    "preset": str,
    "seed": int,
    "shots": int,
    "device": str,
    "threads": int,
    "cache": str,
    "cache_mb": int,
    "columns": dict,
    "task": dict,
    "method": dict,
}
SPOKEN = {
    str: ("text in quotes", '{} = "…"'),
    int: ("a whole number", "{} = 12"),
    dict: ("a table", "[{}]"),
}
"""What a kind is called, and how it is written."""
COLUMNS = ("text", "pair", "label", "id")


@dataclass(frozen=True, slots=True)
class Config:
    """What a run decides; the tables hold only what differs from the recipe or the task."""

    backbone: str | None = None
    """None: the embedded one that the method can use."""
    revision: str | None = None
    preset: str = "laptop"
    seed: int = 12
    shots: int | None = None
    device: str | None = None
    threads: int | None = None
    cache: str | None = None
    cache_mb: int = 4096
    columns: Mapping[str, str] = field(default_factory=dict)
    task: Plain = field(default_factory=dict)
    method: Plain = field(default_factory=dict)

    def over(self, flags: Plain) -> Config:
        """The same with flags on top; one that was not given is None and changes nothing."""
        return Config(**merged(asdict(self), given(flags)))


def read(path: Path | None) -> Config:
    """The file's entries, each checked for name and kind; the defaults where there is no file."""
    if path is None:
        return Config()
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
    return Config(**table)
