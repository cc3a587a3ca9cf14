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

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from selftrain.data.files import closest, read_tables
from selftrain.errors import ConfigError, first_problem

if TYPE_CHECKING:
    from selftrain.method.spec import Method

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

COMPARED = ("sst2", "agnews")
"""The tasks of a grid or a sweep that names none."""

Plain = Mapping[str, Any]


class Asked(TypedDict, total=False):
    """What a grid file may hold."""

    methods: list[str]
    tasks: list[str]
    backbones: list[str]
    seeds: list[int]
    shots: list[int | str]
    references: list[str]
    preset: str
    rounds: int
    rows: int
    every: dict[str, Any]
    variant: list[dict[str, Any]]


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


def read_grid(path: Path | None) -> Asked:
    """The entries of a grid file, each checked for name and kind."""
    if path is None:
        return Asked()
    from pydantic import TypeAdapter, ValidationError

    table = read_toml(path, "--grid", hint='methods = ["head-ft"]')
    for name in table:
        check_name(name, Asked.__annotations__, str(path))
    try:
        return TypeAdapter(Asked).validate_python(table, strict=True)
    except ValidationError as error:
        wrong = first_problem(error)
        raise ConfigError(
            f"{path}: `{wrong.place}` is {wrong.found!r}: {wrong.told.lower()}",
            'tasks = ["sst2", "agnews"]',
        ) from None


def read_toml(path: Path, flag: str, *, hint: str) -> dict[str, Any]:
    """The tables of a file that was given with a flag; the hint is a line as it should look."""
    return read_tables(path, unread=f"{flag} FILE.toml", wrong=hint)


def check_name(name: str, known: Collection[str], where: str) -> None:
    """Raise for an entry nobody reads: misspelt, it would change nothing in silence."""
    if name not in known:
        near = closest(name, known)
        hint = f"did you mean `{near}`?" if near else f"known: {', '.join(known)}"
        raise ConfigError(f"{where}: unknown entry `{name}`", hint)


def method_of(changes: Plain, preset: str = "laptop") -> Method:
    """The recipe that ``name`` names (UPET with a head and an adapter), with what differs from it.

    >>> method_of({"rounds": 1, "student": {"loss": {"tau": 4}}}).student[0].loss
    PHCE(tau=4.0, kind='phce')
    """
    from selftrain.method.recipes import DEFAULT, recipe
    from selftrain.method.spec import from_plain, to_plain

    chosen = recipe(str(changes.get("name", DEFAULT)), preset)
    differs = {key: value for key, value in changes.items() if key != "name"}
    return from_plain(merged(to_plain(chosen), differs)) if differs else chosen


def backbone_for(method: Method) -> str:
    """The embedded backbone a method can use: prompts need an MLM head."""
    return "minilm-mlm" if method.prompts else "minilm"


def given(flags: Plain) -> dict[str, Any]:
    """The entries that were given, in tables too: without None.

    >>> given({"seed": None, "method": {"name": None, "rounds": 2}})
    {'method': {'rounds': 2}}
    """
    kept = {
        key: given(value) if isinstance(value, Mapping) else value for key, value in flags.items()
    }
    return {key: value for key, value in kept.items() if value is not None}


def merged(base: Plain, changes: Plain) -> dict[str, Any]:
    """Tables are merged entry by entry; a table over a list changes each of its members.

    A changed ``kind`` starts from that kind's own defaults: the old entries would not fit it. Of
    two entries that exclude each other, the one in the changes wins.
    """
    whole = dict(base)
    for key, value in changes.items():
        old = whole.get(key)
        if isinstance(value, Mapping) and isinstance(old, list):
            whole[key] = [merged(member, value) for member in old]
        elif isinstance(value, Mapping) and isinstance(old, Mapping):
            other_kind = "kind" in value and value["kind"] != old.get("kind")
            whole[key] = dict(value) if other_kind else merged(old, value)
        else:
            whole[key] = value
    for one, other in (("steps", "epochs"), ("count", "shares")):
        if one in changes and other not in changes:
            whole.pop(other, None)
        elif other in changes and one not in changes:
            whole.pop(one, None)
    return whole
