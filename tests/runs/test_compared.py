"""What changed between two runs, and whether files are those of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from reviewed import line, write_run
from selftrain.data.rows import Labelled, Split, examples, uid_of
from selftrain.errors import DataError
from selftrain.runs import compared as room
from selftrain.runs.compared import Compared, compared, compared_lines, differing_rows
from selftrain.training.estimate import Opinion

RUN = Path("run")


def test_two_estimates_are_compared_in_three_lines() -> None:
    found = Compared((0.774, 0.81), ((0.4, 0.6), (0.5, 0.5)), 2000, 37)
    assert list(compared_lines(found, RUN)) == [
        "against run: expected accuracy 0.77, now 0.81",
        "class shares of the pool 40:60, now 50:50",
        "other answers on 37 of 2000 pool rows",
    ]


def test_what_is_not_known_is_not_compared() -> None:
    found = Compared((None, 0.81), ((), (0.5, 0.5)), 0, 0)
    assert list(compared_lines(found, RUN)) == [
        "against run: one of the two runs has no expected accuracy"
    ]


def test_answers_are_compared_on_the_rows_that_both_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"one": {"a": "good", "b": "bad", "c": "bad"}, "two": {"b": "good", "c": "bad"}}

    def opinions(folder: Path, _: object) -> tuple[list[Opinion], list[Opinion]]:
        return [], [Opinion(uid, label, ()) for uid, label in answers[folder.name].items()]

    monkeypatch.setattr(room, "opinions_of", opinions)
    one, two = (write_run(tmp_path / name, [[line("a")]]) for name in answers)
    found = compared(one, two)
    assert (found.rows, found.changed, found.expected) == (2, 1, (None, None))


GOLD = tuple(Labelled(each, "good") for each in examples(["gold"]))


def test_a_pool_that_differs_is_counted_and_one_of_another_run_is_an_error(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [[], [line(uid_of("a")), line(uid_of("b"))]])
    labelled, pool = differing_rows(run, Split(GOLD, examples(["a", "x"])), "pool.csv")
    assert labelled == f"the labelled rows are not those of {run}"
    assert pool == f"the pool is not that of {run}: it has 1 of the 2 texts that the run judged"
    with pytest.raises(DataError, match=r"pool\.csv has none of the 2 texts"):
        list(differing_rows(run, Split(GOLD, examples(["x"])), "pool.csv"))
