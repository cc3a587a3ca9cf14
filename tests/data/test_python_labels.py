"""Labels given in Python: what is a class, what is refused, and what a file brings back."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from selftrain.data.python_labels import (
    changed_by_cleaning,
    class_name,
    classes_of,
    from_plain,
    to_plain,
)
from selftrain.data.read import read_labelled
from selftrain.data.rows import Notes
from selftrain.errors import DataError


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


REFUSED: dict[str, tuple[list[Any], str]] = {
    "tuples": ([("a", 1), ("b", 2)], "is of type tuple"),
    "bytes": ([b"good", b"bad"], "is of type bytes"),
    "dates": ([date(2024, 1, 1), date(2024, 1, 2)], "is of type date"),
    "timestamps": (list(pd.to_datetime(["2024-01-01", "2024-01-02"])), "is of type Timestamp"),
    "numpy dates": (list(np.array(["2024-01-01", "2024-01-02"], "M8[D]")), "datetime64"),
    "decimals": ([Decimal("1.5"), Decimal(2)], "is of type Decimal"),
    "fractions": ([Fraction(1, 2), Fraction(2)], "is of type Fraction"),
    "long doubles": ([np.longdouble(1) / 3, np.longdouble(2)], "is of type longdouble"),
    "names of an enumeration": ([Colour.RED, Colour.BLUE], "is of type Colour"),
    "numbers of an enumeration": ([Level.LOW, Level.HIGH], "is of type Level"),
    "truth values beside numbers": ([True, 0, 2], "two kinds: number and truth value"),
    "numbers beside truth values": ([False, 3], "two kinds"),
    "a float32 beside a float": ([np.float32(0.1), 0.7], "cannot be kept as they are"),
    "a NUL at the end": (["a\x00", "b"], "cannot be kept as they are"),
    "half a character": (["\ud800", "b"], "half a character"),
    "numbers beside strings": ([1, "a"], "cannot be sorted"),
    "lists": ([["a"], ["b"]], "cannot be sorted"),
    "blanks alone": ([" ", "b"], "do not differ by name"),
    "another case": (["Good", "good"], "`Good` and `good` differ only in case"),
    "another number": (["1", "1.0"], "`1` and `1.0` differ only in how they are written"),
    "wide letters": (["A", "Ａ"], "differ only in how they are written"),
    "two blanks inside": (["very good", "very  good"], "differ only in how they are written"),
    "no label as -1": ([-1, 0, 1], "label -1 stands beside 2 others"),
    "no label as -1.0": ([-1.0, 0.0, 1.0], "label -1 stands beside 2 others"),
    "no label as text": (["-1", "bad", "good"], "label -1 stands beside 2 others"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_label_that_no_file_brings_back_is_refused_with_a_hint(name: str) -> None:
    labels, said = REFUSED[name]
    with pytest.raises(DataError, match=said) as caught:
        classes_of(labels * 2)
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_the_hint_for_minus_one_is_none() -> None:
    with pytest.raises(DataError) as caught:
        classes_of([-1, 0, 1])
    assert "None" in caught.value.hint


SAME = {
    "blanks": ["good", " good", "bad"],
    "a character without width": ["good", "go\u200bod", "bad"],
    "accents in pieces": ["caf\xe9", "cafe\u0301", "bad"],
    "two other writings": [" good", "good ", "bad"],
}


@pytest.mark.parametrize("name", SAME)
def test_labels_that_nobody_can_tell_apart_are_one_class_as_in_a_file(name: str) -> None:
    labels = SAME[name]
    classes = classes_of(labels * 2)
    assert classes.tolist() == sorted({"bad", class_name(labels[0])})
    assert changed_by_cleaning(labels, classes) == len(set(labels) - set(classes.tolist()))
    read = read_labelled([(f"text {n}", each) for n, each in enumerate(labels)], notes=Notes())
    assert {row.label for row in read} == set(classes.tolist())


def test_the_hint_for_labels_that_look_alike_names_no_flag_of_the_command_line() -> None:
    with pytest.raises(DataError) as caught:
        classes_of(["Good", "good"])
    assert caught.value.hint == "write both the same way, or rename one"


def test_a_label_with_one_writing_comes_back_as_it_was_given() -> None:
    assert classes_of([" good", "cafe\u0301"]).tolist() == [" good", "cafe\u0301"]
    assert class_name("cafe\u0301") == "caf\xe9"


BROUGHT_BACK: dict[str, list[Any]] = {
    "strings": ["good", "bad"],
    "strings with blanks": [" good", "bad "],
    "numpy strings": list(np.array(["good", "bad"])),
    "whole numbers": [2, 10],
    "two numbers, one of them -1": [-1, 1],
    "small numpy numbers": list(np.array([3, 7], "int8")),
    "unsigned": list(np.array([3, 2**63 + 1], "uint64")),
    "larger than any numpy number": [2**70, 1],
    "whole numbers beside fractions": [0, 1.5],
    "float32": list(np.array([0.1, 0.7], "float32")),
    "whole float32": list(np.array([0, 1], "float32")),
    "float16": list(np.array([0.1, 0.7], "float16")),
    "floats": [0.1, 1e300],
    "without end": [float("-inf"), float("inf")],
    "truth values": [True, False],
    "numpy truth values": list(np.array([True, False])),
}


@pytest.mark.parametrize("name", BROUGHT_BACK)
def test_a_class_comes_back_from_a_file_with_its_value_and_type(name: str) -> None:
    import json

    classes = classes_of(BROUGHT_BACK[name] * 2)
    facts = json.loads(json.dumps(to_plain(classes)))
    again = from_plain(facts["classes"], facts["type"])
    assert again.dtype == classes.dtype
    assert again.tolist() == classes.tolist() == sorted(BROUGHT_BACK[name])


@pytest.mark.parametrize("kind", ["object", "<U1000000000", "M8[D]", 5, ["int8"], "float128"])
def test_a_type_that_a_stranger_names_is_not_taken(kind: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        from_plain(["a", "b"], kind)
