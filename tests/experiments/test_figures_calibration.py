"""Confidence against being right: how the bins of several seeds are pooled."""

from __future__ import annotations

from dataclasses import replace
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cells import CELL, OTHER, named
from selftrain.errors import DataError
from selftrain.experiments.figures import (
    Wanted,
    calibration,
)
from selftrain.experiments.figures.calibration import BINS, place, pooled
from selftrain.training.metrics import Bin


def test_bins_are_pooled_by_count():
    other = replace(OTHER, bins=(Bin(12, 0.69, 0.75), Bin(1, 0.25, 0.0)))
    (panel,) = calibration([CELL, other]).panels
    low, middle, high = panel.bins
    assert (low, high) == (Bin(1, 0.25, 0.0), Bin(6, 0.9375, 1.0))
    assert middle.rows == 16
    assert isclose(middle.confidence, (4 * 0.65 + 12 * 0.69) / 16)
    assert middle.accuracy == (4 * 0.5 + 12 * 0.75) / 16


def test_the_calibration_error_is_that_of_the_seeds_not_of_the_pool():
    (panel,) = calibration([CELL, OTHER]).panels
    assert panel.error.mean == 0.25
    assert isclose(panel.error.sd, 0.125 * 2**0.5)


BINS_OF_ANYONE = st.builds(Bin, st.integers(1, 10**6), st.floats(0, 1), st.floats(0, 1))


@given(st.lists(BINS_OF_ANYONE, min_size=1))
def test_pooling_loses_no_answer_and_keeps_each_in_its_bin(bins):
    found = pooled(bins)
    assert sum(each.rows for each in found) == sum(each.rows for each in bins)
    right = sum(each.rows * each.accuracy for each in bins)
    assert isclose(sum(each.rows * each.accuracy for each in found), right, abs_tol=1e-6)
    places = [place(each) for each in found]
    assert places == sorted({place(each) for each in bins})
    for each in found:
        assert place(each) / BINS - 1e-6 <= each.confidence <= (place(each) + 1) / BINS + 1e-6


def test_a_bin_on_an_edge_is_the_one_above_it():
    assert [place(Bin(1, sure, 1.0)) for sure in (0.3, 0.1 + 0.2, 0.6 - 1e-16, 1.0)] == [3, 3, 6, 9]


def test_many_methods_on_many_tasks_are_refused_and_either_alone_is_not():
    methods = ("upet-head-prefix", "upet-head-adapter")
    cells = [*named(*methods), *named(*methods, task="rte")]
    with pytest.raises(DataError, match="2 methods on 2 tasks") as error:
        calibration(cells)
    assert "--task sst2" in error.value.hint
    by_method = calibration(cells, Wanted(tasks=("rte",))).panels
    assert [panel.method for panel in by_method] == list(methods)
    by_task = calibration(cells, Wanted(methods=methods[:1])).panels
    assert {panel.task for panel in by_task} == {"sst2", "rte"}
