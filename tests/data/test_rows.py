"""Examples from strings, and what counts as missing or empty."""

import math

import numpy as np
import pandas as pd
import pytest

from selftrain.data.rows import Example, example_of, examples, is_empty, missing, uid_of
from selftrain.errors import DataError


def test_examples_have_no_place_for_a_label():
    assert not hasattr(Example("1", "a"), "label")


@pytest.mark.parametrize("value", [None, math.nan, np.float32("nan"), pd.NA, pd.NaT])
def test_none_and_every_nan_are_missing(value):
    assert missing(value)


@pytest.mark.parametrize("value", ["", "nan", 0, False, [None], np.array([1, 2]), {}])
def test_a_value_is_not_missing_however_empty_it_is(value):
    assert not missing(value)


@pytest.mark.parametrize("row", [("a", "b"), ["a", "b"], np.array(["a", "b"])])
def test_two_strings_are_a_pair(row):
    assert example_of(1, row) == examples(["a"], ["b"])[0]
    assert example_of(1, row[0]) == examples(["a"])[0]
    assert type(example_of(1, row[0]).text) is str


@pytest.mark.parametrize("row", [5, None, ("a", "b", "c"), (), ("a", 5), {"text": "a"}, b"a"])
def test_what_is_neither_a_string_nor_a_pair_is_an_error_with_its_number(row):
    with pytest.raises(DataError, match=r"text 7 is .*; expected a string, or a pair"):
        example_of(7, row)


def test_one_blank_side_of_a_pair_is_enough_to_be_empty():
    blank, first, second = examples([" ", "a", ""], ["a", " ", "a"])
    assert is_empty(blank)
    assert is_empty(first)
    assert is_empty(second)
    assert not is_empty(Example(uid_of("a"), "a"))
