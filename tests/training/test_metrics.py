"""Metrics against scikit-learn, and against tables worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, roc_auc_score

from selftrain.experiments.stats import DRAWS, EXACT, holm, sign_flip, spread
from selftrain.training.metrics import (
    accuracy,
    added_by_chance,
    calibration_error,
    confusion,
    debiased_calibration_error,
    equal_parts,
    error_detection_area,
    f1,
    macro_f1,
)

quick = settings(max_examples=60, deadline=None, derandomize=True)
PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@quick
@given(PAIRS)
def test_accuracy_and_f1_are_scikit_learns(pairs):
    answers, gold = (torch.tensor(side) for side in zip(*pairs, strict=True))
    assert accuracy(answers, gold) == pytest.approx(accuracy_score(gold, answers))
    each = f1_score(gold, answers, labels=range(4), average=None, zero_division=0)
    assert [f1(answers, gold, c) for c in range(4)] == pytest.approx(each.tolist())
    assert macro_f1(answers, gold, 4) == pytest.approx(each.mean())


@quick
@given(PAIRS)
def test_a_confusion_matrix_is_scikit_learns(pairs):
    answers, gold = (torch.tensor(side) for side in zip(*pairs, strict=True))
    expected = confusion_matrix(gold, answers, labels=range(4))
    assert confusion(answers, gold, 4).tolist() == expected.tolist()


def test_f1_by_hand():
    """Class 1: 2 right, 3 answered, 4 present: 2·2 / (3 + 4) = 4/7."""
    answers, gold = torch.tensor([1, 1, 1, 0, 0, 2]), torch.tensor([1, 1, 0, 1, 1, 2])
    assert f1(answers, gold, 1) == pytest.approx(4 / 7)


def test_calibration_error_against_a_table():
    """Ten answers in three of ten bins:

    confidence  answers  right  mean confidence  accuracy   gap x answers
    .5 to .6       4       1        .55            .25        .30 x 4 = 1.2
    .8 to .9       5       4        .82            .80        .02 x 5 = 0.1
    .9 to 1        1       1       1.00           1.00        .00 x 1 = 0
                                                               1.3 / 10 = .13
    """
    sure = torch.tensor([0.55] * 4 + [0.82] * 5 + [1.0], dtype=torch.float64)
    p = torch.stack([sure, 1 - sure], 1)
    gold = torch.tensor([0, 1, 1, 1, 0, 0, 0, 0, 1, 0])
    assert calibration_error(p, gold) == pytest.approx(0.13)


def test_answers_that_are_right_as_often_as_they_say_are_calibrated():
    p = torch.tensor([[0.75, 0.25]] * 4, dtype=torch.float64)
    assert calibration_error(p, torch.tensor([0, 0, 0, 1])) == pytest.approx(0)
    assert calibration_error(p, torch.tensor([1, 1, 1, 1])) == pytest.approx(0.75)


def confident(rows: int, too_sure: float, seed: int):
    """Answers with confidences from 0.55 to 1, right less often than they say by ``too_sure``."""
    generator = torch.Generator().manual_seed(seed)
    sure = 0.55 + 0.45 * torch.rand(rows, generator=generator, dtype=torch.float64)
    wrong = torch.rand(rows, generator=generator, dtype=torch.float64) > sure - too_sure
    return torch.stack([sure, 1 - sure], 1), wrong.long()


def test_chance_adds_little_to_the_debiased_error():
    """True confidences: what is left of the plain error is less; an error of 0.2 stays."""
    plain, debiased, large = [], [], []
    for seed in range(40):
        p, gold = confident(300, 0.0, seed)
        plain.append(calibration_error(p, gold))
        debiased.append(debiased_calibration_error(p, gold))
        large.append(debiased_calibration_error(*confident(300, 0.2, seed)))
    assert sum(debiased) < 0.8 * sum(plain)
    assert sum(large) / 40 == pytest.approx(0.2, abs=0.015)


def test_equal_parts_have_as_many_rows_each_the_least_confident_first():
    p = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8]])
    parts = list(equal_parts(p, torch.tensor([0, 1, 1, 1]), bins=2))
    assert [part.tolist() for part, _ in parts] == [
        pytest.approx([0.6, 0.7]),
        pytest.approx([0.8, 0.9]),
    ]
    assert [right.tolist() for _, right in parts] == [[0, 1], [1, 1]]
    assert len(list(equal_parts(p, torch.tensor([0, 1, 1, 1])))) == 4, "no bin is empty"


def test_without_chance_the_debiased_error_is_the_gap():
    """All wrong at a confidence of 0.75: nothing varies, the gap is 0.75."""
    p = torch.tensor([[0.75, 0.25]] * 20, dtype=torch.float64)
    assert debiased_calibration_error(p, torch.ones(20).long()) == pytest.approx(0.75)


def test_what_chance_adds_is_the_mean_of_a_folded_normal():
    generator = torch.Generator().manual_seed(1)
    noise = 0.1 * torch.randn(200_000, generator=generator, dtype=torch.float64)
    for gap in (0.0, 0.03, -0.1, 0.4):
        measured = float((gap + noise).abs().mean()) - abs(gap)
        assert added_by_chance(gap, 0.1) == pytest.approx(measured, abs=1e-3)


@quick
@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=60).filter(
        lambda rows: len({right for _, right in rows}) == 2
    )
)
def test_error_detection_area_is_the_roc_area_ties_included(rows):
    trust, right = (torch.tensor(side) for side in zip(*rows, strict=True))
    expected = roc_auc_score(right.numpy(), trust.numpy())
    assert error_detection_area(trust / 7, right) == pytest.approx(expected, abs=1e-12)


def test_error_detection_area_is_exact_on_a_large_pool():
    generator = torch.Generator().manual_seed(1)
    trust = torch.randint(0, 1000, (40_001,), generator=generator) / 1000
    right = torch.rand(40_001, generator=generator) < 0.8
    expected = roc_auc_score(right.numpy(), trust.numpy())
    assert error_detection_area(trust, right) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("right", [[True, True], [False, False]])
def test_without_both_right_and_wrong_answers_there_is_nothing_to_detect(right):
    assert math.isnan(error_detection_area(torch.tensor([0.1, 0.9]), torch.tensor(right)))


def test_blind_trust_has_area_one_half_and_perfect_trust_one():
    right = torch.tensor([True, False, True, False])
    assert error_detection_area(torch.ones(4), right) == 0.5
    assert error_detection_area(right.double(), right) == 1
    assert error_detection_area(-right.double(), right) == 0


def test_spread_over_seeds_uses_the_sample_deviation():
    """Mean of 80, 82, 87: 83; squared distances 9 + 1 + 16 = 26; sqrt(26 / 2) = 3.606."""
    over = spread([80.0, 82.0, 87.0])
    assert (over.mean, over.sd, over.n) == (83, pytest.approx(3.60555, abs=1e-5), 3)
    assert str(over) == "83.0 ± 3.6"


def test_one_seed_has_no_spread_to_print():
    assert str(spread([81.25])) == "81.2"
    assert spread([81.25]).sd == 0


# ── better, or luck? ─────────────────────────────────────────────────────────────────────────

DIFFERENCES = st.lists(st.floats(-50, 50, allow_nan=False), min_size=1, max_size=9)
P_VALUES = st.lists(st.floats(0, 1), max_size=12)


def test_sign_flip_by_hand():
    """1, 2, -4: the mean is -1/3. Sums of all signs: ±7, ±5, ±3, ±1; all 8 are as far as 1.

    3, 2, -1: the sum is 4; sums are ±6, ±4, ±2, ±0; 4 of 8 are as far as 4.
    """
    assert sign_flip([1, 2, -4]) == 1
    assert sign_flip([3, 2, -1]) == 0.5


def test_six_pairs_that_all_agree_reach_one_in_thirty_two():
    assert sign_flip([0.5, 1, 2, 3, 4, 5]) == 2 / 64


def test_pairs_that_never_differ_are_no_evidence():
    assert sign_flip([0.0] * 7) == 1
    assert sign_flip([0.0] * (EXACT + 1)) == 1


def test_one_pair_can_never_be_significant():
    assert sign_flip([40.0]) == 1


def test_no_pairs_speak_against_nothing():
    assert sign_flip([]) == 1


def test_a_difference_that_is_no_number_gives_no_p_value():
    assert math.isnan(sign_flip([1.0, math.nan]))


def test_ties_count_as_far_as_the_sum_seen_though_their_last_bits_differ():
    """0.1 + 0.2 + 0.3 in any order is the one largest sum: exactly 2 of 8 reach it."""
    assert sign_flip([0.1, 0.2, 0.3]) == sign_flip([0.3, 0.2, 0.1]) == 0.25
    assert sign_flip([0.1] * 10) == 2 / 1024


def test_zeros_beside_other_pairs_change_nothing():
    assert sign_flip([1, 2, 3, 0, 0]) == sign_flip([1, 2, 3])


def test_many_pairs_are_drawn_and_can_never_reach_zero():
    assert sign_flip([1.0] * 60) == 1 / (DRAWS + 1)


def test_drawn_signs_are_the_same_every_time_and_near_the_exact_share():
    """17 ones of which 13 are positive: the sum is 9; 2 (1 + 17 + 136 + 680 + 2380) / 2^17."""
    ones = [1.0] * 13 + [-1.0] * 4
    exact = 2 * sum(math.comb(17, k) for k in range(5)) / 2**17
    assert sign_flip(ones) == sign_flip(ones) == pytest.approx(exact, rel=0.05)


@quick
@given(DIFFERENCES)
def test_sign_flip_is_a_share_that_knows_neither_order_nor_side(differences):
    p = sign_flip(differences)
    assert 2 / 2 ** len(differences) <= p <= 1
    assert sign_flip([-d for d in differences]) == p
    assert sign_flip(differences[::-1]) == p


@settings(quick, max_examples=5)
@given(st.lists(st.floats(-50, 50), min_size=EXACT + 1, max_size=EXACT + 4))
def test_drawn_signs_know_neither_order_nor_side(differences):
    p = sign_flip(differences)
    assert 1 / (DRAWS + 1) <= p <= 1
    assert sign_flip([-d for d in differences[::-1]]) == p


def test_holm_by_hand():
    """Sorted .005 .01 .03 .04: times 4, 3, 2, 1: .02 .03 .06 .04; the last may not fall below."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_one_comparison_needs_no_correction_and_none_gives_none():
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


def test_equal_p_values_stay_equal():
    assert holm([0.02, 0.02, 0.02]) == pytest.approx([0.06] * 3)


@quick
@given(P_VALUES)
def test_holm_keeps_the_order_and_lies_between_the_p_value_and_bonferroni(p_values):
    corrected = holm(p_values)
    for p, q in zip(p_values, corrected, strict=True):
        assert p <= q <= min(1, len(p_values) * p) or q == pytest.approx(p)
    by_p = [q for _, q in sorted(zip(p_values, corrected, strict=True))]
    assert by_p == sorted(by_p)
