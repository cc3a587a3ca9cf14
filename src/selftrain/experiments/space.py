"""The points of a search: which entries of a method are varied, and over which values (Table 8)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import isfinite
from pathlib import Path
from typing import Any

from selftrain.data.toml import check_name, read_toml
from selftrain.errors import ConfigError
from selftrain.experiments.published import numbers
from selftrain.method.changes import merged
from selftrain.method.spec import Method, from_plain, to_plain

Value = bool | int | float | str
Space = Mapping[str, tuple[Value, ...]]
"""Entry of a method, as a path with dots, to the values that are tried."""

PAPER = (
    "teacher.batch_size",
    "select.score.alpha",
    "student.contrast.weight",
    "student.tuning.length",
    "student.tuning.width",
    "teacher.tuning.length",
    "teacher.tuning.width",
)
"""What Table 8 varies. Its batches of 4 and 8 are those of labelled rows: pseudo-labelled ones come
in 16 or 32. Its length I and width m are those of the student's module, where it has one."""


def entries(method: Method) -> dict[str, Any]:
    """What a method decides, by its path: of several stages of a student, what all of them have.

    Without rounds nothing but the teacher decides.

    >>> from selftrain.method.recipes import recipe
    >>> entries(recipe("upet-head-prefix"))["student.tuning.length"]
    16
    """
    whole = to_plain(method, whole=True)
    del whole["name"]
    stages = [flat({"student": stage}) for stage in whole.pop("student")]
    found = flat(whole)
    if not method.rounds:
        alone = ("teacher.", "tapt.")
        return {name: value for name, value in found.items() if name.startswith(alone)}
    first, *others = stages
    return found | {
        name: value for name, value in first.items() if all(name in stage for stage in others)
    }


def flat(table: Mapping[str, Any], start: str = "") -> dict[str, Any]:
    """Tables in tables as paths with dots.

    >>> flat({"select": {"score": {"alpha": 0.4}}})
    {'select.score.alpha': 0.4}
    """
    found: dict[str, Any] = {}
    for key, value in table.items():
        path = f"{start}{key}"
        found |= flat(value, f"{path}.") if isinstance(value, Mapping) else {path: value}
    return found


def paper_space(method: Method) -> Space:
    """Table 8, as far as the method has its entries.

    >>> from selftrain.method.recipes import recipe
    >>> paper_space(recipe("head-ft"))
    {'teacher.batch_size': (4, 8)}
    """
    places = [path for path in PAPER if path in entries(method)]
    if any(path.startswith("student.tuning.") for path in places):
        places = [path for path in places if not path.startswith("teacher.tuning.")]
    return {
        path: searched.values
        for path in places
        for searched in numbers().grid
        if searched.known_as(path)
    }


def read_space(path: Path) -> Space:
    """The space of a TOML file: an entry of the method and a list of values on each line."""
    hint = '"select.score.alpha" = [0.2, 0.4]'
    found = flat(read_toml(path, "--space", hint=hint))
    if not found:
        raise ConfigError(f"{path} has no entry", hint)
    for name, values in found.items():
        if not isinstance(values, list) or not values or not all(map(plain, values)):
            raise ConfigError(f"{path}: `{name}` is {values!r}; expected a list of values", hint)
    return {name: tuple(dict.fromkeys(values)) for name, values in found.items()}


def plain(value: object) -> bool:
    """Whether it can be a value of a space; a number without end is none."""
    return isinstance(value, Value) and not (isinstance(value, float) and not isfinite(value))


def check_space(space: Space, method: Method) -> None:
    """Raise for an entry the method does not have, or a value it cannot take.

    Two entries of one table may exclude each other, so there every pair of values is looked at.
    """
    known = entries(method)
    for name in space:
        check_name(name, known, f"the space of `{method.name}`")
    every = [(name, value) for name, values in space.items() for value in values]
    pairs = [
        (one, other)
        for one, other in combinations(every, 2)
        if one[0] != other[0] and above(one[0]) == above(other[0])
    ]
    for chosen in [*((each,) for each in every), *pairs]:
        try:
            changed(method, dict(chosen))
        except ConfigError as error:
            told = " and ".join(f"`{name}` = {value!r}" for name, value in chosen)
            raise ConfigError(f"the space has {told}: {error.message}", error.hint) from None


def above(path: str) -> str:
    """The table that an entry stands in.

    >>> above("student.loss.tau")
    'student.loss'
    """
    return path.rpartition(".")[0]


def changed(method: Method, point: Mapping[str, Value]) -> Method:
    """The method at one point of a space.

    >>> from selftrain.method.recipes import recipe
    >>> changed(recipe("upet-head-adapter"), {"select.score.alpha": 0.9}).select.score.alpha
    0.9
    """
    tables: dict[str, Any] = {}
    for path, value in point.items():
        *names, last = path.split(".")
        table = tables
        for name in names:
            table = table.setdefault(name, {})
        table[last] = value
    return from_plain(merged(to_plain(method), tables))
