"""Which cells may stand in one figure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cells import CELL, OTHER, named
from selftrain.errors import DataError
from selftrain.experiments.figures import (
    Wanted,
    by_round,
    calibration,
)
from selftrain.experiments.tables import Choice


@pytest.mark.parametrize(
    ("more", "wanted", "problem", "hint"),
    [
        ({"backbone": "other"}, Wanted(), "backbones minilm and other", "--backbone minilm"),
        ({"recipe": "def"}, Wanted(), "several recipes", "--recipe"),
        ({"preset": "paper"}, Wanted(), "presets laptop and paper", "--preset"),
        ({}, Wanted(methods=("ust",)), "no cell of the method `ust` has rounds", "upet-head"),
        ({}, Wanted(tasks=("cb",)), "no cell of the task `cb` has rounds", "sst2"),
        ({}, Wanted(Choice(shots=32)), "32 labels a class", "--shots 16"),
        ({}, Wanted(Choice(scored_on="design")), "design rows", "--on test"),
        ({}, Wanted(Choice(seeds=(42,))), "no cell of this table has the seed 42", "--seeds 12,21"),
    ],
)
def test_what_does_not_belong_together_is_never_averaged(more, wanted, problem, hint):
    with pytest.raises(DataError, match=problem) as error:
        by_round([CELL, replace(CELL, seed=21, **more)], wanted)
    assert hint in error.value.hint


def test_of_several_one_can_be_chosen():
    cells = [CELL, replace(CELL, seed=21, backbone="other", by_round=(0.25, 0.25))]
    (line,) = by_round(cells, Wanted(Choice(backbone="other"))).lines
    assert line.points[0].mean == 0.25


def test_seeds_can_be_chosen_so_that_all_lines_have_the_same():
    cells = [CELL, OTHER, *named("upet-head-prefix")]
    assert [line.seeds for line in by_round(cells).lines] == [1, 2]
    wanted = Wanted(Choice(seeds=(12,)))
    assert [line.seeds for line in by_round(cells, wanted).lines] == [1, 1]
    (panel,) = calibration([CELL, OTHER], wanted).panels
    assert (panel.error.n, panel.error.mean) == (1, 0.125)


def test_cells_without_rounds_are_no_figure():
    with pytest.raises(DataError, match="no cell has rounds"):
        by_round([replace(CELL, by_round=())])


def test_the_majority_class_beside_two_backbones_counts_once():
    cells = [*named("majority"), *named("majority", backbone="other")]
    (panel,) = calibration(cells, Wanted(methods=("majority",))).panels
    assert sum(bin_.rows for bin_ in panel.bins) == 10
