"""How often a row is drawn: by its weight, and a weight of zero last."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from by_hand import example, votes
from selections import quick, select, uids
from selftrain.method.selection import (
    Certain,
    RoundDraw,
    Selection,
)

# ── how often ────────────────────────────────────────────────────────────────────────────────────

WEIGHTS = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}
DRAWS = 5000
# Four standard errors of a share: sqrt(.25 / 5000) = .0071 at most.
TOLERANCE = 0.029


def drawn(pick: Selection, count: int, weights: dict[str, float]) -> dict[str, float]:
    """How often each row is among the first ``count``, over seeds 0 to 4,999."""
    times: Counter[str] = Counter()
    for seed in range(DRAWS):
        order = sorted(weights, key=lambda uid: pick.key(weights[uid], seed, uid), reverse=True)
        times.update(order[:count])
    return {uid: times[uid] / DRAWS for uid in weights}


def test_the_first_draw_is_proportional_to_the_weight():
    """Eq. 5."""
    assert drawn(Selection(), 1, WEIGHTS) == pytest.approx(WEIGHTS, abs=TOLERANCE)


def test_the_second_draw_is_proportional_among_those_left():
    """Successive sampling: P(i in two) = s_i + Σ_j s_j s_i / (1 - s_j), not 2 s_i.

    For d: .4 + .4 (.1/.9 + .2/.8 + .3/.7) = .4 + .4 · .789683 = .715873, where 2 s would be .8.
    """
    expected = {
        i: s + sum(t * s / (1 - t) for j, t in WEIGHTS.items() if j != i)
        for i, s in WEIGHTS.items()
    }
    assert expected["d"] == pytest.approx(0.715873, abs=1e-6)
    assert sum(expected.values()) == pytest.approx(2)
    assert drawn(Selection(), 2, WEIGHTS) == pytest.approx(expected, abs=TOLERANCE)


def test_power_draws_by_weight_to_the_kappa():
    """kappa 2: 1, 4, 9, 16 of 30."""
    expected = {"a": 1 / 30, "b": 4 / 30, "c": 9 / 30, "d": 16 / 30}
    pick = Selection(how="power", kappa=2.0)
    assert drawn(pick, 1, WEIGHTS) == pytest.approx(expected, abs=TOLERANCE)


def test_weights_that_are_all_zero_draw_uniformly():
    """Eq. 5, where Σ s = 0."""
    nothing = dict.fromkeys(WEIGHTS, 0.0)
    expected = dict.fromkeys(WEIGHTS, 0.25)
    assert drawn(Selection(), 1, nothing) == pytest.approx(expected, abs=TOLERANCE)


# ── zero weights ─────────────────────────────────────────────────────────────────────────────────

# Rows of one class: even ones shake (a gain above zero), odd ones never do (a gain of zero).
SHAKEN, STILL = [[0.9, 0.1], [0.6, 0.4]], [[0.8, 0.2], [0.8, 0.2]]


@quick
@given(st.integers(1, 10), st.integers(0, 10_000), st.sampled_from(["sample", "topk", "power"]))
def test_zero_weights_enter_only_when_positive_ones_run_out(wanted, seed, how):
    """Eq. 5: ten rows, five of weight zero."""
    stack = [[(SHAKEN, STILL)[i % 2][t] for i in range(10)] for t in range(2)]
    pick = Selection(
        score=Certain(invert=True), count=None, shares=(wanted / 10,), how=how, kappa=9
    )
    lesson = select(pick, votes(stack), seed=seed)
    weight = {line.uid: line.weight for line in lesson.audit}
    positive = [uid for uid in uids(lesson.easy) if weight[uid] > 0]
    assert sum(w > 0 for w in weight.values()) == 5
    assert len(lesson.easy) == wanted
    assert len(positive) == min(wanted, 5)


def test_certainty_of_zero_still_allows_a_draw():
    """Five classes in flat contradiction: every weight of ``Certain`` is 0, so uniform."""
    seen = votes(torch.eye(5)[:, None].expand(5, 8, 5))
    pick = Selection(score=Certain(), count=3)
    pool = [example(i) for i in range(8)]
    first = set()
    for seed in range(40):
        lesson = pick([(pool, seen)], "abcde", (), RoundDraw(8, 1, seed))
        assert len(lesson.easy) == 3
        first.add(uids(lesson.easy)[0])
    assert len(first) > 4
