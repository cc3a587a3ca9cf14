"""A run's probabilities before and after calibration, as numbers of a figure."""

from __future__ import annotations

import pytest
import torch

from selftrain.experiments.figures import BeforeAfter, CalibratedRun, curve

P = torch.tensor([[0.95, 0.05], [0.65, 0.35]]).repeat(20, 1)
"""Forty answers of the first class: half of confidence 0.95, half of 0.65."""
GOLD = torch.tensor([0, 0, 0, 1] * 10)
"""All of the first half are right, every second one of the other."""


def test_a_curve_has_ten_bins_of_as_many_answers_and_counts_by_confidence():
    drawn = curve("as trained", P, GOLD)
    assert [each.rows for each in drawn.bins] == [4] * 10
    assert [each.confidence for each in drawn.bins] == pytest.approx([0.65] * 5 + [0.95] * 5)
    assert [each.accuracy for each in drawn.bins] == [0.5] * 5 + [1.0] * 5
    assert drawn.counts == (0, 0, 0, 0, 0, 0, 20, 0, 0, 20)


def test_the_data_file_has_every_bin_and_bar_of_both_curves():
    curves = curve("as trained", P, GOLD), curve("calibrated", P[:8], GOLD[:8])
    rows = BeforeAfter((CalibratedRun("run", "supcon", 12, 11, 2, 1.5, curves),), "").rows()
    assert [row["drawn"] for row in rows] == ["curve"] * 10 + ["bar"] * 10 + ["curve"] * 8 + [
        "bar"
    ] * 10
    assert {row["temperature"] for row in rows} == {1.5}
    assert sum(row["answers"] for row in rows if row["probabilities"] == "as trained") == 80
    assert {tuple(row) for row in rows} == {tuple(rows[0])}, "all rows have the same columns"
