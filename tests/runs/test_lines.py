"""What a person reads: a line a round, and a closing table that never shifts a column."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import cast

import pytest
from rich.console import Console

from selftrain.cli.talk import table
from selftrain.data.rows import Example, Labelled, Lesson
from selftrain.experiments.closing import closing_rows
from selftrain.model.classifier import Classifier
from selftrain.runs.lines import (
    NO_ESTIMATE,
    estimate_lines,
    ladder_lines,
    round_line,
    shown_rungs,
    verdict,
)
from selftrain.training.estimate import Estimate, RoundEstimate
from selftrain.training.expected import FROZEN_INTERVALS, TRAINED_INTERVALS, Expected
from selftrain.training.label_check import Doubt
from selftrain.training.ladder import Rung
from selftrain.training.loop import Round

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
        "{} of {} models of other tasks)".format(*TRAINED_INTERVALS)
    )
    assert lines[1] == (
        'check a label: "a very long text a very long text a very long text a very …" '
        "is labelled `bad`; a model that did not see it says `good`, 0.97"
    )
    assert len(lines) == 6
    assert list(estimate_lines(None, 3, rows)) == [NO_ESTIMATE]


def test_models_of_a_frozen_encoder_have_their_own_record_of_intervals() -> None:
    rounds = (RoundEstimate(0, Expected(0.7, 0.6, 0.8, 0.7, 0.7), 1.0),)
    (line,) = estimate_lines(Estimate(rounds, 0.7, 32, (), frozen=True), 0, [])
    assert "{} of {} models".format(*FROZEN_INTERVALS) in line


def test_a_label_is_not_called_doubtful_on_weak_grounds() -> None:
    weak = (Doubt(1, "uid-1", "bad", "good", 0.6),)
    rounds = (RoundEstimate(0, Expected(0.7, 0.6, 0.8, 0.7, 0.7), 1.0),)
    assert len(list(estimate_lines(Estimate(rounds, 0.7, 32, weak), 0, []))) == 1


@pytest.mark.parametrize("labels", [2, 3])
def test_with_fewer_than_four_labels_of_a_class_the_sentence_names_it(labels: int) -> None:
    rows = [Labelled(Example(f"a{n}", "text"), "good") for n in range(8)]
    rows += [Labelled(Example(f"b{n}", "text"), "bad") for n in range(labels)]
    assert list(estimate_lines(None, 0, rows)) == [
        f"no expected accuracy: no folds, because `bad` has {labels} labels; "
        "4 of each class are needed"
    ]


# ── the ladder ───────────────────────────────────────────────────────────────────────────────

FAVOURED = (
    "the estimate favours the teacher; in 42 of 46 such runs of ours "
    "the last round was as good or better"
)
RUNGS = [
    Rung("majority", 0.55, None, None, "expected", 0.0),
    Rung("tf-idf", 0.71, 0.58, 0.81, "out of fold", 0.06),
    Rung("frozen", 0.78, 0.64, 0.87, "out of fold", 2.5),
    Rung("frozen self-trained", 0.85, 0.73, 0.97, "expected", 21.6),
    Rung("teacher", 0.86, 0.74, 0.98, "expected", 87.2),
    Rung("round 6", 0.84, 0.76, 0.96, "expected", 1217.0),
]


def test_the_ladder_is_a_table_and_says_which_simpler_model_is_as_good() -> None:
    assert list(ladder_lines(RUNGS, "round 6")) == [
        "ladder               accuracy  between      how          seconds",
        "  majority               0.55  –            expected         0.0",
        "  tf-idf                 0.71  0.58 - 0.81  out of fold      0.1",
        "  frozen                 0.78  0.64 - 0.87  out of fold      2.5",
        "  frozen self-trained    0.85  0.73 - 0.97  expected          22",
        "  teacher                0.86  0.74 - 0.98  expected          87",
        "* round 6                0.84  0.76 - 0.96  expected        1217",
    ]
    assert list(verdict(RUNGS, "round 6")) == [
        "frozen self-trained is probably as good: 0.85 after 22 s, round 6 0.84 after 1217 s",
        "to keep it: the same command with --keep frozen-self-trained",
        FAVOURED,
    ]


def test_the_ladder_says_how_often_a_teacher_with_the_higher_estimate_was_no_better() -> None:
    simple, teacher = RUNGS[0], replace(RUNGS[-2], accuracy=0.86)
    assert [*verdict([simple, teacher, RUNGS[-1]], "round 6")][1:] == [FAVOURED]
    lower = replace(teacher, accuracy=0.84)
    assert [*verdict([simple, lower, RUNGS[-1]], "round 6")][1:] == []
    assert [*verdict([simple, teacher], "teacher")][1:] == []


def test_the_ladder_fits_eighty_columns_with_every_number_measured() -> None:
    measured = [replace(rung, measured=0.8, seconds=123_456.0) for rung in RUNGS]
    measured.append(Rung("round 123", 0.9, 0.8, 1.0, "expected", 123_456.0, 0.8))
    table = list(ladder_lines(measured, "round 123"))
    assert table[0].endswith("measured")
    assert all(line.endswith("0.80") for line in table[1:8])
    assert max(map(len, table)) <= 80


def test_where_every_simpler_rung_is_more_than_a_point_below_none_is_as_good() -> None:
    better = replace(RUNGS[-1], accuracy=0.87)
    assert list(verdict([*RUNGS[:-1], better], "round 6")) == [
        "no simpler model is expected to be as good"
    ]


def test_a_yardstick_that_is_as_good_is_named_and_not_offered() -> None:
    words = replace(RUNGS[1], accuracy=0.84)
    assert list(verdict([RUNGS[0], words, RUNGS[-1]], "round 6")) == [
        "tf-idf is probably as good: a simple model of yours may do"
    ]


def test_a_ladder_without_a_number_is_no_table() -> None:
    empty = [replace(rung, accuracy=None, low=None, high=None) for rung in RUNGS]
    assert list(ladder_lines(empty, "round 6")) == []
    assert list(verdict(empty, "round 6")) == []
    lines = list(ladder_lines([replace(rung, measured=0.5) for rung in empty], "round 6"))
    assert len(lines) == 1 + len(RUNGS)
    assert lines[-1] == "* round 6                   –  –            expected        1217      0.50"


def test_of_the_rounds_of_a_head_the_table_shows_the_last_on_each_encoder() -> None:
    model = cast("Classifier", None)
    rounds = [
        Round(number, model, Lesson(gold=()), encoder_of=encoder, accepted=number != 5)
        for number, encoder in enumerate([None, 0, 0, None, 3, 3])
    ]
    names = ["tf-idf", "teacher", "round 1", "round 2", "round 3", "round 4"]
    rungs = [replace(RUNGS[1], name=name) for name in names]
    shown = [rung.name for rung in shown_rungs(rungs, rounds, "round 4")]
    assert shown == ["tf-idf", "teacher", "round 2", "round 3", "round 4"]
    assert [rung.name for rung in shown_rungs(rungs, rounds, "round 1")] == names
