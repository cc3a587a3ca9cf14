"""One TOML file for everything a run decides; flags of the command line go before it.

backbone = "minilm"
preset = "laptop"
seed = 12

[columns]                    # text, pair, label, id
text = "review"

[task]                       # template and words, for prompt methods
template = "{text} It was {mask} ."
words = { positive = "great", negative = "terrible" }

[method]                     # a recipe, and what differs from it
name = "upet-prompt-adapter"
rounds = 2
[method.select]
how = "topk"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selftrain.errors import ConfigError

if TYPE_CHECKING:
    from selftrain.method import Method

KNOWN = {
    "backbone": str,
    "revision": str,
    "preset": str,
    "seed": int,
    "columns": dict,
    "task": dict,
    "method": dict,
}


@dataclass(frozen=True, slots=True)
class Config:
    """What the file says; what it leaves out is None or empty."""

    backbone: str | None = None
    revision: str | None = None
    preset: str | None = None
    seed: int | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    task: Mapping[str, Any] = field(default_factory=dict)
    method: Mapping[str, Any] = field(default_factory=dict)


def read(path: Path | None) -> Config:
    """The file's entries, each checked for name and type; nothing for no file."""
    if path is None:
        return Config()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    for name, value in table.items():
        if name not in KNOWN:
            raise ConfigError(f"{path}: unknown entry `{name}`", f"known: {', '.join(KNOWN)}")
        if type(value) is not KNOWN[name]:
            kind = "table" if KNOWN[name] is dict else KNOWN[name].__name__
            raise ConfigError(f"{path}: `{name}` is {value!r}; expected a {kind}")
    return Config(**table)


def method_of(
    name: str | None, preset: str | None, changes: Mapping[str, Any], rounds: int | None
) -> Method:
    """The recipe of that name and preset, with the file's changes and the flag's rounds on top."""
    from selftrain.method import from_plain, to_plain
    from selftrain.recipes import DEFAULT, recipe

    chosen = recipe(name or str(changes.get("name", DEFAULT)), preset or "laptop")
    differs = {key: value for key, value in changes.items() if key != "name"}
    if rounds is not None:
        differs["rounds"] = rounds
    return from_plain(merged(to_plain(chosen), differs)) if differs else chosen


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged entry by entry; a table over a list changes each of its members.

    A changed ``kind`` starts from that kind's own defaults: the old entries would not fit it.
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
