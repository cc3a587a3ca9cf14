"""Which rows become easy and hard, how many of each class, and what the lesson says of them."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from by_hand import example, random_votes, votes
from selections import LABELS, LADDER, quick, select, uids
from selftrain.data.rows import Labelled
from selftrain.errors import ConfigError
from selftrain.method.scores import pseudo_label
from selftrain.method.selection import (
    Certain,
    LowVariance,
    Reliable,
    RoundDraw,
    Selection,
    Uniform,
    proportional,
    quotas,
)

ALL = {"count": None, "shares": (1.0,)}


# ── quotas ───────────────────────────────────────────────────────────────────────────────────────


@quick
@given(st.dictionaries(st.integers(0, 9), st.integers(0, 30), max_size=6), st.integers(0, 120))
def test_quotas_hand_on_what_a_class_lacks(room, wanted):
    quota = quotas(room, wanted)
    assert sum(quota.values()) == min(wanted, sum(room.values()))
    assert quota.keys() == room.keys()
    for label, given_ in quota.items():
        assert 0 <= given_ <= room[label]
        if given_ < room[label]:
            assert given_ >= max(quota.values()) - 1, "a class with rows to spare has its share"


def test_an_equal_share_for_each_pseudo_class():
    """30 rows of class 0 for every 10 of class 1 and 3 of class 2; of 18, class 2 lacks 3."""
    labels = [0] * 30 + [1] * 10 + [2] * 3
    seen = votes([[[0.8 if c == label else 0.1 for c in range(3)] for label in labels]])
    lesson = select(Selection(count=18, per_class="equal"), seen)
    assert Counter(item.label for item in lesson.easy) == {"red": 8, "green": 7, "blue": 3}
    assert "blue" not in {item.label for item in lesson.hard}, "a class without hard rows"


@quick
@given(st.dictionaries(st.integers(0, 9), st.integers(0, 30), max_size=6), st.integers(0, 120))
def test_proportional_quotas_take_the_same_share_of_each_class(room, wanted):
    quota = proportional(room, wanted)
    total = sum(room.values())
    assert sum(quota.values()) == min(wanted, total)
    assert quota.keys() == room.keys()
    present = [label for label in room if room[label]]
    for label in present:
        assert quota[label] <= room[label]
        share = min(wanted, total) * room[label] / total
        assert quota[label] < share + 1
        if wanted >= len(present):
            assert quota[label] >= 1, "no predicted class is left out"


def test_the_default_takes_a_skewed_pool_as_it_is():
    """88 rows of one class and 12 of another: a quarter is 22 and 3, not 12 and 12."""
    labels = [0] * 88 + [1] * 12
    seen = votes([[[0.8 if c == label else 0.1 for c in range(3)] for label in labels]])
    default = select(Selection(count=25), seen)
    equal = select(Selection(count=25, per_class="equal"), seen)
    assert Counter(item.label for item in default.easy) == {"red": 22, "green": 3}
    assert Counter(item.label for item in equal.easy) == {"red": 13, "green": 12}


def test_without_quotas_the_best_keys_win_whatever_their_class():
    stack = [[[0.95, 0.05, 0.0]] * 6 + [[0.2, 0.5, 0.3]] * 6]
    lesson = select(Selection(count=5, how="topk", per_class="none"), votes(stack))
    assert {item.label for item in lesson.easy} == {"red"}


def test_a_class_may_end_without_easy_rows():
    """N_r = 1 and two classes: all of class 1 is hard, and the loop goes on."""
    stack = [[[0.9, 0.1, 0.0]] * 4 + [[0.1, 0.9, 0.0]] * 4]
    lesson = select(Selection(count=1), votes(stack))
    assert [item.label for item in lesson.easy] == ["red"]
    assert Counter(item.label for item in lesson.hard) == {"red": 3, "green": 4}


def test_a_pool_of_one_pseudo_class_fills_the_whole_count():
    lesson = select(Selection(count=4), votes([[[0.9, 0.1, 0.0]] * 9]))
    assert Counter(item.label for item in lesson.easy) == {"red": 4}


# ── topk, bottom, shares ─────────────────────────────────────────────────────────────────────────


def test_topk_takes_the_largest_weights():
    lesson = select(Selection(count=3, how="topk"), LADDER)
    assert uids(lesson.easy) == ["uid-9", "uid-8", "uid-7"]


@pytest.mark.parametrize("hard", ["rest", "bottom"])
def test_topk_draws_uniformly_where_all_scores_are_equal(hard):
    """Ids may be sorted by class or source: their order must not decide (Eq. 5)."""
    seen, pick = votes([[[0.9, 0.1, 0.0]] * 8]), Selection(count=2, how="topk", hard=hard)
    lessons = [select(pick, seen, seed=seed) for seed in range(400)]
    taken = Counter(uid for lesson in lessons for uid in uids(lesson.easy))
    left = Counter(uid for lesson in lessons for uid in uids(lesson.hard)[:1])
    assert len(taken) == len(left) == 8
    assert 60 < min(taken.values()) <= max(taken.values()) < 140  # 100 each, sd 9
    assert 25 < min(left.values()) <= max(left.values()) < 75  # 50 each, sd 7


def test_bottom_keeps_the_least_reliable_quarter_of_the_rest():
    """Seven rows are left after three: a quarter of 7, rounded up, is 2."""
    lesson = select(Selection(count=3, how="topk", hard="bottom"), LADDER)
    assert set(uids(lesson.hard)) == {"uid-0", "uid-1"}
    assert Counter(line.role for line in lesson.audit) == {"easy": 3, "hard": 2, "left": 5}


def test_rank_scale_compares_places_instead_of_values():
    """Eq. 5 by rank: confidence .50 to .95 becomes 0 to 1; equal certainty is .5 for all."""
    lesson = select(Selection(score=Reliable(alpha=0.4, scale="rank"), **ALL), LADDER)
    weights = [line.weight for line in lesson.audit]
    assert weights == pytest.approx([0.4 * i / 9 + 0.6 * 0.5 for i in range(10)])


def test_on_the_raw_scale_alpha_hardly_acts_and_by_rank_it_does():
    """Eq. 5: how far the shares s / Σ s under alpha .2 and .8 lie apart (total variation)."""
    seen = random_votes(2000, 2, passes=10, seed=1, noise=0.3)

    def weights(alpha: float, scale: str) -> torch.Tensor:
        lesson = select(Selection(score=Reliable(alpha=alpha, scale=scale), **ALL), seen)
        w = torch.tensor([line.weight for line in lesson.audit], dtype=torch.float64)
        return w / w.sum()

    raw = (weights(0.2, "raw") - weights(0.8, "raw")).abs().sum() / 2
    rank = (weights(0.2, "rank") - weights(0.8, "rank")).abs().sum() / 2
    assert raw < 0.05, "of all that is drawn, less than a twentieth is moved by alpha"
    assert rank > raw


def test_a_count_takes_at_most_half_of_the_pool():
    assert Selection(count=1024).size(4096, 1) == 1024
    assert Selection(count=1024).size(300, 1) == 150
    assert Selection(count=1024).size(1, 1) == 1


def test_shares_grow_by_round_and_the_last_one_stays():
    pick = Selection(count=None, shares=(0.25, 0.4, 0.6))
    assert [pick.size(100, number) for number in (1, 2, 3, 4, 9)] == [25, 40, 60, 60, 60]
    assert pick.size(1, 1) == 1


def test_all_of_the_pool_can_be_easy():
    lesson = select(Selection(score=Uniform(), **ALL), random_votes(50, 3, passes=2, seed=1))
    assert len(lesson.easy) == 50
    assert lesson.hard == ()


# ── what the lesson says ─────────────────────────────────────────────────────────────────────────


def test_soft_labels_are_the_means_of_the_passes():
    seen = random_votes(12, 3, passes=4, seed=2)
    lesson = select(Selection(**ALL), seen)
    for item in lesson.easy:
        row = int(item.example.uid.removeprefix("uid-"))
        assert item.soft == tuple(seen.mean[row].tolist())
        assert item.label == LABELS[int(pseudo_label(seen)[row])]
        assert math.isclose(sum(item.soft), 1)


@pytest.mark.parametrize(("passes", "by"), [(1, "plain"), (3, "mean")])
def test_a_plain_label_is_as_sure_as_its_own_pass_where_there_is_no_mean(passes, by):
    """ST and LiST: the one dropout pass they make gives neither their label nor its confidence."""
    seen = random_votes(40, 3, passes=passes, seed=5)
    found = select(Selection(**ALL, score=Uniform(), label="deterministic"), seen)
    sure = getattr(seen, by).gather(1, seen.plain.argmax(1, keepdim=True)).squeeze(1)
    told = {line.uid: line.confidence for line in found.audit}
    assert told == {example(i).uid: value for i, value in enumerate(sure.tolist())}


def test_gold_rows_pass_through_untouched():
    gold = (Labelled(example("gold"), "red"),)
    lesson = Selection(count=2)(
        [([example(i) for i in range(10)], LADDER)], LABELS, gold, RoundDraw(10, 1, 12)
    )
    assert lesson.gold == gold


def test_an_empty_stream_gives_an_empty_lesson():
    for pick in (Selection(), Selection(align=True)):
        lesson = pick([], LABELS, (), RoundDraw(0, 1, 12))
        assert (lesson.easy, lesson.hard, lesson.audit) == ((), (), ())


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"count": 0}, "N_r"),
        ({"count": -5}, "N_r"),
        ({"count": None}, "count and shares"),
        ({"count": 5, "shares": (0.5,)}, "count and shares"),
        ({"count": None, "shares": ()}, "shares"),
        ({"count": None, "shares": (0.5, 1.5)}, "shares"),
        ({"count": None, "shares": (0.0,)}, "shares"),
        ({"kappa": 0.0}, "kappa"),
    ],
)
def test_values_out_of_range_are_named(wrong, names):
    with pytest.raises(ConfigError, match=names):
        Selection(**wrong)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan])
def test_alpha_must_be_a_share(alpha):
    with pytest.raises(ConfigError, match="alpha"):
        Reliable(alpha=alpha)


def test_the_draw_ignores_the_global_generator_and_leaves_it_alone():
    seen = random_votes(100, 3, passes=3, seed=1)
    lessons = []
    for state in (1, 2):
        torch.manual_seed(state)
        before = torch.get_rng_state()
        lessons.append(select(Selection(count=20), seen))
        assert torch.equal(torch.get_rng_state(), before)
    assert lessons[0] == lessons[1]


def test_certainty_may_be_a_share_of_the_largest_gain():
    opposite = votes([[[1.0, 0.0]], [[0.0, 1.0]]])  # the gain is ln 2, all that two classes allow
    plain = select(Selection(score=Certain(), count=1), opposite).audit[0]
    share = select(Selection(score=Certain(), count=1, normalised=True), opposite).audit[0]
    assert plain.certainty == pytest.approx(1 - math.log(2))
    assert share.certainty == pytest.approx(0, abs=1e-12)


# ── what a row counts ────────────────────────────────────────────────────────────────────────────


def test_rows_count_by_the_variance_of_their_own_class():
    """-0.1 ln(var + 1e-10); the passes give green of the first row .6 and .8: variance .01."""
    seen = votes([[[0.3, 0.6, 0.1], [0.2, 0.2, 0.6]], [[0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]])
    lesson = select(Selection(**ALL, weigh=LowVariance()), seen)
    weights = {row.label: row.weight for row in lesson.easy}
    assert weights["green"] == pytest.approx(-0.1 * math.log(0.01 + 1e-10))
    assert weights["blue"] == pytest.approx(-0.1 * math.log(1e-10))


def test_without_a_rule_every_row_counts_the_same():
    lesson = select(Selection(), random_votes(20, 3, 4, seed=1))
    assert {row.weight for row in lesson.easy} == {1.0}
