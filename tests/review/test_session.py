"""A review in progress: what is listed, what is shown, and what is decided."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reviewed import rows_of, session_of
from selftrain.errors import ConfigError
from selftrain.review.session import LONGEST_TEXT, SNIPPET, Session, View

TEXTS = ["a fine film", "a dull film", "FINE music", "no plot", "great cast", "a long night"]
FOLDS = {0: (0.2, 0.8), 1: (0.6, 0.4)}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    found = session_of(rows_of(TEXTS, folds=FOLDS), tmp_path / "corrections.jsonl")
    yield found
    found.journal.close()


def texts(session: Session, **view: object) -> list[str]:
    return [session.rows[at].example.text for at in session.refreshed(View(**view))]  # type: ignore[arg-type]


def test_words_are_found_whatever_their_case(session: Session) -> None:
    assert sorted(texts(session, text="fine")) == ["FINE music", "a fine film"]
    assert texts(session, text="<script>") == []


def test_rows_are_filtered_by_label_role_and_verdict(session: Session) -> None:
    assert texts(session, order="file", label=1) == TEXTS[1::2]
    assert texts(session, order="file", role="easy") == TEXTS[0::3]
    session.decide(1, "drop")
    assert texts(session, state="done") == ["a dull film"]
    assert len(texts(session, state="open")) == 5


def test_a_filter_by_label_follows_the_verdict(session: Session) -> None:
    session.decide(0, "label", 1)
    assert "a fine film" in texts(session, label=1)
    assert "a fine film" not in texts(session, label=0)


def test_a_view_stays_as_it_is_until_it_is_asked_for_anew(session: Session) -> None:
    view = View(state="open")
    assert len(session.listed(view)) == 6
    session.decide(0, "accept")
    assert len(session.listed(view)) == 6, "a row does not vanish under the cursor"
    assert len(session.refreshed(view)) == 5


def test_rows_are_ordered_by_calibrated_probability_where_it_is_known(session: Session) -> None:
    first = texts(session, order="doubt")[0]
    assert first == "a fine film", "the model gives its label 0.2"
    assert texts(session, order="sure")[-1] == first


def test_an_order_that_no_page_has_is_refused() -> None:
    with pytest.raises(ConfigError, match="is no choice"):
        View(order="1; drop")


def test_the_next_row_to_label_is_one_without_a_verdict(session: Session) -> None:
    order = session.listed(View())
    assert session.next_worth(-1) == 0
    session.decide(order[0], "accept")
    session.decide(order[1], "drop")
    assert session.next_worth(-1) == 2
    for place in order[2:-1]:
        session.decide(place, "accept")
    assert session.next_worth(5) == 5, "it begins again at the top"
    session.decide(order[-1], "accept")
    assert session.next_worth(0) is None


def test_undo_takes_back_the_last_verdict_wherever_its_row_is(session: Session) -> None:
    session.decide(4, "accept")
    session.decide(2, "label", 0)
    session.decide(2, "drop")
    assert [session.undo(), session.verdict_of(2)] == [2, ["label", 0]]
    assert [session.undo(), session.verdict_of(2)] == [2, None]
    assert session.undo() == 4
    assert session.undo() is None
    assert [each.verdict for each in session.journal.corrections][3:] == ["undo"] * 3


def test_undo_after_a_second_start_follows_the_order_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "again.jsonl"
    first = session_of(rows_of(TEXTS), file)
    first.decide(2, "label", 0)
    first.decide(4, "accept")
    first.undo()
    first.decide(0, "drop")
    first.decide(2, "accept")
    first.journal.close()
    second = session_of(rows_of(TEXTS), file)
    assert [second.undo(), second.verdict_of(2)] == [2, ["label", 0]]
    assert second.progress() == {"rows": 6, "accept": 0, "label": 1, "drop": 1}
    assert [second.undo(), second.undo(), second.undo()] == [0, 2, None]
    assert second.progress() == {"rows": 6, "accept": 0, "label": 0, "drop": 0}
    second.journal.close()


def test_verdicts_on_rows_that_are_not_shown_are_not_counted_and_not_undone(
    tmp_path: Path,
) -> None:
    file = tmp_path / "again.jsonl"
    whole = session_of(rows_of(TEXTS), file)
    whole.decide(0, "accept")
    whole.decide(5, "drop")
    whole.journal.close()
    part = session_of(rows_of(TEXTS[:3]), file)
    assert part.progress() == {"rows": 3, "accept": 1, "label": 0, "drop": 0}
    assert [part.undo(), part.undo()] == [0, None]
    part.journal.close()


def lines_run(act: Callable[[], object]) -> int:
    """How many lines of Python are run by a call, those of a loop each time."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def test_a_verdict_takes_no_more_work_after_many_others(tmp_path: Path) -> None:
    session = session_of(rows_of([f"text {n}" for n in range(300)]), tmp_path / "many.jsonl")
    acts: tuple[Callable[[], object], ...] = (
        lambda: session.decide(299, "accept"),
        session.progress,
        session.undo,
    )

    def work() -> list[int]:
        return [lines_run(act) for act in acts]

    session.decide(0, "drop")
    work()  # the first of a kind takes a line more
    few = work()
    for place in range(299):
        session.decide(place, "drop")
    assert work() == few
    session.journal.close()


def test_a_second_start_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    file = tmp_path / "again.jsonl"
    first = session_of(rows_of(TEXTS), file)
    first.decide(3, "label", 0)
    first.journal.close()
    second = session_of(rows_of(TEXTS), file)
    assert second.verdict_of(3) == ["label", 0]
    assert second.progress() == {"rows": 6, "accept": 0, "label": 1, "drop": 0}
    assert second.undo() == 3
    second.journal.close()


def test_a_long_text_is_cut_for_the_list_and_for_the_open_row(tmp_path: Path) -> None:
    session = session_of(rows_of(["x" * (LONGEST_TEXT + 7)]), tmp_path / "long.jsonl")
    assert session.brief(0)[5] == "x" * SNIPPET
    shown = session.detail(0)
    assert (len(shown["text"]), shown["cut"]) == (LONGEST_TEXT, 7)
    session.journal.close()


def test_a_row_shows_what_folds_and_model_say(session: Session) -> None:
    shown = session.detail(0)
    assert (shown["folds"], shown["model"]) == (FOLDS[0], FOLDS[0])
    assert session.detail(5)["folds"] is None
    assert session.brief(0)[2] == 0.2
    assert session.brief(5)[2] is None
