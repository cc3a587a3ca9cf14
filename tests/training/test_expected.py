"""Expected accuracy, temperatures, and labels that look wrong."""

from __future__ import annotations

import math

import pytest
import torch

from by_hand import example
from selftrain.data.rows import Labelled
from selftrain.training.expected import (
    AGREEMENT,
    BELIEF,
    FROZEN_MARGIN,
    MARGIN,
    Judges,
    class_shares,
    expected_accuracy,
    half_width,
    temperature_for,
)
from selftrain.training.folds import Folds, Rows, folds_of
from selftrain.training.label_check import doubts


def folds(belief: list[list[float]], gold: list[list[float]], labels: list[int]) -> Folds:
    """Folds with equal shares of two classes in the pool."""
    tables = (torch.tensor(rows, dtype=torch.float64) for rows in (belief, gold))
    of_pool, of_gold = tables
    prior = torch.full((of_pool.shape[1],), 1 / of_pool.shape[1], dtype=torch.float64)
    return Folds(of_pool, prior, of_gold, torch.tensor(labels))


SURE = [[0.9, 0.1]] * 40
"""Forty gold rows of the first class that the folds answer right."""


def test_the_estimate_weighs_belief_and_agreement():
    """Three answers of four are the folds'; they believe them by 0.9, 0.9, 0.6 and 0.2."""
    four = [[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.8, 0.2]]
    judges = Judges.of(folds(four * 100, SURE, [0] * 40), frozen=False)
    expected = expected_accuracy(torch.tensor([0, 0, 1, 1] * 100), judges)
    assert expected.accuracy == pytest.approx(BELIEF * 2.6 / 4 + AGREEMENT * 3 / 4)
    assert (expected.belief, expected.agreement) == (pytest.approx(0.65), 0.75)
    assert expected.high - expected.accuracy == pytest.approx(MARGIN)
    assert expected.accuracy - expected.low == pytest.approx(MARGIN)


def test_of_a_frozen_encoder_belief_and_mixture_count_the_same():
    """The folds believe the answers by 0.65, the mixture by (1 + 1 + 0 + 0) / 4."""
    four = [[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.8, 0.2]]
    of_mixture = torch.tensor([[1.0, 0.0]] * 4 * 100, dtype=torch.float64)
    judges = Judges(folds(four * 100, SURE, [0] * 40), of_mixture, frozen=True)
    expected = expected_accuracy(torch.tensor([0, 0, 1, 1] * 100), judges)
    assert expected.mixture == pytest.approx(0.5)
    assert expected.accuracy == pytest.approx((0.65 + 0.5) / 2)
    assert expected.high - expected.accuracy == pytest.approx(FROZEN_MARGIN)


def test_few_labels_widen_the_interval():
    judges = Judges.of(folds([[0.9, 0.1]] * 400, [[0.9, 0.1], [0.1, 0.9]], [0, 0]), frozen=False)
    expected = expected_accuracy(torch.tensor([0, 0, 1, 1] * 100), judges)
    assert (expected.high - expected.low) / 2 == pytest.approx(half_width(0.5, 2))
    assert half_width(0.5, 2) > 2 * MARGIN


def test_a_pool_of_ten_texts_widens_the_interval():
    """Half of ten answers are the folds'; chance alone moves such a share by 0.23."""
    judges = Judges.of(folds([[0.9, 0.1]] * 10, SURE, [0] * 40), frozen=False)
    expected = expected_accuracy(torch.tensor([0, 1] * 5), judges)
    assert expected.accuracy == pytest.approx(BELIEF * 0.5 + AGREEMENT * 0.5)
    half = half_width(expected.accuracy, 10)
    assert (expected.high - expected.low) / 2 == pytest.approx(half)
    assert half == pytest.approx(0.23, abs=0.01)


def test_class_shares_are_the_answers_shrunk_by_32_rows_of_belief():
    """98 rows of 0.75: believed 74.5 of 100 with one row more of each class, answered 98 of 98."""
    belief, prior = class_shares(torch.tensor([[0.75, 0.25]] * 98))
    assert belief.tolist() == pytest.approx([0.745, 0.255])
    assert prior.tolist() == pytest.approx([(98 + 32 * 0.745) / 130, 32 * 0.255 / 130])


def test_few_texts_leave_the_shares_that_the_model_believes_nearly_as_they_are():
    belief, prior = class_shares(torch.tensor([[0.9, 0.1]] * 3 + [[0.2, 0.8]]))
    assert abs(float(prior[0] - belief[0])) < 0.02


def test_an_interval_ends_at_zero_and_one():
    judges = Judges.of(folds([[1.0, 0.0]] * 4, SURE, [0] * 40), frozen=False)
    assert expected_accuracy(torch.tensor([0] * 4), judges).high == 1
    assert expected_accuracy(torch.tensor([1] * 4), judges).low == 0


def test_few_labels_never_show_that_a_model_makes_no_error():
    """All agree, surely: with forty labels half an error more is thinkable."""
    judges = Judges.of(folds([[1.0, 0.0]] * 4, SURE, [0] * 40), frozen=False)
    expected = expected_accuracy(torch.tensor([0] * 4), judges).accuracy
    assert expected == pytest.approx(40.5 / 41)
    logits = 3 * torch.randn(200, 2, generator=torch.Generator().manual_seed(3))
    calibrated = (logits / temperature_for(logits, expected)).softmax(1).max(1).values
    assert float(calibrated.mean()) == pytest.approx(expected, abs=0.03)


def test_the_interval_of_hits_is_wilsons():
    """24 of 32, 90 %: 0.61 and 0.86 in any table of Wilson's intervals, half of it 0.122."""
    z, n, p = 1.6449, 32, 0.75
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    low, high = middle - half_width(p, n), middle + half_width(p, n)
    for end in (low, high):  # both ends solve (p - end)² = z² end (1 - end) / n
        assert (p - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / n, rel=1e-3)


def test_hits_count_by_the_prior_of_the_pool():
    """Right on all of the first class and on none of the second; the pool is 0.9 : 0.1."""
    gold = torch.tensor([[0.9, 0.1]] * 8, dtype=torch.float64)
    prior = torch.tensor([0.9, 0.1], dtype=torch.float64)
    share, rows = Folds(gold, prior, gold, torch.tensor([0] * 4 + [1] * 4)).hits()
    assert share == pytest.approx(0.9)
    assert rows == pytest.approx(1 / (4 * 0.225**2 + 4 * 0.025**2))


def test_at_its_temperature_a_model_is_as_sure_as_it_is_right():
    generator = torch.Generator().manual_seed(1)
    logits = 5 * torch.randn(500, 4, generator=generator)
    for accuracy in (0.45, 0.7, 0.95):
        t = temperature_for(logits, accuracy)
        assert float((logits / t).softmax(1).max(1).values.mean()) == pytest.approx(
            accuracy, abs=0.005
        )


def test_a_temperature_that_cannot_be_reached_is_the_last_one():
    """Two classes are never less sure than 0.5."""
    assert temperature_for(torch.tensor([[3.0, 0.0]]), 0.2) == pytest.approx(math.exp(2))


def test_flipped_labels_are_named_first():
    """Two clear clouds; two of 32 labels are swapped: they are the first two doubts."""
    generator = torch.Generator().manual_seed(2)
    truth = torch.tensor([0] * 16 + [1] * 16)
    vectors = torch.eye(2)[truth] + 0.15 * torch.randn(32, 2, generator=generator)
    given = truth.clone()
    given[3], given[20] = 1, 0
    judges = folds_of(Rows(vectors, given), vectors, 2, seed=1)
    labelled = [Labelled(example(i), "ab"[c]) for i, c in enumerate(given.tolist())]
    found = doubts(labelled, ("a", "b"), judges)
    assert {doubt.row for doubt in found[:2]} == {4, 21}
    first = next(doubt for doubt in found if doubt.row == 4)
    assert (first.uid, first.label, first.answer) == ("uid-3", "b", "a")
    assert all(doubt.answer != doubt.label for doubt in found)


def test_the_surest_answer_comes_first():
    judges = folds([[0.5, 0.5]], [[0.3, 0.7], [0.05, 0.95], [0.9, 0.1], [0.45, 0.55]], [0, 0, 0, 1])
    labelled = [Labelled(example(i), label) for i, label in enumerate("aaab")]
    assert [doubt.row for doubt in doubts(labelled, ("a", "b"), judges)] == [2, 1]
