"""The collapse alarm."""

from __future__ import annotations

from selftrain.training.guard import no_class_lost

LABELS = ("bad", "good", "mixed")


def test_a_student_that_answers_every_class_is_accepted():
    verdict = no_class_lost(LABELS, ["bad", "good"], ["good", "bad"])
    assert verdict.accept
    assert verdict.why == ""


def test_a_class_that_vanishes_is_refused_by_name_and_count():
    verdict = no_class_lost(LABELS, ["bad", "good", "good"], ["bad", "bad", "bad"])
    assert not verdict.accept
    assert verdict.why == "collapse: on 3 pool rows the student never answers `good` (2 before)"


def test_every_lost_class_is_named():
    verdict = no_class_lost(LABELS, ["bad", "good", "mixed"], ["bad", "bad", "bad"])
    assert "`good` (1 before), `mixed` (1 before)" in verdict.why


def test_a_class_the_teacher_never_answered_cannot_be_lost():
    assert no_class_lost(LABELS, ["bad", "bad"], ["bad", "bad"]).accept


def test_a_class_the_student_finds_again_is_welcome():
    assert no_class_lost(LABELS, ["bad", "bad"], ["bad", "mixed"]).accept
