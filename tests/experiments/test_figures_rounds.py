"""Score by round: the points that are drawn."""

from __future__ import annotations

from dataclasses import replace
from math import isclose
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cells import CELL, OTHER, named
from selftrain.experiments.figures import (
    Wanted,
    by_round,
)
from selftrain.experiments.figures.rounds import points


def test_a_point_is_the_mean_and_sd_over_the_seeds_that_have_the_round():
    (line,) = by_round([CELL, OTHER]).lines
    assert [point.mean for point in line.points] == [0.625, 0.5, 0.5]
    assert [point.seeds for point in line.points] == [2, 2, 1]
    assert isclose(line.points[0].sd, 0.125 * 2**0.5)  # two values, 0.25 apart
    assert line.seeds == 2


def test_one_seed_has_no_sd_rather_than_none_at_all():
    (line,) = by_round([CELL]).lines
    assert [point.sd for point in line.points] == [None, None]


def test_a_round_without_a_model_has_no_point():
    first, last = points([(0.5, None, 0.25), (0.5, None)])
    assert (first.number, last.number) == (0, 2)
    assert last.seeds == 1


def test_refused_rounds_are_drawn_and_the_figure_says_so():
    three = replace(CELL, by_round=(0.5, 0.6, 0.7), final_round=2)
    whole, refused = by_round([three]), by_round([replace(three, refused=(1,))])
    assert refused.lines == whole.lines
    assert refused.setting == f"{whole.setting}; rounds that were refused are drawn too"
    older = by_round([replace(three, final_round=1)])  # says it by the kept round alone
    assert older.setting == refused.setting
    broken = by_round([replace(three, by_round=(0.5, 0.6, None), refused=(2,), final_round=1)])
    assert broken.setting == whole.setting  # what broke off has no point


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=6), min_size=1, max_size=5))
def test_no_value_is_invented_and_none_is_lost(runs):
    found = points(runs)
    assert sum(point.seeds for point in found) == sum(map(len, runs))
    for point in found:
        there = [run[point.number] for run in runs if point.number < len(run)]
        assert min(there) - 1e-9 <= point.mean <= max(there) + 1e-9
        assert (point.sd is None) == (len(there) == 1)


def test_upet_students_stand_alone_unless_others_are_named():
    ablation = "upet-head-adapter-wo-contrast"
    cells = named("head-st", "upet-prompt-prefix", "upet-head-adapter", ablation)
    lines = by_round(cells).lines
    assert [line.method for line in lines] == ["upet-head-adapter", "upet-prompt-prefix"]
    lines = by_round(cells, Wanted(methods=("head-st", ablation))).lines
    assert [line.method for line in lines] == ["head-st", ablation]
    assert [line.method for line in by_round(cells[:1]).lines] == ["head-st"]


def test_a_teacher_alone_is_drawn_where_it_is_asked_for():
    cells = [*named("head-st"), *named("head-ft", by_round=(0.5,))]
    assert [line.method for line in by_round(cells).lines] == ["head-st"]
    (line,) = by_round(cells, Wanted(methods=("head-ft",))).lines
    assert [point.number for point in line.points] == [0]


def test_the_order_of_a_file_changes_nothing():
    cells = [
        replace(CELL, task=task, method=method, seed=seed)
        for task in ("rte", "sst2")
        for method in ("upet-head-prefix", "upet-head-adapter")
        for seed in (1, 2)
    ]
    shuffled = Random(1).sample(cells, len(cells))
    assert by_round(shuffled) == by_round(cells)
