"""Rows made of class names, and when they count."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from by_hand import GOLD, MACHINE, METHOD, TASK, TEACHER
from selftrain.data.rows import Lesson
from selftrain.method.spec import Tune
from selftrain.model.build import build
from selftrain.model.pel import Probe
from selftrain.training.class_names import (
    TEMPLATES,
    better_than_chance,
    class_name_rows,
    words_of,
)
from selftrain.training.fit import fit
from selftrain.training.folds import folds_of
from small_loop import run


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("very_negative", "very negative"),
        ("MeanOfTransportation", "mean of transportation"),
        ("Sci/Tech", "sci tech"),
        ("NASA", "nasa"),
        ("1_star", "1 star"),
        ("für-Kinder", "für kinder"),
    ],
)
def test_a_class_name_is_read_as_words(label, words):
    assert words_of(label) == words


@pytest.mark.parametrize(("right", "counts"), [(16, False), (18, False), (19, True), (32, True)])
def test_names_must_beat_chance_by_a_standard_error(right, counts):
    """32 rows of two classes: 16 are right by chance, the standard error is 2.8 rows."""
    assert better_than_chance(torch.arange(32) < right, torch.full((32,), 1 / 32), 2) is counts


def test_a_class_with_many_labels_does_not_decide_for_the_others():
    """All 22 rows of one class right and none of 10 others: half of the classes, as by chance."""
    right = torch.arange(32) < 22
    weights = torch.where(right, 1 / 44, 1 / 20)
    assert not better_than_chance(right, weights, 2)


class Known:
    """A model that knows which texts lie close: features by a word of the text."""

    def __init__(self, task, vectors):
        self.task, self.labels, self.vectors = task, task.labels, vectors

    def read(self, examples):
        def vector(text):
            return next(v for word, v in self.vectors.items() if word in text)

        features = torch.tensor([vector(example.text) for example in examples])
        return type("Out", (), {"features": features})


def gold_of(words):
    return tuple(replace(row, example=replace(row.example, text=words[row.label])) for row in GOLD)


VECTORS = {"bad": [1.0, 0.1], "good": [0.1, 1.0], "dull": [0.9, 0.2], "fine": [0.2, 0.9]}


def test_names_that_lie_near_the_labelled_rows_become_rows_of_every_class():
    rows = class_name_rows(Known(TASK, VECTORS), gold_of({"bad": "dull", "good": "fine"}))
    assert [row.label for row in rows] == ["bad", "good"] * len(TEMPLATES)
    assert rows[2].example.text == "This is bad."
    assert len({row.example.uid for row in rows}) == len(rows)


def test_names_that_mislead_do_not_count():
    assert class_name_rows(Known(TASK, VECTORS), gold_of({"bad": "fine", "good": "dull"})) == ()


@pytest.mark.parametrize("labels", [("+", "-"), ("very good", "very_good"), ("bad", "👍")])
def test_names_without_words_or_that_read_alike_do_not_count(labels):
    task = replace(TASK, labels=labels, template=None, words={})
    gold = [replace(row, label=labels[row.label == "good"]) for row in GOLD]
    assert class_name_rows(Known(task, {"": [1.0, 0.0]}), gold) == ()


def test_pairs_have_no_class_name_rows():
    pair = Known(replace(TASK, pair=True, template=None, words={}), VECTORS)
    assert class_name_rows(pair, gold_of({"bad": "dull", "good": "fine"})) == ()


@pytest.mark.parametrize("teacher", [TEACHER, Tune(tuning=Probe())], ids=["trained", "frozen"])
@pytest.mark.parametrize("names_count", [True, False])
def test_a_fit_says_how_many_rows_of_names_it_learns_from(
    tiny_backbone, monkeypatch, names_count, teacher
):
    """Asked for and refused, they change no weight."""
    from selftrain.training import class_names

    monkeypatch.setattr(class_names, "better_than_chance", lambda *_: names_count)
    fitted, weights = {}, {}
    for asked in (None, True):
        how = replace(teacher, class_names=asked)
        model = build(TASK, tiny_backbone("bert"), how.architecture, seed=1)
        fitted[asked] = fit(model, Lesson(GOLD), how, seed=1, machine=MACHINE)
        weights[asked] = model.head.out.weight.clone()
    assert fitted[None].name_rows is None
    assert fitted[True].name_rows == (len(TEMPLATES) * 2 if names_count else 0)
    assert torch.equal(weights[None], weights[True]) is not names_count


@pytest.mark.parametrize("asked", [True, None])
def test_the_folds_of_the_guard_learn_the_names_that_the_teacher_learns(
    tiny_backbone, monkeypatch, asked
):
    from selftrain.training import class_names, readings

    monkeypatch.setattr(class_names, "better_than_chance", lambda *_: True)
    given = []

    def watched(*rows, names, **more):
        given.append(0 if names is None else len(names.labels))
        return folds_of(*rows, names=names, **more)

    monkeypatch.setattr(readings, "folds_of", watched)
    method = replace(METHOD, guard="folds", teacher=replace(TEACHER, class_names=asked))
    run(tiny_backbone("bert"), method)
    assert given == [len(TEMPLATES) * len(TASK.labels) if asked else 0]
