"""Read TOML files of tasks and settings, with limits: a file may come from anyone."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from selftrain.errors import ConfigError, closest

MAX_BYTES = 2**20
MAX_DEPTH = 32  # tables and lists inside each other


def read_tables(path: Path, *, read_hint: str, syntax_hint: str) -> dict[str, Any]:
    """The tables of a TOML file.

    The hints are for a file that cannot be read and for one that is not TOML. Numbers have at most
    64 bits, as TOML promises, and tables are nested no deeper than recursion can follow.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", read_hint) from None
    try:
        if len(raw) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        tables = tomllib.loads(raw.decode("utf-8-sig"))
        _check_limits(tables)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}", syntax_hint) from None
    return tables


def read_toml(path: Path, flag: str, *, hint: str) -> dict[str, Any]:
    """The tables of a file given with a flag; the hint is an example of a correct line."""
    return read_tables(path, read_hint=f"{flag} FILE.toml", syntax_hint=hint)


def check_name(name: str, known: Collection[str], where: str) -> None:
    """Raise for an unknown entry: a misspelt one would silently change nothing."""
    if name not in known:
        near = closest(name, known)
        hint = f"did you mean `{near}`?" if near else f"known: {', '.join(known)}"
        raise ConfigError(f"{where}: unknown entry `{name}`", hint)


def _check_limits(value: object, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"more than {MAX_DEPTH} tables or lists inside each other")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("a whole number of more than 64 bits")
    members = list(value.values()) if isinstance(value, dict) else value
    if isinstance(members, list):
        for member in members:
            _check_limits(member, depth + 1)
