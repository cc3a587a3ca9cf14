"""The guard: no class is lost, the folds believe the answers, the class shares stay."""

from __future__ import annotations

import pytest
import torch

from selftrain.training.folds import Folds, drift
from selftrain.training.guard import (
    FEW,
    LESS_BELIEF,
    LESS_THAN_TEACHER,
    MOST_DRIFT,
    Answers,
    NotWorse,
    no_class_lost,
)

LABELS = ("bad", "good", "mixed")


def lost(before, after):
    return no_class_lost(LABELS, Answers(before, before, after))


# ── the collapse alarm ───────────────────────────────────────────────────────────────────────


def test_a_student_that_answers_every_class_is_accepted():
    verdict = lost(["bad", "good"] * 9, ["good", "bad"] * 9)
    assert verdict.accept
    assert verdict.why == ""


def test_a_class_that_vanishes_is_refused_by_name_and_count():
    verdict = lost(["bad"] + ["good"] * 6, ["bad"] * 7)
    assert not verdict.accept
    assert verdict.why == "collapse: on 7 pool rows the student never answers `good` (6 before)"


def test_every_lost_class_is_named():
    verdict = lost(["bad"] * 5 + ["good"] * 5 + ["mixed"] * 8, ["bad"] * 18)
    assert "`good` (5 before), `mixed` (8 before)" in verdict.why


def test_of_many_lost_classes_eight_are_named() -> None:
    labels = [f"c{number:02}" for number in range(12)]
    verdict = no_class_lost(labels, Answers(labels * 5, labels * 5, ["c00"] * 60))
    assert "`c08` (5 before) and 3 more classes" in verdict.why
    assert "`c09`" not in verdict.why


def test_a_class_the_teacher_never_answered_cannot_be_lost():
    assert lost(["bad"] * 9, ["bad"] * 9).accept


def test_a_class_the_student_finds_again_is_welcome():
    assert lost(["bad"] * 9, ["bad"] * 8 + ["mixed"]).accept


def test_of_many_classes_one_with_few_answers_may_vanish_from_the_slice_by_chance():
    """Fifty classes on 256 rows have five answers each: some are missed without any harm."""
    before = ["bad"] * 200 + ["good"] * (FEW - 1)
    assert lost(before, ["bad"] * len(before)).accept
    assert not lost([*before, "good"], ["bad"] * (len(before) + 1)).accept


# ── beliefs of held-out labels, and class shares ─────────────────────────────────────────────

ROWS = 1000
FIRST = ["bad"] * 500 + ["good"] * 500


def folds(belief_in_bad: list[float]) -> Folds:
    belief = torch.tensor([[p, 1 - p, 0.0] for p in belief_in_bad], dtype=torch.float64)
    return Folds(
        belief, torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64), belief, torch.zeros(0).long()
    )


def judged(after, belief_in_bad):
    return NotWorse(folds(belief_in_bad))(LABELS, Answers(FIRST, FIRST, after))


def swapped(count: int) -> list[str]:
    """So many answers of each class become the other: the shares stay."""
    return ["good"] * count + ["bad"] * (500 - count) + ["bad"] * count + ["good"] * (500 - count)


def test_a_round_that_held_out_labels_support_is_accepted_however_many_answers_change():
    believes_the_swap = [0.3] * 200 + [0.7] * 300 + [0.7] * 200 + [0.3] * 300
    verdict = judged(swapped(200), believes_the_swap)
    assert verdict.accept
    assert verdict.numbers["belief gain"] == pytest.approx(0.4 * 0.4)
    assert verdict.numbers["drift"] == 0


def test_a_round_that_held_out_labels_support_less_is_refused_in_one_sentence():
    """Swapped answers lose 0.6 of belief each; of 1,000 rows, 32 lose 0.0192 and 34 lose 0.0204."""
    believes_the_first = [0.8] * 500 + [0.2] * 500
    assert LESS_BELIEF == 0.02
    assert judged(swapped(16), believes_the_first).accept
    verdict = judged(swapped(17), believes_the_first)
    assert not verdict.accept
    assert verdict.why == (
        "held-out labels support its answers less than those of round 0 (-2.0 points)"
    )


def test_a_round_that_shifts_the_classes_needs_support_for_it():
    """A shift of 0.1 asks for 0.6 · 0.1 - 0.02 = 0.04 more belief; 100 rows give 0.039 or 0.041."""
    after = ["good"] * 100 + FIRST[100:]
    too_weak, enough = ([0.5 - gain / 2] * 100 + [0.8] * 400 + [0.2] * 500 for gain in (0.39, 0.41))
    verdict = judged(after, too_weak)
    assert not verdict.accept
    assert verdict.why == (
        "its answers shift the class shares by 10%, and held-out labels hardly support it "
        "(+3.9 points)"
    )
    assert judged(after, enough).accept


def test_a_round_that_moves_the_class_shares_far_is_refused_though_the_folds_like_it():
    """97 to 64: each round pushed the rare class until it flooded everything."""
    count = round(MOST_DRIFT * ROWS) + 1
    verdict = judged(["good"] * count + FIRST[count:], [0.0] * ROWS)
    assert not verdict.accept
    assert verdict.why == "its answers shift the class shares by 17%"
    assert judged(["good"] * (count - 1) + FIRST[count - 1 :], [0.0] * ROWS).accept


def test_no_round_is_learnt_from_answers_that_are_mostly_wrong():
    """A round that changes nothing is refused where the folds believe round 0 by 0.39."""
    verdict = judged(FIRST, [0.39] * 500 + [0.61] * 500)
    assert not verdict.accept
    assert verdict.why == (
        "held-out labels support the answers of round 0 by only 39%: too little to learn from"
    )
    assert judged(FIRST, [0.41] * 500 + [0.59] * 500).accept


def deep(before, after, belief_in_bad):
    return NotWorse(folds(belief_in_bad))(LABELS, Answers(FIRST, before, after, deep=True))


def test_a_deep_student_needs_a_point_less_support_for_its_drift():
    """A shift of 0.1 asks a head for 0.04 more belief, a deep student for 0.03."""
    after = ["good"] * 100 + FIRST[100:]
    too_weak, enough = ([0.5 - gain / 2] * 100 + [0.8] * 400 + [0.2] * 500 for gain in (0.29, 0.31))
    assert not judged(after, enough).accept
    assert deep(FIRST, after, enough).accept
    verdict = deep(FIRST, after, too_weak)
    assert not verdict.accept
    assert "hardly support it (+2.9 points)" in verdict.why


def test_a_deep_student_is_compared_with_its_teacher():
    """Swapped answers lose 0.6 of belief each: of 1,000 rows 24 lose 0.0144 and 26 lose 0.0156."""
    believes_the_first = [0.8] * 500 + [0.2] * 500
    assert LESS_THAN_TEACHER == 0.015
    assert deep(FIRST, swapped(12), believes_the_first).accept
    verdict = deep(FIRST, swapped(13), believes_the_first)
    assert not verdict.accept
    assert verdict.why == (
        "held-out labels support its answers less than those of its teacher (-1.6 points)"
    )
    assert verdict.numbers["belief gain over teacher"] == pytest.approx(-0.0156)


def test_deep_students_that_each_lose_a_little_are_refused_before_it_adds_up():
    """0.0144 below its teacher is allowed, 0.0312 below round 0 is not."""
    believes_the_first = [0.8] * 500 + [0.2] * 500
    verdict = deep(swapped(14), swapped(26), believes_the_first)
    assert verdict.numbers["belief gain over teacher"] == pytest.approx(-0.0144)
    assert not verdict.accept
    assert "than those of round 0 (-3.1 points)" in verdict.why


def test_small_steps_do_not_add_up_because_every_round_is_compared_with_round_0():
    after = ["good"] * 200 + FIRST[200:]
    before = ["good"] * 120 + FIRST[120:]
    assert drift(before, after) < MOST_DRIFT
    verdict = NotWorse(folds([0.0] * ROWS))(LABELS, Answers(FIRST, before, after))
    assert not verdict.accept


def test_without_folds_the_class_shares_alone_decide():
    """One label a class leaves nothing to hold out."""
    guard = NotWorse(None)
    assert guard(LABELS, Answers(FIRST, FIRST, swapped(200))).accept
    assert not guard(LABELS, Answers(FIRST, FIRST, ["good"] * 180 + FIRST[180:])).accept


def test_a_lost_class_is_refused_by_the_folds_guard_too():
    first = ["bad"] * 990 + ["good"] * 10
    verdict = NotWorse(None)(LABELS, Answers(first, first, ["bad"] * ROWS))
    assert "never answers `good`" in verdict.why
