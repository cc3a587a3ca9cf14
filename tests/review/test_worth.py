"""Which rows are most worth a label."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reviewed import LABELS, rows_of
from selftrain.review.rows import Row
from selftrain.review.worth import doubt, learnt_against, most_worth, spread

TOPICS = ("football cup final", "stock market falls", "new space rocket", "election vote result")
TEXTS = [f"{TOPICS[n % 4]} number {n}" for n in range(40)]


def rows() -> tuple[Row, ...]:
    """Forty rows; the folds doubt the first twelve, and vote against the first six."""
    folds = dict.fromkeys(range(12), (0.5, 0.5))
    folds |= {n: ((0.1, 0.9) if n % 2 == 0 else (0.9, 0.1)) for n in range(6)}
    folds |= {n: ((0.95, 0.05) if n % 2 == 0 else (0.05, 0.95)) for n in range(12, 40)}
    return rows_of(TEXTS, folds=folds).rows


def test_every_row_has_one_place_in_the_order() -> None:
    assert sorted(most_worth(rows(), LABELS)) == list(range(40))
    assert sorted(most_worth(rows(), LABELS, suggested=5)) == list(range(40))


def test_rows_that_the_folds_doubt_come_first() -> None:
    assert set(most_worth(rows(), LABELS, suggested=2)[:12]) == set(range(12))


def test_rows_that_were_learnt_against_the_folds_take_turns_with_doubtful_ones() -> None:
    found = rows()
    against = {n for n in range(40) if learnt_against(found[n], LABELS)}
    assert against == {0, 3}, "of the six that the folds vote against two are easy"
    order = most_worth(found, LABELS, suggested=4)
    assert order[0] in against
    assert order[2] in against
    assert not {order[1], order[3]} & against


def test_doubt_is_that_of_the_folds_or_else_of_the_teacher() -> None:
    found = rows()
    assert doubt(found[0], LABELS) == pytest.approx(0.9)
    alone = replace(found[0], opinion=None, line=replace(found[0].line, confidence=0.8))
    assert doubt(alone, LABELS) == pytest.approx(0.2)


def test_suggestions_are_spread_over_the_topics() -> None:
    """Equally doubtful rows: four of forty should not be of one topic."""
    import numpy as np

    found = rows_of(TEXTS, folds=dict.fromkeys(range(40), (0.5, 0.5))).rows
    chosen = spread(range(40), found, np.full(40, 0.5), 4)
    assert len({place % 4 for place in chosen}) >= 3


def test_the_order_is_the_same_each_time() -> None:
    assert most_worth(rows(), LABELS) == most_worth(rows(), LABELS)


def test_without_a_word_in_common_classes_take_turns() -> None:
    import numpy as np

    found = rows_of(["abc", "defgh", "ijkl", "mnop"], folds=dict.fromkeys(range(4), (0.5, 0.5)))
    chosen = spread(range(4), found.rows, np.full(4, 0.5), 4)
    assert [LABELS.index(found.rows[place].answer) for place in chosen] == [0, 1, 0, 1]


def test_copies_of_one_text_are_all_listed() -> None:
    found = rows_of(["the same text"] * 6, folds=dict.fromkeys(range(6), (0.4, 0.6))).rows
    assert sorted(most_worth(found, LABELS)) == list(range(6))


def test_a_run_without_opinions_is_ordered_by_the_confidence_of_the_teacher() -> None:
    found = rows_of(TEXTS).rows
    order = most_worth(found, LABELS, suggested=1)
    confidences = [found[place].line.confidence for place in order]
    assert confidences[1:] == sorted(confidences[1:])
