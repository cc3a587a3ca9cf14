"""Labels given in Python: those that can be classes, and how they come back from a file.

A label is a string, a number, or a truth value. Anything else would be trained and then come back
as something else, so it is refused before. Strings follow the rules of files: those that nobody
could tell apart are one class, and those that look alike are an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from numbers import Integral
from typing import Any

import numpy as np

from selftrain.data.columns import check_look_alikes, clean_label, name_of
from selftrain.data.rows import missing
from selftrain.errors import DataError

NUMBERS = {"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
NUMBERS |= {"float16", "float32", "float64"}
"""The numpy types of labels that a file names; strings need no name."""
AS_STRINGS = "give all labels as strings: [str(label) for label in labels]"
NO_LABEL = "-1"
"""What scikit-learn's own self-training takes for "no label"."""


def classes_of(labels: Iterable[Any]) -> Any:
    """The distinct labels in an array, sorted, with the type they have.

    >>> classes_of(["no", "yes", None, "no"]).tolist()
    ['no', 'yes']
    """
    try:
        classes = sorted({label for label in labels if not missing(label)})
    except TypeError as error:
        raise DataError(f"the labels cannot be sorted: {error}", AS_STRINGS) from None
    kinds = sorted({kind_of(label) for label in classes})
    if len(kinds) > 1:
        raise DataError(f"the labels are of two kinds: {' and '.join(kinds)}", AS_STRINGS)
    if kinds == ["string"]:
        classes = _one_of_each(classes)
    names = [class_name(label) for label in classes]
    if "" in names or len(set(names)) < len(names):
        raise DataError(f"the labels {classes} do not differ by name", "give each class a name")
    if kinds == ["string"]:
        check_look_alikes("the labels of fit", names, "write both the same way, or rename one")
    if NO_LABEL in names and len(names) > 2:
        raise DataError(
            f"label -1 stands beside {len(names) - 1} others; here it is a class of its own",
            "a text without a label has None; if it is a class, give it a name: 'negative'",
        )
    found = np.asarray(classes)
    if [class_name(label) for label in found] != names:
        raise DataError(f"the labels {classes} cannot be kept as they are in one array", AS_STRINGS)
    return found


def class_name(label: object) -> str:
    """The name of a class: of a string the one that it has in files too.

    >>> class_name(" cafe\u0301\u200b ") == "caf\xe9", class_name(1.0), class_name(True)
    (True, '1', 'True')
    """
    return clean_label(name_of(label))


def changed_by_cleaning(labels: Iterable[Any], classes: Iterable[Any]) -> int:
    """How many labels are another writing of their class.

    >>> changed_by_cleaning(["good", "good ", None], ["bad", "good"])
    1
    """
    known = set(classes)
    return sum(not missing(label) and label not in known for label in labels)


def _one_of_each(labels: Sequence[str]) -> list[str]:
    """Labels without other writings of the same; a label with a single writing stays as it is."""
    by_name: dict[str, str] = {}
    for label in labels:
        name = class_name(label)
        by_name[name] = name if name in by_name else label
    return sorted(by_name.values())


def kind_of(label: object) -> str:
    """What a label is, in a word; anything that no file brings back is an error.

    >>> kind_of(True), kind_of(3), kind_of(0.5), kind_of("good")
    ('truth value', 'number', 'number', 'string')
    """
    if isinstance(label, str) and not isinstance(label, Enum):
        return _whole_string(label)
    if isinstance(label, bool | np.bool_):
        return "truth value"
    number = isinstance(label, Integral | float | np.floating) and not isinstance(label, Enum)
    if number and getattr(label, "dtype", np.dtype("float64")).name in NUMBERS:
        return "number"
    raise DataError(
        f"label {label!r:.60} is of type {type(label).__name__}; expected a string or a number",
        AS_STRINGS,
    )


def _whole_string(label: str) -> str:
    try:
        label.encode()
    except UnicodeEncodeError:
        raise DataError(f"label {label!a:.60} holds half a character", "name it anew") from None
    return "string"


# ── in a file ────────────────────────────────────────────────────────────────────────────────


def to_plain(classes: Any) -> dict[str, Any]:
    """An array of classes as entries of a JSON file."""
    return {"classes": classes.tolist(), "type": classes.dtype.name if _numeric(classes) else None}


def from_plain(classes: Sequence[Any], kind: object) -> Any:
    """The array of classes that a file holds, which may come from anyone; else a ValueError."""
    if kind is not None and kind not in NUMBERS:
        raise ValueError(f"its labels have the type {kind!r:.40}")
    found = np.asarray(classes, dtype=kind)
    if found.ndim != 1:
        raise ValueError("its labels are no plain list")
    return found


def _numeric(classes: Any) -> bool:
    return classes.dtype.name in NUMBERS
