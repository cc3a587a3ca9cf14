"""Which cells may stand in one table: scored on the same rows, of one preset, of one recipe each.

A table never averages over cells that differ in these; where a file holds both, the reader says
which to show.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from selftrain.errors import DataError
from selftrain.experiments.references import MAJORITY, REFERENCES
from selftrain.experiments.results import Result, Shots

Metric = Literal["accuracy", "macro_f1", "f1"]
METRICS: dict[Metric, str] = {"accuracy": "accuracy", "macro_f1": "macro F1", "f1": "F1"}


@dataclass(frozen=True, slots=True)
class Choice:
    """What a reader wants to see of a file of cells."""

    scored_on: Literal["test", "design"] = "test"
    metric: Metric = "accuracy"
    shots: int = 16
    """Labels a class, in tables that show one number of them."""
    backbone: str | None = None
    preset: str | None = None
    """Needed where the cells are of several."""
    recipes: tuple[str, ...] = ()
    """Which recipe to show of a method with cells of several: the start of its hash."""
    seeds: tuple[int, ...] = ()
    """Only these, so that no mean over five seeds stands beside one over three; empty: all."""
    rows: int | None = None
    """The ``--rows`` that ``bench`` was given; needed where cells have several of them."""
    compare: tuple[str, str] | None = None
    """The only comparison to test; None: all behind the paper's claims."""
    paper: bool = False
    """Whether the paper's own numbers stand below ours."""


def no_cell() -> DataError:
    """The error where nothing is left to show."""
    return DataError("no cell belongs in this table", "selftrain bench writes them")


def with_shots(results: Iterable[Result], choice: Choice, *, full: bool = False) -> list[Result]:
    """Cells with the chosen number of labels a class; with ``full``, those of the full data too."""
    cells = list(results)
    if not cells:
        raise no_cell()
    if not any(cell.shots == choice.shots for cell in cells):
        known = {str(cell.shots) for cell in cells if cell.shots != "full"}
        raise DataError(
            f"no cell of this table has {choice.shots} labels a class",
            f"there are {listed(known)}: --shots {min(known, key=int)}"
            if known
            else "selftrain bench writes them",
        )
    chosen = [c for c in cells if c.shots == choice.shots or (full and c.shots == "full")]
    # The majority class of the scored rows is the same with any number of labels.
    present = {cell.key for cell in chosen if cell.method == MAJORITY}
    scored = {(cell.task, cell.seed, cell.scored_on, cell.max_rows) for cell in chosen}
    floors = (replace(cell, shots=choice.shots) for cell in cells if cell.method == MAJORITY)
    return [
        *chosen,
        *(
            cell
            for cell in floors
            if cell.key not in present
            and (cell.task, cell.seed, cell.scored_on, cell.max_rows) in scored
        ),
    ]


def choose(results: Iterable[Result], choice: Choice) -> list[Result]:
    """The chosen cells; an error where they do not belong in one table."""
    cells = _scored_on(list(results), choice.scored_on)
    if choice.backbone is not None:
        cells = _on_backbone(cells, choice.backbone)
    cells = _of_seeds(_of_preset(cells, choice.preset), choice.seeds)
    cells = _of_rows(cells, choice.rows)
    for name in choice.compare or ():
        _check_method(cells, name)
    cells = _of_recipe(cells, choice.recipes)
    return _alike(cells if choice.backbone is None else _with_floor(cells, choice.backbone))


def _scored_on(cells: Sequence[Result], part: str) -> list[Result]:
    chosen = [cell for cell in cells if cell.scored_on == part]
    if not cells:
        raise no_cell()
    if not chosen:
        other = cells[0].scored_on
        raise DataError(
            f"no cell of this table was scored on {part} rows; {len(cells)} were on {other} rows",
            f"--on {other}",
        )
    return chosen


def _on_backbone(cells: Sequence[Result], backbone: str) -> list[Result]:
    known = sorted({cell.backbone for cell in cells})
    if backbone not in known:
        raise DataError(
            f"no cell of this table has the backbone `{backbone}`", f"there are {listed(known)}"
        )
    # The majority class is the same beside any encoder: another's may fill a gap.
    return [cell for cell in cells if cell.backbone == backbone or cell.method == MAJORITY]


def _with_floor(cells: Sequence[Result], backbone: str) -> list[Result]:
    """The backbone's cells, and another's majority class where it has none of the same rows."""
    chosen = [cell for cell in cells if cell.backbone == backbone]
    scored = {(cell.task, cell.rows, cell.data) for cell in chosen}
    present = {(c.task, c.shots, c.seed) for c in chosen if c.method == MAJORITY}
    others = (c for c in cells if c.backbone != backbone and (c.task, c.rows, c.data) in scored)
    return [*chosen, *(c for c in others if (c.task, c.shots, c.seed) not in present)]


def _of_preset(cells: Sequence[Result], preset: str | None) -> list[Result]:
    """Cells of one preset; a reference is the same in all."""
    known = sorted({cell.preset for cell in cells if cell.method not in REFERENCES})
    if preset is None and len(known) > 1:
        raise DataError(
            f"cells of the presets {listed(known)} do not stand in one table",
            f"choose one: --preset {known[0]}",
        )
    if preset is not None and preset not in known:
        raise DataError(f"no cell is of the preset `{preset}`", f"there are {listed(known)}")
    return [
        cell
        for cell in cells
        if preset is None or cell.preset == preset or cell.method in REFERENCES
    ]


def _of_rows(cells: Sequence[Result], max_rows: int | None) -> list[Result]:
    if max_rows is None:
        return list(cells)
    chosen = [cell for cell in cells if cell.max_rows == max_rows]
    if not chosen:
        known = sorted({cell.max_rows for cell in cells if cell.max_rows is not None})
        hint = ", ".join(f"--rows {number}" for number in known) or "leave out --rows"
        raise DataError(f"no cell of this table was scored on at most {max_rows} rows", hint)
    return chosen


def _alike(cells: Sequence[Result]) -> list[Result]:
    """Cells of the same rows and weights, each once: all of them had the same test."""
    sizes, files, weights = (defaultdict[str, set[object]](set) for _ in range(3))
    for cell in cells:
        sizes[cell.task].add(cell.rows)
        # An unknown hash is no difference; the majority class has no weights.
        files[cell.task].update(filter(None, [cell.data]))
        if cell.method != MAJORITY:
            weights[cell.backbone].update(filter(None, [cell.weights]))
    limits = sorted({cell.max_rows for cell in cells if cell.max_rows is not None})
    again = "compute some of them again, in another folder: -o FOLDER"
    several = limits and len({cell.max_rows for cell in cells}) > 1
    choose_one = f"choose one: --rows {limits[0]}" if several else again
    for differing, problem, hint in (
        (sizes, "of {} were scored on {} rows", choose_one),
        (files, "of {} are of {} different files", again),
        (weights, "on {} are of {} different weights", again),
    ):
        for name, values in differing.items():
            if len(values) > 1:
                what = listed(map(str, values)) if differing is sizes else str(len(values))
                raise DataError(
                    f"cells {problem.format(name, what)}, and do not stand in one table", hint
                )
    # A task may have fewer rows than two limits: both are the same cell, and the later line counts.
    return list({cell.key._replace(max_rows=None): cell for cell in cells}.values())


def _of_seeds(cells: Sequence[Result], seeds: Sequence[int]) -> list[Result]:
    known = sorted({cell.seed for cell in cells})
    for seed in seeds:
        if seed not in known:
            hint = f"--seeds {','.join(map(str, known))}"
            raise DataError(f"no cell of this table has the seed {seed}", hint)
    return [cell for cell in cells if not seeds or cell.seed in seeds]


def _check_method(cells: Sequence[Result], method: str) -> None:
    known = {cell.method for cell in cells}
    if method not in known:
        raise DataError(
            f"no cell of this table is of the method `{method}`", f"there are {listed(known)}"
        )


def _of_recipe(cells: Sequence[Result], wanted: Sequence[str]) -> list[Result]:
    """Cells of one recipe for each method, backbone and number of shots."""
    for name in wanted:
        if not any(cell.recipe.startswith(name) for cell in cells):
            raise DataError(f"no cell of this table is of recipe `{name}`", "leave out --recipe")
    groups: dict[tuple[str, str, Shots], list[Result]] = defaultdict(list)
    for cell in cells:
        groups[cell.method, cell.backbone, cell.shots].append(cell)
    chosen = []
    for (method, backbone, shots), group in groups.items():
        recipes = {cell.recipe for cell in group}
        if len(recipes) > 1:
            recipes = {recipe for recipe in recipes if recipe.startswith(tuple(wanted))}
        if len(recipes) != 1:
            raise DataError(
                f"`{method}` on {backbone} with {shots} shots has cells of several recipes: "
                + "; ".join(_described(group)),
                f"say which one to show: --recipe {group[-1].recipe}",
            )
        chosen += [cell for cell in group if cell.recipe in recipes]
    return chosen


def _described(cells: Sequence[Result]) -> list[str]:
    lines = []
    for recipe in dict.fromkeys(cell.recipe for cell in cells):
        tasks = [cell.task for cell in cells if cell.recipe == recipe]
        lines.append(f"{recipe} ({len(tasks)}: {listed(set(tasks))})")
    return lines


def listed(names: Iterable[str]) -> str:
    """Names for a sentence.

    >>> listed({"sst2", "cb", "rte"})
    'cb, rte and sst2'
    """
    *first, last = sorted(names) or ["none"]
    return f"{', '.join(first)} and {last}" if first else last
