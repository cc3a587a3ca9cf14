"""TOML files, read with limits."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selftrain.errors import ConfigError, closest

if TYPE_CHECKING:
    pass
LARGEST_TOML = 2**20  # bytes
DEEPEST_TOML = 32  # tables and lists inside each other


# ── settings ──


def read_tables(path: Path, *, unread: str, wrong: str) -> dict[str, Any]:
    """The tables of a TOML file; a hint for one that cannot be read, and one for one that is wrong.

    A number has 64 bits, as TOML promises, and tables are no deeper than a recursion may go.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_TOML + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", unread) from None
    try:
        if len(raw) > LARGEST_TOML:
            raise ValueError(f"it has more than {LARGEST_TOML:,} bytes")
        tables = tomllib.loads(raw.decode("utf-8"))
        _check_plain(tables)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}", wrong) from None
    return tables


def _check_plain(value: object, depth: int = 0) -> None:
    if depth > DEEPEST_TOML:
        raise ValueError(f"more than {DEEPEST_TOML} tables or lists inside each other")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("a whole number of more than 64 bits")
    inside = list(value.values()) if isinstance(value, dict) else value
    if isinstance(inside, list):
        for member in inside:
            _check_plain(member, depth + 1)


def read_toml(path: Path, flag: str, *, hint: str) -> dict[str, Any]:
    """The tables of a file that was given with a flag; the hint is a line as it should look."""
    return read_tables(path, unread=f"{flag} FILE.toml", wrong=hint)


def check_name(name: str, known: Collection[str], where: str) -> None:
    """Raise for an entry nobody reads: misspelt, it would change nothing in silence."""
    if name not in known:
        near = closest(name, known)
        hint = f"did you mean `{near}`?" if near else f"known: {', '.join(known)}"
        raise ConfigError(f"{where}: unknown entry `{name}`", hint)
