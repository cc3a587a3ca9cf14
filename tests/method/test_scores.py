"""Votes, entropy, information gain, certainty: edges and bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from by_hand import random_votes, rows, votes
from selftrain.method.scores import (
    Tally,
    aligned,
    certainty,
    confidence,
    entropy,
    information_gain,
    joined,
    pseudo_label,
    ranks,
)

quick = settings(max_examples=60, deadline=None, derandomize=True)
LOGITS = st.floats(-40, 40)
STACKS = arrays.arrays(  # logits [T, N, C], some so large that a probability is 0 or 1
    np.float64, st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 5)), elements=LOGITS
).map(lambda logits: torch.from_numpy(logits).softmax(-1))


# ── bounds ───────────────────────────────────────────────────────────────────────────────────


@quick
@given(STACKS)
def test_information_gain_lies_between_zero_and_ln_c(stack):
    """Eq. 2, 3."""
    gain = information_gain(votes(stack))
    assert (gain >= 0).all()
    assert (gain <= math.log(stack.shape[2]) + 1e-12).all()


@quick
@given(STACKS, st.booleans())
def test_certainty_is_a_share_for_any_number_of_classes(stack, normalised):
    """Eq. 4."""
    settled = certainty(votes(stack), normalised=normalised)
    assert ((settled >= 0) & (settled <= 1)).all()


@quick
@given(STACKS)
def test_confidence_of_the_means_label_is_at_least_one_over_c(stack):
    seen = votes(stack)
    sure = confidence(seen, pseudo_label(seen, "mean"))
    assert (sure >= 1 / stack.shape[2] - 1e-12).all()
    assert (sure <= 1 + 1e-12).all()


@quick
@given(STACKS)
def test_order_of_the_passes_does_not_matter(stack):
    one, other = votes(stack), votes(stack.flip(0))
    torch.testing.assert_close(information_gain(one), information_gain(other))
    torch.testing.assert_close(one.variance, other.variance)
    assert torch.equal(one.wins, other.wins)


# ── running sums ─────────────────────────────────────────────────────────────────────────────


@quick
@given(STACKS)
def test_running_sums_equal_the_stack_they_replace(stack):
    seen, p = votes(stack), stack.numpy()
    np.testing.assert_allclose(seen.mean, p.mean(0), atol=1e-14)
    np.testing.assert_allclose(seen.variance, p.var(0), atol=1e-15)
    plogp = np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0)
    np.testing.assert_allclose(seen.entropy, -plogp.sum(2).mean(0), atol=1e-13)
    wins = np.eye(p.shape[2])[p.argmax(2)].sum(0)
    np.testing.assert_array_equal(seen.wins, wins)
    assert seen.passes == len(p)


def test_variance_survives_where_the_float32_shortcut_drowns():
    """Passes 1e-5 apart around .9: the variance is 1e-10, far below float32's step at .81."""
    stack = torch.tensor([[[0.90001, 0.09999]], [[0.89999, 0.10001]]], dtype=torch.float64)
    assert votes(stack).variance.flatten().tolist() == pytest.approx([1e-10, 1e-10], rel=1e-6)
    p = stack.float()
    shortcut = ((p**2).mean(0) - p.mean(0) ** 2).flatten()
    assert abs(float(shortcut[0]) - 1e-10) > 1e-9


def test_half_precision_passes_are_summed_in_float64():
    tally = Tally(torch.tensor([[0.5, 0.5]], dtype=torch.float16))
    tally.add(torch.tensor([[0.25, 0.75]], dtype=torch.float16))
    seen = tally.votes()
    assert {seen.plain.dtype, seen.mean.dtype, seen.variance.dtype, seen.entropy.dtype} == {
        torch.float64
    }


# ── edges ────────────────────────────────────────────────────────────────────────────────────


def test_zero_log_zero_is_zero():
    assert entropy(torch.tensor([1.0, 0.0, 0.0])).item() == 0


def test_entropy_of_equal_chances_is_ln_c():
    assert entropy(torch.full((4,), 0.25)).item() == pytest.approx(math.log(4))


def test_votes_that_are_all_equal_leave_nothing_uncertain():
    seen = votes([[[0.3, 0.7], [1.0, 0.0]]] * 5)
    assert information_gain(seen).tolist() == [0, 0]
    assert certainty(seen).tolist() == [1, 1]
    assert not seen.variance.any()
    assert seen.wins.tolist() == [[0, 5], [5, 0]]


def test_one_pass_is_certain_of_everything():
    """T = 1: nothing to disagree with, so the confidence alone tells rows apart."""
    seen = votes([[[0.51, 0.49], [0.99, 0.01]]])
    assert certainty(seen).tolist() == [1, 1]
    assert not seen.variance.any()
    assert confidence(seen, pseudo_label(seen)).tolist() == pytest.approx([0.51, 0.99])


@pytest.mark.parametrize("normalised", [True, False])
def test_one_class_is_certain(normalised):
    """ln 1 = 0: nothing to be uncertain about, and no division by it."""
    assert certainty(votes([[[1.0]], [[1.0]]]), normalised=normalised).tolist() == [1]


@pytest.mark.parametrize("how", ["mean", "deterministic", "vote"])
def test_ties_go_to_the_first_class(how):
    assert pseudo_label(votes([[[0.5, 0.5]]] * 2), how).tolist() == [0]


def test_passes_that_differ_in_the_last_bit_are_not_alike():
    p = torch.tensor([[0.3, 0.7]], dtype=torch.float64)
    nudged = torch.nextafter(p, torch.ones_like(p))
    same, other = Tally(p), Tally(p)
    for _ in range(3):
        same.add(p)
    for each in (p, p, nudged):
        other.add(each)
    assert same.identical
    assert not other.identical


def test_a_pass_unlike_the_plain_one_alone_is_no_difference_between_passes():
    tally = Tally(torch.tensor([[0.9, 0.1]]))
    tally.add(torch.tensor([[0.3, 0.7]]))
    tally.add(torch.tensor([[0.3, 0.7]]))
    assert tally.identical


def test_joined_chunks_are_the_whole_in_the_order_asked_for():
    whole = random_votes(7, 3, passes=4, seed=5)
    shuffled = [4, 0, 6, 1, 5, 2, 3]
    parts = [rows(whole, shuffled[:3]), rows(whole, shuffled[3:])]
    back = joined(parts, torch.tensor(shuffled).argsort())
    for name in ("plain", "mean", "wins", "variance", "entropy"):
        assert torch.equal(getattr(back, name), getattr(whole, name))
    assert back.passes == 4


# ── alignment and ranks ──────────────────────────────────────────────────────────────────────


def test_alignment_divides_by_the_pools_mean():
    """(.9, .1) / (.75, .25) = (1.2, .4) → (.75, .25);  (.6, .4) → (.8, 1.6) → (1/3, 2/3)."""
    p = torch.tensor([[0.9, 0.1], [0.6, 0.4]], dtype=torch.float64)
    expected = torch.tensor([[0.75, 0.25], [1 / 3, 2 / 3]], dtype=torch.float64)
    torch.testing.assert_close(aligned(p, p.mean(0)), expected)


def test_alignment_of_a_class_nobody_is_given_stays_finite():
    p = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    assert aligned(p, p.mean(0)).tolist() == [[1, 0], [1, 0]]


def test_ranks_run_from_zero_to_one_and_ties_share_their_mean_place():
    """Places 0, 1, 2, 3 of (.1, .5, .5, .9): the two ties stand at 1.5 of 3."""
    assert ranks(torch.tensor([0.5, 0.1, 0.9, 0.5])).tolist() == [0.5, 0, 1, 0.5]
    assert ranks(torch.tensor([0.2, 0.2, 0.2])).tolist() == [0.5, 0.5, 0.5]
    assert ranks(torch.tensor([0.2])).tolist() == [1]
    assert ranks(torch.tensor([])).tolist() == []


@quick
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_ranks_keep_the_order_and_average_one_half(values):
    x = torch.tensor(values, dtype=torch.float64)
    place = ranks(x)
    assert float(place.mean()) == pytest.approx(0.5)
    for a, b in zip(x.tolist(), place.tolist(), strict=True):
        smaller, equal = int((x < a).sum()), int((x == a).sum())
        assert b == pytest.approx((smaller + (equal - 1) / 2) / (len(values) - 1))
