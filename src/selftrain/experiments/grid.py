"""What is to be compared: methods, tasks, shots, seeds and backbones, and who competes where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from selftrain.data.rows import Labelled
from selftrain.data.task import Task, find
from selftrain.disk import slug
from selftrain.errors import ConfigError, require
from selftrain.experiments.gridfile import COMPARED
from selftrain.experiments.references import FROZEN, FROZEN_APART, MAJORITY
from selftrain.experiments.results import Shots
from selftrain.method.changes import merged, method_of
from selftrain.method.recipes import DEFAULT
from selftrain.method.spec import Method
from selftrain.model.backbone import Backbone
from selftrain.training.baselines import FrozenLogistic, Majority
from selftrain.training.evaluate import Predictor

SEEDS = (12, 21, 42, 87, 100)
Reference = Callable[[Task, Backbone, Sequence[Labelled], Sequence[Labelled]], Predictor]
"""Made of a task, a backbone, labelled rows, and the rows that are scored."""
REFERENCES: dict[str, Reference] = {
    MAJORITY: lambda task, _backbone, _gold, held: Majority(task, held),
    FROZEN: lambda task, backbone, gold, _held: FrozenLogistic(task, backbone, gold),
    FROZEN_APART: lambda task, backbone, gold, _held: FrozenLogistic(
        task, backbone, gold, apart=True
    ),
}
"""What keeps everyone honest. The majority class is that of the scored rows, a floor that no row of
labels a class could tell; two sentences encoded apart are for pairs alone."""


@dataclass(frozen=True, slots=True)
class Grid:
    """What is to be compared."""

    methods: Mapping[str, Method]
    """By the name each has in the comparison; no reference's."""
    tasks: tuple[str, ...]
    backbones: tuple[str, ...] = ("minilm",)
    seeds: tuple[int, ...] = SEEDS
    shots: tuple[Shots, ...] = (16,)
    references: tuple[str, ...] = tuple(REFERENCES)
    preset: str = "laptop"
    on: Literal["test", "design"] = "test"
    rows: int | None = 2000
    """The most rows that are scored; None: all."""

    def __post_init__(self) -> None:
        for name in self.methods:
            fine = bool(slug(name)) and name not in REFERENCES
            expected = "letters, and no name of a reference"
            require(fine, "the name of a method", name, expected, "give the method another name")
        known = self.on in ("test", "design")
        require(known, "on", self.on, "test or design", "--on design")
        places = [slug(find(task).name) for task in self.tasks]
        for name in {each for each in places if places.count(each) > 1}:
            told = 'name = "one of its own", in its file'
            raise ConfigError(f"two tasks are called `{name}`", told)
        if self.rows is not None:
            require(self.rows >= 1, "rows", self.rows, "1 or more", "--rows 1000")
        for name in self.references:
            if name not in REFERENCES:
                raise ConfigError(
                    f"there is no reference `{name}`", f"one of: {', '.join(REFERENCES)}"
                )

    def groups(self) -> Iterator[Group]:
        """The cells that share rows, backbone and seed, together: they may share a teacher too."""
        for backbone in self.backbones:
            for task in self.tasks:
                for shots in self.shots:
                    for seed in self.seeds:
                        yield Group(task, backbone, shots, seed)

    def names(self, group: Group) -> list[str]:
        """Who competes in a group: what cannot be is left out."""
        pair = find(group.task).pair
        few = group.shots != "full"
        references = [name for name in self.references if pair or name != FROZEN_APART]
        methods = [
            name
            for name, method in self.methods.items()
            if (few or not (method.rounds or method.tapt))
            and not ((method.prompts or method.tapt) and group.backbone == "minilm")
        ]
        return [*references, *methods]


@dataclass(frozen=True, slots=True)
class Group:
    """A task, a backbone, and the labelled rows of one seed."""

    task: str
    """As it was asked for: one that is known, or the path of a task file."""
    backbone: str
    shots: Shots
    seed: int

    @property
    def named(self) -> str:
        """The task's own name, which cells and tables have: no path of a machine."""
        return find(self.task).name

    @property
    def place(self) -> Path:
        """Where its runs lie, below the folder of runs."""
        shots = self.shots if self.shots == "full" else f"{self.shots}-shot"
        return Path(slug(self.named)) / slug(self.backbone) / str(shots) / f"seed-{self.seed}"


def grid_of(asked: Mapping[str, Any], on_rows: Literal["test", "design"]) -> Grid:
    """What is to be compared, from plain entries."""
    preset = asked.get("preset", "laptop")
    every = asked.get("every", {})  # laid over every method
    chosen = {
        name: method_of({"name": name, **every}, preset) for name in asked.get("methods", [DEFAULT])
    }
    for variant in asked.get("variant", []):
        label = variant.get("as")
        if not isinstance(label, str) or "name" not in variant:
            raise ConfigError(
                "a variant needs the name of a recipe and one of its own",
                'name = "upet-head-adapter", as = "upet-head-adapter-alpha-0.2-rank-topk"',
            )
        if label in chosen:
            raise ConfigError(f"two methods are called `{label}`", 'as = "a name of its own"')
        changes = merged(every, {key: value for key, value in variant.items() if key != "as"})
        chosen[label] = replace(method_of(changes, preset), name=label)
    if "rounds" in asked:
        require(asked["rounds"] >= 1, "rounds", asked["rounds"], "1 or more", "--rounds 1")
        chosen = {
            name: replace(method, rounds=min(method.rounds, asked["rounds"]))
            for name, method in chosen.items()
        }
    tasks = tuple(asked.get("tasks", COMPARED))
    more = {"references": tuple(asked["references"])} if "references" in asked else {}
    return Grid(
        methods=chosen,
        tasks=tasks,
        backbones=tuple(asked.get("backbones", ["minilm"])),
        seeds=tuple(asked.get("seeds", SEEDS)),
        shots=tuple(shots_of(each) for each in asked.get("shots", [16])),
        preset=preset,
        on=on_rows,
        rows=asked.get("rows", 2000),
        **more,
    )


def shots_of(given: object) -> Shots:
    """Labels a class: a number, or all there are."""
    if given == "full":
        return "full"
    if str(given).isdecimal() and int(str(given)):
        return int(str(given))
    raise ConfigError(f"shots is {given!r}; expected a number above 0, or full", "--shots 16")
