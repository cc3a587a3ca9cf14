"""What a person reads: a line a round, and a closing table that never shifts a column."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from selftrain.cli.talk import table
from selftrain.data.rows import Example, Labelled
from selftrain.experiments.closing import closing_rows
from selftrain.runs.lines import NO_ESTIMATE, estimate_lines, round_line
from selftrain.training.estimate import Estimate, RoundEstimate
from selftrain.training.expected import INTERVALS_JUDGED, INTERVALS_RIGHT, Expected
from selftrain.training.label_check import Doubt

FITTED = {"loss": 0.1234, "contrast": None, "tuned": 770, "total": 22_713_216}


def test_the_teachers_line_says_what_it_trained_and_how_long_it_took() -> None:
    line = round_line(0, 3, {"fit": [FITTED], "seconds": 40.6})
    assert line == "teacher     loss 0.123   770 of 22.7M trained   41 s"


def test_a_rounds_line_says_what_was_picked_and_what_changed() -> None:
    numbers = {
        "picked": 410,
        "pool": 1024,
        "confidence": 0.944,
        "certainty": 0.981,
        "changed": 0.034,
        "fit": [FITTED, {**FITTED, "loss": 0.2, "contrast": 1.5}],
        "dev": 0.9062,
        "seconds": 12.0,
    }
    assert round_line(2, 3, numbers, "converged") == (
        "round 2/3   picked 410 of 1024   confidence 0.94   certainty 0.98   changed 3%   "
        "loss 0.200   contrast 1.50   770 of 22.7M trained   dev 90.6   12 s   converged"
    )


def test_a_round_whose_training_broke_off_says_why() -> None:
    line = round_line(1, 3, {"seconds": 3.0}, "the loss is nan at step 7 of 120")
    assert line == "round 1/3   3 s   the loss is nan at step 7 of 120"


def test_numbers_a_stranger_left_out_or_spoilt_are_left_out_of_the_line() -> None:
    for numbers in ({}, {"picked": 3, "fit": []}, {"picked": {"good": 3}, "pool": 9, "fit": 7}):
        assert round_line(1, 3, numbers, "why") == "round 1/3   why"
    assert round_line(1, 3, {"fit": [{"loss": 0.5}], "seconds": [{}]}) == "round 1/3   loss 0.500"


# ── the closing table ────────────────────────────────────────────────────────────────────────

SCORES = {
    "majority": {12: 0.50, 21: 0.50, 42: 0.50},
    "teacher": {12: 0.80, 21: 0.82, 42: 0.84},
    "round 1": {12: 0.81, 21: None, 42: 0.85},
    "round 2": {42: 0.86},
    "final": {12: 0.81, 21: 0.82, 42: 0.86},
}


def test_a_seed_that_lacks_a_round_leaves_its_place_empty() -> None:
    assert closing_rows(SCORES, [12, 21, 42]) == [
        ["system", "seed 12", "seed 21", "seed 42", "mean ± sd"],
        ["majority", "50.0", "50.0", "50.0", "50.0 ± 0.0"],
        ["teacher", "80.0", "82.0", "84.0", "82.0 ± 2.0"],
        ["round 1", "81.0", "–", "85.0", "83.0 ± 2.8 (2 of 3)"],
        ["round 2", "–", "–", "86.0", "86.0 (1 of 3)"],
        ["final", "81.0", "82.0", "86.0", "83.0 ± 2.6"],
    ]


def test_seeds_stand_in_the_order_asked_for() -> None:
    head, *rows = closing_rows(SCORES, [42, 12])
    assert head == ["system", "seed 42", "seed 12", "mean ± sd"]
    assert rows[1] == ["teacher", "84.0", "80.0", "82.0 ± 2.8"]


def test_one_seed_has_no_mean() -> None:
    assert closing_rows(SCORES, [12])[:2] == [["system", "seed 12"], ["majority", "50.0"]]


def test_what_is_not_above_the_majority_class_is_marked() -> None:
    """On the seeds both have: round 1 is above its own majority row, the teacher is not."""
    scores = {
        "majority": {1: 0.5, 2: 0.9},
        "teacher": {1: 0.5, 2: 0.9},
        "round 1": {1: 0.6},
        "round 2": {},
    }
    names = [row[0] for row in closing_rows(scores, [1, 2])[1:]]
    assert names == ["majority", "teacher (not learnt)", "round 1", "round 2"]
    assert closing_rows({"teacher": {1: 0.1}}, [1])[1] == ["teacher", "10.0"]


def test_a_table_keeps_every_cell() -> None:
    console = Console(width=60, file=StringIO())
    console.print(table(("a", "b"), [("one", "1"), ("two", "22")], title="t", numeric=True))
    lines = console.file.getvalue().splitlines()
    assert lines[0].strip() == "t"
    assert [line for line in lines if "│" in line] == ["│ one │  1 │", "│ two │ 22 │"]


def test_the_line_of_a_teacher_says_how_many_class_names_it_learns_from():
    line = round_line(0, 3, {"fit": [{"loss": 1.9, "name_rows": 8}]})
    assert line == "teacher     class-name rows 8   loss 1.900"
    assert "class-name" not in round_line(0, 3, {"fit": [{"loss": 1.9, "name_rows": None}]})


def test_the_estimate_is_one_sentence_and_at_most_five_labels_to_check() -> None:
    doubts = tuple(Doubt(row, f"uid-{row}", "bad", "good", 0.97) for row in range(1, 8))
    rounds = (RoundEstimate(3, Expected(0.774, 0.66, 0.871, 0.7, 0.8), 1.2),)
    rows = [Labelled(Example(f"uid-{row}", "a very long text " * 9), "bad") for row in range(1, 8)]
    lines = list(estimate_lines(Estimate(rounds, 0.75, 32, doubts), 3, rows))
    assert lines[0] == (
        "expected accuracy 0.77, between 0.66 and 0.87 (such intervals were right for "
        f"{INTERVALS_RIGHT} of {INTERVALS_JUDGED} models of other tasks)"
    )
    assert lines[1] == (
        'check a label: "a very long text a very long text a very long text a very …" '
        "is labelled `bad`; a model that did not see it says `good`, 0.97"
    )
    assert len(lines) == 6
    assert list(estimate_lines(None, 3, rows)) == [NO_ESTIMATE]


def test_fewer_than_four_labels_of_a_class_are_named_as_the_reason_of_no_estimate() -> None:
    rows = [Labelled(Example(str(n), "text"), "bad" if n < 3 else "good") for n in range(9)]
    assert list(estimate_lines(None, 3, rows)) == [
        "no expected accuracy: `bad` has 3 labels, 4 are needed"
    ]


def test_a_label_is_not_called_doubtful_on_weak_grounds() -> None:
    weak = (Doubt(1, "uid-1", "bad", "good", 0.6),)
    rounds = (RoundEstimate(0, Expected(0.7, 0.6, 0.8, 0.7, 0.7), 1.0),)
    assert len(list(estimate_lines(Estimate(rounds, 0.7, 32, weak), 0, []))) == 1
