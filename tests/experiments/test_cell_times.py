"""The estimated cost of cells, in rows read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from selftrain.experiments.estimate import TOKENS, Counts, rows_read, training

from by_hand import METHOD
from selftrain.experiments import estimate
from selftrain.method.recipes import LAPTOP, recipe
from selftrain.model.pel import Adapter
from small_bench import FT, ST

COUNTS = Counts(labelled=32, pool=2048, scored=1000, classes=2)


def test_placeholders_of_ptuning_make_every_row_of_its_students_longer(tiny_backbone):
    """Its teacher has none, so in one round teaching and annotating cost the same."""
    bert = tiny_backbone("bert")
    short, long = (
        rows_read(replace(recipe(f"upet-prompt-{tuning}"), rounds=1), bert, COUNTS)
        for tuning in ("adapter", "ptuning")
    )
    (student,) = recipe("upet-prompt-ptuning").student
    trained = student.steps * (student.batch_size + 2 * student.contrast.negatives) * 2.3
    assert long - short == pytest.approx((trained + 1000) * student.tuning.length / TOKENS)


def test_a_step_costs_the_layers_it_goes_through_and_the_rest_once_a_text(tiny_backbone):
    (first,) = LAPTOP.student
    whole, cut = (
        replace(recipe("upet-head-adapter"), rounds=1, student=(replace(first, tuning=changes),))
        for changes in (Adapter(width=64), Adapter(width=64, layers=1))
    )
    bert = tiny_backbone("bert")  # of three layers
    trained = training(whole.student[0], 512, 2)
    expected = rows_read(whole, bert, COUNTS) - trained * 2 / 3 + 2048 * 2 / 3
    assert rows_read(cut, bert, COUNTS) == pytest.approx(expected)


def test_the_estimate_counts_a_shared_teacher_and_its_votes_once(small_bench, monkeypatch):
    monkeypatch.setattr(estimate, "seconds_per_row", lambda *_: 1.0)  # so that seconds are rows

    def rows(**methods):
        return small_bench(methods=methods, seeds=(12,), references=()).seconds()

    scored, teacher = 30, rows(ft=FT) - 30
    assert rows(upet=METHOD, ft=FT) == rows(upet=METHOD) + scored
    assert rows(upet=METHOD, st=ST) < rows(upet=METHOD) + rows(st=ST) - teacher
    other = replace(ST, passes=ST.passes + 1)
    both = rows(upet=METHOD) + rows(st=other)
    assert rows(upet=METHOD, st=other) == both - teacher - scored
