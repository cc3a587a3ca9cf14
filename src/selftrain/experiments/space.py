"""The space of a search: which entries of a method vary, and over which values (Table 8)."""

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
"""Entry of a method, as a path with dots → the values to try."""

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
    """The entries of a method by path; of several student stages, those that all of them have.

    Without rounds only the entries of the teacher count.

    >>> from selftrain.method.recipes import recipe
    >>> entries(recipe("upet-head-prefix"))["student.tuning.length"]
    16
    """
    plain_method = to_plain(method, whole=True)
    del plain_method["name"]
    stages = [flat({"student": stage}) for stage in plain_method.pop("student")]
    paths = flat(plain_method)
    if not method.rounds:
        of_teacher = ("teacher.", "tapt.", *(("probe.", "passes", "pool") if method.probe else ()))
        return {path: value for path, value in paths.items() if path.startswith(of_teacher)}
    first, *others = stages
    return paths | {
        name: value for name, value in first.items() if all(name in stage for stage in others)
    }


def flat(table: Mapping[str, Any], start: str = "") -> dict[str, Any]:
    """Tables in tables as paths with dots.

    >>> flat({"select": {"score": {"alpha": 0.4}}})
    {'select.score.alpha': 0.4}
    """
    paths: dict[str, Any] = {}
    for key, value in table.items():
        path = f"{start}{key}"
        paths |= flat(value, f"{path}.") if isinstance(value, Mapping) else {path: value}
    return paths


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
    space = flat(read_toml(path, "--space", hint=hint))
    if not space:
        raise ConfigError(f"{path} has no entry", hint)
    for name, values in space.items():
        if not isinstance(values, list) or not values or not all(map(plain, values)):
            raise ConfigError(f"{path}: `{name}` is {values!r}; expected a list of values", hint)
    return {name: tuple(dict.fromkeys(values)) for name, values in space.items()}


def plain(value: object) -> bool:
    """Whether it can be a value of a space: a text, a switch or a finite number."""
    return isinstance(value, Value) and not (isinstance(value, float) and not isfinite(value))


def check_space(space: Space, method: Method) -> None:
    """Raise for an entry the method does not have, or a value it cannot take.

    Two entries of one table may exclude each other, so every pair of their values is tried.
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
            point = " and ".join(f"`{name}` = {value!r}" for name, value in chosen)
            raise ConfigError(f"the space has {point}: {error.message}", error.hint) from None


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
