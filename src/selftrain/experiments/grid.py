"""A grid: methods, tasks, shots, seeds and backbones to compare, and which combinations exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from selftrain.data.task import find
from selftrain.disk import slug
from selftrain.errors import ConfigError, require
from selftrain.experiments.gridfile import COMPARED
from selftrain.experiments.results import Shots
from selftrain.method.changes import can_use, merged, method_of
from selftrain.method.recipes import DEFAULT
from selftrain.method.spec import Method
from selftrain.training.baselines import FROZEN_APART, REFERENCES

SEEDS = (12, 21, 42, 87, 100)


@dataclass(frozen=True, slots=True)
class Grid:
    """What is to be compared."""

    methods: Mapping[str, Method]
    """By the name of each in the comparison; names of references are taken."""
    tasks: tuple[str, ...]
    backbones: tuple[str, ...] = ("minilm",)
    seeds: tuple[int, ...] = SEEDS
    shots: tuple[Shots, ...] = (16,)
    references: tuple[str, ...] = tuple(REFERENCES)
    preset: str = "laptop"
    scored_on: Literal["test", "design"] = "test"
    max_rows: int | None = 2000
    """The largest number of test rows to score; None: all."""

    def __post_init__(self) -> None:
        for name in self.methods:
            valid = bool(slug(name)) and name not in REFERENCES
            expected = "letters, and no name of a reference"
            require(valid, "the name of a method", name, expected, "give the method another name")
        known = self.scored_on in ("test", "design")
        require(known, "scored_on", self.scored_on, "test or design", "--on design")
        folders = [slug(find(task).name) for task in self.tasks]
        for name in {name for name in folders if folders.count(name) > 1}:
            hint = 'name = "another name", in the file of one of them'
            raise ConfigError(f"two tasks are called `{name}`", hint)
        if self.max_rows is not None:
            require(self.max_rows >= 1, "rows", self.max_rows, "1 or more", "--rows 1000")
        for name in self.references:
            if name not in REFERENCES:
                raise ConfigError(
                    f"there is no reference `{name}`", f"one of: {', '.join(REFERENCES)}"
                )

    def groups(self) -> Iterator[Group]:
        """Groups of cells with the same task, backbone, shots and seed: they share teachers."""
        for backbone in self.backbones:
            for task in self.tasks:
                for shots in self.shots:
                    for seed in self.seeds:
                        yield Group(task, backbone, shots, seed)

    def names(self, group: Group) -> list[str]:
        """The references and methods that can run in a group.

        With all labels there is no pool, so no method that needs one.
        """
        pair = find(group.task).pair
        references = [name for name in self.references if pair or name != FROZEN_APART]
        methods = [
            name
            for name, method in self.methods.items()
            if not (group.shots == "full" and (method.total_rounds or method.tapt))
            and can_use(method, group.backbone)
        ]
        return [*references, *methods]


@dataclass(frozen=True, slots=True)
class Group:
    """A task, a backbone, and the labelled rows of one seed."""

    task: str
    """The name of a known task, or the path of a task file."""
    backbone: str
    shots: Shots
    seed: int

    @property
    def task_name(self) -> str:
        """The name of the task in cells and tables: never a path."""
        return find(self.task).name

    @property
    def place(self) -> Path:
        """The folder of its runs, below the folder of all runs."""
        shots = self.shots if self.shots == "full" else f"{self.shots}-shot"
        return Path(slug(self.task_name)) / slug(self.backbone) / str(shots) / f"seed-{self.seed}"


def grid_of(asked: Mapping[str, Any], scored_on: Literal["test", "design"]) -> Grid:
    """The grid that plain entries describe, as a grid file has them."""
    preset = asked.get("preset", "laptop")
    return Grid(
        methods=methods_of(asked, preset),
        tasks=tuple(asked.get("tasks", COMPARED)),
        backbones=tuple(asked.get("backbones", ["minilm"])),
        seeds=tuple(asked.get("seeds", SEEDS)),
        shots=tuple(map(shots_of, asked.get("shots", [16]))),
        references=tuple(asked.get("references", REFERENCES)),
        preset=preset,
        scored_on=scored_on,
        max_rows=asked.get("rows", 2000),
    )


def methods_of(asked: Mapping[str, Any], preset: str) -> dict[str, Method]:
    """The methods and variants of a grid, by name, with at most the rounds it asks for."""
    shared_changes = asked.get("every", {})  # laid over every method
    methods = {
        name: method_of({"name": name, **shared_changes}, preset)
        for name in asked.get("methods", [DEFAULT])
    }
    for variant in asked.get("variant", []):
        label = variant.get("as")
        if not isinstance(label, str) or "name" not in variant:
            raise ConfigError(
                "a variant needs the name of a recipe as `name`, and another name as `as`",
                'name = "upet-head-adapter", as = "upet-head-adapter-alpha-0.2-rank-topk"',
            )
        if label in methods:
            raise ConfigError(f"two methods are called `{label}`", 'as = "another name"')
        entries = {key: value for key, value in variant.items() if key != "as"}
        methods[label] = replace(method_of(merged(shared_changes, entries), preset), name=label)
    if "rounds" in asked:
        limit = asked["rounds"]
        require(limit >= 1, "rounds", limit, "1 or more", "--rounds 1")
        for name, method in methods.items():
            methods[name] = replace(method, rounds=min(method.rounds, limit))
    return methods


def shots_of(given: object) -> Shots:
    """Labelled rows of each class: a number, or ``full`` for all."""
    if given == "full":
        return "full"
    if str(given).isdecimal() and int(str(given)):
        return int(str(given))
    raise ConfigError(f"shots is {given!r}; expected a number above 0, or full", "--shots 16")
