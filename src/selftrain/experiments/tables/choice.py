"""Which cells may stand in one table: scored on the same rows, of one preset, of one recipe each.

Cells are never averaged over what makes them different; where a file holds both, the reader says
which is meant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from selftrain.errors import DataError
from selftrain.experiments.closing import MAJORITY
from selftrain.experiments.results import Result, Shots
from selftrain.experiments.tables.names import REFERENCES

Metric = Literal["accuracy", "macro_f1", "f1"]
METRICS: dict[Metric, str] = {"accuracy": "accuracy", "macro_f1": "macro F1", "f1": "F1"}


@dataclass(frozen=True, slots=True)
class Choice:
    """What a reader wants to see of a file of cells."""

    on: Literal["test", "design"] = "test"
    metric: Metric = "accuracy"
    shots: int = 16
    """Labels a class, in tables that show one number of them."""
    backbone: str | None = None
    preset: str | None = None
    """Needed where the cells are of several."""
    recipes: tuple[str, ...] = ()
    """For a method with cells of several recipes, the one meant: the start of its hash."""
    seeds: tuple[int, ...] = ()
    """These alone, so that no mean over five seeds stands beside one over three; none: all."""
    rows: int | None = None
    """Cells scored on at most so many, as ``bench`` was asked; needed where they are of several."""
    compare: tuple[str, str] | None = None
    """The one comparison that is tested; None: all behind the paper's claims."""
    paper: bool = False
    """Whether the paper's own figures stand below ours."""


def no_cell() -> DataError:
    """What to say where nothing is left to show."""
    return DataError("no cell belongs in this table", "selftrain bench writes them")


def with_shots(results: Iterable[Result], choice: Choice, *, full: bool = False) -> list[Result]:
    """Cells with the number of labels a class that was chosen; of the full data too, if asked."""
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
    kept = [c for c in cells if c.shots == choice.shots or (full and c.shots == "full")]
    # The majority class of the scored rows is the same with any number of labels: others lend it.
    floor = {cell.key for cell in kept if cell.method == MAJORITY}
    scored = {(cell.task, cell.seed, cell.on, cell.most) for cell in kept}
    lent = (replace(cell, shots=choice.shots) for cell in cells if cell.method == MAJORITY)
    return [
        *kept,
        *(c for c in lent if c.key not in floor and (c.task, c.seed, c.on, c.most) in scored),
    ]


def choose(results: Iterable[Result], choice: Choice) -> list[Result]:
    """The cells that were chosen, or an error where they do not belong in one table."""
    cells = _scored_on(list(results), choice.on)
    if choice.backbone is not None:
        cells = _on_backbone(cells, choice.backbone)
    cells = _of_seeds(_of_preset(cells, choice.preset), choice.seeds)
    cells = _of_rows(cells, choice.rows)
    for name in choice.compare or ():
        _check_method(cells, name)
    cells = _of_recipe(cells, choice.recipes)
    return _alike(cells if choice.backbone is None else _with_floor(cells, choice.backbone))


def _scored_on(cells: Sequence[Result], on: str) -> list[Result]:
    found = [cell for cell in cells if cell.on == on]
    if not cells:
        raise no_cell()
    if not found:
        other = cells[0].on
        raise DataError(
            f"no cell of this table was scored on {on} rows; {len(cells)} were on {other} rows",
            f"--on {other}",
        )
    return found


def _on_backbone(cells: Sequence[Result], backbone: str) -> list[Result]:
    known = sorted({cell.backbone for cell in cells})
    if backbone not in known:
        raise DataError(
            f"no cell of this table has the backbone `{backbone}`", f"there are {listed(known)}"
        )
    # The majority class is the same whatever encoder stands beside it: another's may fill a gap.
    return [cell for cell in cells if cell.backbone == backbone or cell.method == MAJORITY]


def _with_floor(cells: Sequence[Result], backbone: str) -> list[Result]:
    """Its own cells, and another's majority class where it has none of the same rows."""
    mine = [cell for cell in cells if cell.backbone == backbone]
    scored = {(cell.task, cell.rows, cell.data) for cell in mine}
    floor = {(c.task, c.shots, c.seed) for c in mine if c.method == MAJORITY}
    others = (c for c in cells if c.backbone != backbone and (c.task, c.rows, c.data) in scored)
    return [*mine, *(c for c in others if (c.task, c.shots, c.seed) not in floor)]


def _of_preset(cells: Sequence[Result], preset: str | None) -> list[Result]:
    """Cells of one preset; references have none of their own."""
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


def _of_rows(cells: Sequence[Result], most: int | None) -> list[Result]:
    if most is None:
        return list(cells)
    found = [cell for cell in cells if cell.most == most]
    if not found:
        known = sorted({cell.most for cell in cells if cell.most is not None})
        there = ", ".join(f"--rows {each}" for each in known) or "leave out --rows"
        raise DataError(f"no cell of this table was scored on at most {most} rows", there)
    return found


def _alike(cells: Sequence[Result]) -> list[Result]:
    """Cells of the same rows and weights, each once: what is compared had the same test."""
    sizes, files, weights = (defaultdict[str, set[object]](set) for _ in range(3))
    for cell in cells:
        sizes[cell.task].add(cell.rows)
        # What is not known is not held against a cell; the majority class knows no weights.
        files[cell.task].update(filter(None, [cell.data]))
        if cell.method != MAJORITY:
            weights[cell.backbone].update(filter(None, [cell.weights]))
    asked = sorted({cell.most for cell in cells if cell.most is not None})
    apart = "compute some of them again, in another folder: -o FOLDER"
    several = asked and len({cell.most for cell in cells}) > 1
    one = f"choose one: --rows {asked[0]}" if several else apart
    for found, told, hint in (
        (sizes, "of {} were scored on {} rows", one),
        (files, "of {} are of {} different files", apart),
        (weights, "on {} are of {} different weights", apart),
    ):
        for name, values in found.items():
            if len(values) > 1:
                what = listed(map(str, values)) if found is sizes else str(len(values))
                raise DataError(
                    f"cells {told.format(name, what)}, and do not stand in one table", hint
                )
    # A task may have no more rows than two commands asked for at most: the later line stands.
    return list({cell.key._replace(most=None): cell for cell in cells}.values())


def _of_seeds(cells: Sequence[Result], seeds: Sequence[int]) -> list[Result]:
    known = sorted({cell.seed for cell in cells})
    for seed in seeds:
        if seed not in known:
            there = ",".join(map(str, known))
            raise DataError(f"no cell of this table has the seed {seed}", f"--seeds {there}")
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
    kept = []
    for (method, backbone, shots), group in groups.items():
        recipes = {cell.recipe for cell in group}
        if len(recipes) > 1:
            recipes = {recipe for recipe in recipes if recipe.startswith(tuple(wanted))}
        if len(recipes) != 1:
            raise DataError(
                f"`{method}` on {backbone} with {shots} shots has cells of several recipes: "
                + "; ".join(_described(group)),
                f"say which is meant: --recipe {group[-1].recipe}",
            )
        kept += [cell for cell in group if cell.recipe in recipes]
    return kept


def _described(cells: Sequence[Result]) -> list[str]:
    told = []
    for recipe in dict.fromkeys(cell.recipe for cell in cells):
        mine = [cell for cell in cells if cell.recipe == recipe]
        told.append(f"{recipe} ({len(mine)}: {listed({cell.task for cell in mine})})")
    return told


def listed(names: Iterable[str]) -> str:
    """Names for a sentence.

    >>> listed({"sst2", "cb", "rte"})
    'cb, rte and sst2'
    """
    *most, last = sorted(names) or ["none"]
    return f"{', '.join(most)} and {last}" if most else last
