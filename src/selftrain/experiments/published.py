"""The numbers that the paper prints, as data, to stand beside ours in a table.

``published.toml`` holds them as printed, under our names of methods and tasks. Scores are percent.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

FILE = Path(__file__).with_name("published.toml")

Shots = int | Literal["full"]


@dataclass(frozen=True, slots=True)
class Row:
    """A method's scores on the seven tasks (Tables 1, 3 and 5)."""

    name: str
    """As the paper prints it."""
    method: str
    mean: tuple[float, ...]
    """In the order of ``Published.tasks``."""
    sd: tuple[float, ...] | None = None
    average: float | None = None
    """As printed: not always the mean of the row."""
    shots: Shots = 16
    tunable: str | None = None


@dataclass(frozen=True, slots=True)
class Pel:
    """A choice of full or parameter-efficient teacher and student (Table 2)."""

    method: str
    tunable: str
    """Teacher + student."""
    average: float
    hours: float


@dataclass(frozen=True, slots=True)
class System:
    """A system on AGNews with that many labels in all (Table 6)."""

    name: str
    labels: int
    accuracy: float
    method: str | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """Classes and rows of a task (Table 7)."""

    classes: int
    train: int
    test: int


@dataclass(frozen=True, slots=True)
class Searched:
    """A value that the authors searched or fixed (Table 8)."""

    name: str
    values: tuple[float | int, ...]
    keys: tuple[str, ...]
    """How a sweep of ours may name it."""

    def known_as(self, key: str) -> bool:
        """Whether a sweep's key means this value: by its full name, or the end of its path.

        >>> Searched("alpha", (0.1,), ("alpha",)).known_as("select.score.alpha")
        True
        """
        return any(f".{key}".endswith(f".{name}") for name in self.keys)


@dataclass(frozen=True, slots=True)
class Published:
    """Everything the paper prints in Tables 1 to 8."""

    backbone: str
    tasks: tuple[str, ...]
    main: tuple[Row, ...]
    pel: tuple[Pel, ...]
    shots: tuple[Row, ...]
    alpha: dict[str, float]
    """Alpha as printed, ``None`` among them → average over the tasks."""
    ablation: tuple[Row, ...]
    nonbert: tuple[System, ...]
    data: dict[str, Counts]
    grid: tuple[Searched, ...]
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By table: what a reader of its numbers should know."""


@cache
def numbers() -> Published:
    """The numbers of the paper.

    >>> numbers().alpha["0.4"]
    78.2
    """
    return TypeAdapter(Published).validate_python(tomllib.loads(FILE.read_text("utf-8")))


def row(table: Literal["main", "shots", "ablation"], method: str, shots: Shots = 16) -> Row | None:
    """The paper's row of a method, if it has one.

    >>> row("main", "upet-prompt-adapter").average
    77.3
    """
    rows: tuple[Row, ...] = getattr(numbers(), table)
    return next((row for row in rows if (row.method, row.shots) == (method, shots)), None)


def score(row: Row, task: str) -> str | None:
    """What the paper prints for a task, such as ``81.4 ± 3.8``; None where it has no such task.

    >>> score(row("main", "head-ft"), "sst2")
    '81.4 ± 3.8'
    """
    if task not in numbers().tasks:
        return None
    index = numbers().tasks.index(task)
    spread = f" ± {row.sd[index]:.1f}" if row.sd else ""
    return f"{row.mean[index]:.1f}{spread}"
