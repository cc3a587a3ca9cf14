"""How many pseudo labels were right: hand-computed numbers, and gold labels by id and text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from selftrain.data.rows import AuditLine, Example, Labelled, Notes, uid_of
from selftrain.runs.audit import Bin, OfClass, gold_labels, truth

LINES = (
    AuditLine("a", "good", 0.95, 0.99, 4.0, "easy"),
    AuditLine("b", "good", 0.85, 0.90, 2.0, "easy"),
    AuditLine("c", "bad", 0.75, 0.95, 1.0, "hard"),
    AuditLine("d", "bad", 0.85, 0.80, 1.0, "left"),
    AuditLine("e", "bad", 0.55, 0.70, 0.0, "left"),
)
GOLD = {"a": "good", "b": "bad", "c": "bad", "d": "good"}
"""Of five rows four have a gold label; two of those are right: a, which is easy, and c."""


def test_accuracy_is_told_of_all_rows_and_of_each_role() -> None:
    found = truth(LINES, GOLD)
    assert {name: (part.rows, part.right) for name, part in found.parts.items()} == {
        "all": (4, 2),
        "easy": (2, 1),
        "hard": (1, 1),
        "left": (1, 0),
    }
    shares = [part.accuracy for part in found.parts.values()]
    assert shares == [0.5, 0.5, 1.0, 0.0]


def test_rows_without_a_gold_label_are_counted_and_left_out() -> None:
    found = truth(LINES, GOLD)
    assert (found.audit_line, found.rows) == (5, 4)
    assert found.parts["left"].rows == 1


def test_accuracy_goes_by_gold_class_and_precision_by_pseudo_class() -> None:
    every = truth((*LINES, AuditLine("f", "bad", 0.9, 0.9, 1.0, "left")), {**GOLD, "f": "bad"})
    bad, good = (every.parts["all"].classes[label] for label in ("bad", "good"))
    assert (bad, good) == (OfClass(gold=3, pseudo=3, right=2), OfClass(gold=2, pseudo=2, right=1))
    assert (bad.accuracy, good.accuracy) == (2 / 3, 1 / 2)
    easy = every.parts["easy"].classes
    assert (easy["good"].accuracy, easy["good"].precision) == (1.0, 0.5)
    assert (easy["bad"].accuracy, easy["bad"].precision) == (0.0, None)


def test_pseudo_labels_are_counted_beside_the_gold_labels_of_the_same_rows() -> None:
    found = truth(LINES, GOLD)
    assert found.parts["all"].prior == found.parts["all"].histogram == {"bad": 0.5, "good": 0.5}
    assert found.parts["easy"].prior == {"bad": 0.5, "good": 0.5}
    assert found.parts["easy"].histogram == {"bad": 0.0, "good": 1.0}


def test_the_effective_size_is_that_of_all_judged_rows() -> None:
    """8² / (16 + 4 + 1 + 1), the row without a gold label counted: its weight was used too."""
    found = truth(LINES, GOLD)
    assert found.effective == 64 / 22
    assert found.effective_share == 64 / 22 / 5


def test_equal_weights_count_every_row_and_one_weight_counts_one() -> None:
    def size(*weights: float) -> float | None:
        return truth([replace(LINES[0], weight=weight) for weight in weights], {}).effective

    assert size(0.5, 0.5, 0.5) == 3
    assert size(1, 0, 0) == 1
    assert size(0, 0) == 0
    assert size(1e200, 1e200) is None  # too large to be squared: said to be unknown, not inf


def test_calibration_compares_confidence_with_being_right_in_bins() -> None:
    """a: 0.95, right; b and d: 0.85, wrong; c: 0.75, right. Gaps 0.05 + 2 · 0.85 + 0.25 over 4."""
    found = truth(LINES, GOLD)
    assert found.calibration_error == pytest.approx(2.0 / 4)
    assert found.bins == (Bin(1, 0.75, 1.0), Bin(2, 0.85, 0.0), Bin(1, 0.95, 1.0))


def test_areas_say_which_score_trusts_right_labels_more() -> None:
    """Right: a and c; wrong: b and d. By confidence a beats both and c neither; by certainty both
    beat both; by weight a beats both, and c ties with d and loses to b."""
    assert truth(LINES, GOLD).areas == {"confidence": 0.5, "certainty": 1.0, "weight": 2.5 / 4}


def test_what_cannot_be_said_is_none() -> None:
    unknown = truth(LINES, {})
    assert (unknown.audit_line, unknown.rows, unknown.bins) == (5, 0, ())
    assert unknown.calibration_error is None
    assert [part.accuracy for part in unknown.parts.values()] == [None] * 4
    all_right = truth(LINES[:1], GOLD)
    assert set(all_right.areas.values()) == {None}  # there is no wrong one to compare with
    nothing = truth((), GOLD)
    assert (nothing.audit_line, nothing.effective, nothing.effective_share) == (0, 0, None)


def test_a_class_that_was_never_given_is_still_shown() -> None:
    found = truth([replace(line, label="good") for line in LINES], {**GOLD, "e": "ugly"})
    assert found.parts["all"].classes["ugly"] == OfClass(gold=1, pseudo=0, right=0)
    assert found.parts["easy"].classes["ugly"] == OfClass(gold=0, pseudo=0, right=0)


def test_the_lines_are_read_once() -> None:
    assert truth(iter(LINES), GOLD) == truth(LINES, GOLD)


# ── gold labels ──────────────────────────────────────────────────────────────────────────────────


def row(uid: str, text: str, label: str) -> Labelled:
    return Labelled(Example(uid, text), label)


def test_a_gold_label_is_found_by_its_id_and_by_its_text() -> None:
    found = gold_labels(
        [row("7", "fine", "good"), row(uid_of("dull"), "dull", "bad")], notes=Notes()
    )
    assert found == {"7": "good", uid_of("fine"): "good", uid_of("dull"): "bad"}


def test_a_text_with_two_labels_has_none_and_the_user_is_told() -> None:
    notes = Notes()
    rows = [row(uid_of("so so"), "so so", label) for label in ("good", "bad", "good")]
    assert gold_labels(rows, notes=notes) == {}
    assert dict(notes) == {"gold texts with two labels, not joined by their text": 1}


def test_two_rows_of_one_text_keep_their_ids() -> None:
    found = gold_labels([row("1", "so so", "good"), row("2", "so so", "bad")], notes=Notes())
    assert found == {"1": "good", "2": "bad"}
