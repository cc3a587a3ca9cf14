"""A grid file: what to compare, as plain entries. Nothing heavy is imported here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from selftrain.data.toml import check_name, read_toml
from selftrain.errors import ConfigError, parsed

COMPARED = ("sst2", "agnews")
"""The default tasks of a grid or a sweep."""


class Asked(TypedDict, total=False):
    """The entries of a grid file; all are optional."""

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


def read_grid(path: Path | None) -> Asked:
    """The entries of a grid file, with names and types checked."""
    if path is None:
        return Asked()
    table = read_toml(path, "--grid", hint='methods = ["head-ft"]')
    for name in table:
        check_name(name, Asked.__annotations__, str(path))
    return parsed(Asked, table, str(path), ConfigError, 'tasks = ["sst2", "agnews"]', strict=True)
