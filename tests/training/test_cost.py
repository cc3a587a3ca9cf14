"""The work of a run, counted in rows read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from selftrain.method.recipes import recipe
from selftrain.method.spec import Method
from selftrain.method.upet import LAPTOP
from selftrain.model.pel import Adapter
from selftrain.training.cost import (
    TOKENS,
    Counts,
    estimate_work,
    fit_work,
    rows_read,
    stages,
    teacher_work,
)
from selftrain.training.draw import SLICE_ROWS

COUNTS = Counts(labelled=32, pool=2048, scored=1000, classes=2)
OF_FIT = Counts(labelled=40, pool=1100, scored=0, classes=2)
"""32 labelled rows and 8 made of class names."""


def counted(method: Method, finished: int = -1) -> dict[tuple[str, int], float]:
    found = stages(method, None, OF_FIT, finished=finished)  # type: ignore[arg-type]
    return {(stage.name, stage.number): stage.cost for stage in found if stage.cost}


def test_placeholders_of_ptuning_make_every_row_of_its_students_longer(tiny_backbone):
    """Its teacher has none, so in one round teaching and annotating cost the same."""
    bert = tiny_backbone("bert")
    short, long = (
        rows_read(replace(recipe(f"upet-prompt-{tuning}"), rounds=1), bert, COUNTS)
        for tuning in ("adapter", "ptuning")
    )
    (student,) = recipe("upet-prompt-ptuning").student
    trained = student.steps * (student.batch_size + 2 * student.contrast.negatives) * 2.3
    longer = trained + SLICE_ROWS + 1000
    assert long - short == pytest.approx(longer * student.tuning.length / TOKENS)


def test_a_step_costs_the_layers_it_goes_through_and_the_rest_once_a_text(tiny_backbone):
    (first,) = LAPTOP.student
    whole, cut = (
        replace(recipe("upet-head-adapter"), rounds=1, student=(replace(first, tuning=changes),))
        for changes in (Adapter(width=64), Adapter(width=64, layers=1))
    )
    bert = tiny_backbone("bert")  # of three layers
    trained = sum(work.cost for work in fit_work(whole.student[0], 512, 2, "pool"))
    expected = rows_read(whole, bert, COUNTS) - trained * 2 / 3 + 2048 * 2 / 3
    assert rows_read(cut, bert, COUNTS) == pytest.approx(expected)


def test_the_default_reads_the_draw_once_for_each_encoder_and_once_for_its_guard():
    """60 steps of 16 rows at 3 each; 40 rows are read for names and head, 512 for the student's."""
    head = 0.01 * 1024
    assert counted(recipe("supcon")) == {
        ("teacher", 0): 2 * 40 + 60 * 16 * 3,
        ("reading", 1): 1024 + 40,
        ("guard", 1): 1024 + 2 * 40,
        **{("head", number): head for number in (1, 2, 3, 4, 5)},
        ("student", 6): 512 + 60 * 16 * 3,
        ("reading", 6): 1024 + 40,
        **{("head", number): head for number in (7, 8, 9, 10, 11)},
        ("ladder", 11): 3 * 40 + 1024,
    }


def test_the_method_of_seconds_reads_the_draw_twice_and_trains_no_step():
    assert counted(recipe("frozen")) == {
        ("teacher", 0): 3 * 40,
        ("reading", 1): 1024 + 40,
        ("guard", 1): 1024 + 2 * 40,
        **{("head", number): 0.01 * 1024 for number in (1, 2, 3, 4, 5)},
    }


def test_a_resumed_run_reads_again_what_its_next_round_needs():
    reading, guard = 1024 + 40, 1024 + 2 * 40
    after_two = counted(recipe("supcon"), finished=2)
    assert list(after_two)[:3] == [("reading", 3), ("guard", 3), ("head", 3)]
    assert after_two["reading", 3] == reading
    after_student = counted(recipe("supcon"), finished=6)
    assert after_student["reading", 7] == 2 * reading  # by its encoder and by that of round 0
    assert after_student["guard", 7] == guard
    assert after_student["estimate", 11] == reading


def test_a_teacher_of_balanced_labels_is_counted_by_the_rarest_class():
    """300 labels, 30 of the rarer of two classes: four epochs of 60 rows, not of 300."""
    rows = replace(OF_FIT, labelled=300, rarest=30)
    method = recipe("supcon")
    assert method.teacher.balance_labels
    balanced = [work.cost for work in teacher_work(method, rows)]
    assert balanced == [work.cost for work in teacher_work(method, replace(OF_FIT, labelled=60))]
    every = replace(method, teacher=replace(method.teacher, balance_labels=None))
    assert sum(work.cost for work in teacher_work(every, rows)) > 1.2 * sum(balanced)
    few = replace(rows, rarest=2)  # eight are learnt at least
    assert [work.cost for work in teacher_work(method, few)] == [
        work.cost for work in teacher_work(method, replace(OF_FIT, labelled=16))
    ]


def test_an_estimate_of_a_teacher_alone_reads_what_round_1_would_have_read():
    method = recipe("supcon")
    after_teacher = sum(work.cost for work in estimate_work(method, OF_FIT, 0))
    assert after_teacher == counted(method)["reading", 1] + counted(method)["guard", 1]
    assert not list(estimate_work(method, OF_FIT, 1))
