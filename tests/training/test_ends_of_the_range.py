"""The default at the ends of its range: many classes, few labels, few texts."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from by_hand import MACHINE
from selftrain.data.rows import Example, Labelled, Split
from selftrain.data.task import Task
from selftrain.method.recipes import DEFAULT, recipe
from selftrain.training.job import Job
from selftrain.training.loop import last_accepted, self_train
from selftrain.training.preflight import preflight

WORDS: list[str] = [
    "great",
    "good",
    "fine",
    "yes",
    "film",
    "terrible",
    "bad",
    "dull",
    "no",
    "story",
    "it",
    "was",
    "and",
    "the",
    "a",
]


def text(label: int, number: int) -> Example:
    """A sentence in which the words of its class come back."""
    random = Random(f"{label}/{number}")
    own = Random(label).choices(WORDS, k=3)
    return Example(f"{label}-{number}", " ".join(own + random.choices(WORDS, k=2)))


def job(backbone, classes: int, labels: int, texts: int, name: str = DEFAULT) -> Job:
    task = Task("many", tuple(f"class {c:02}" for c in range(classes)))
    gold = tuple(
        Labelled(text(c, n), task.labels[c]) for n in range(labels) for c in range(classes)
    )
    pool = tuple(text(n % classes, 100 + n) for n in range(texts))
    method = recipe(name)
    quick = replace(method.teacher, steps=4, learning_rate=1e-3, class_names=None)
    student = replace(method.student[0], steps=4)
    method = replace(method, teacher=quick, student=(student,), pool=400)
    return Job(task, Split(gold, pool), method, backbone, 3)


@pytest.mark.parametrize(("name", "count"), [("probe", 5), (DEFAULT, 5 + 1 + 5)])
def test_fifty_two_classes_run_with_every_predicted_class_picked(tiny_backbone, name, count):
    run = job(tiny_backbone("bert"), classes=52, labels=2, texts=400, name=name)
    teacher, *rounds = self_train(run, machine=MACHINE)
    assert teacher.numbers["fit"][0]["steps"] == 28, "four epochs of 104 labels in batches of 16"
    assert len(rounds) == count
    for round_ in rounds:
        assert round_.numbers["classes picked"].keys() == round_.numbers["classes"].keys()
        if name == "probe":  # a contrast of 28 steps leaves this tiny encoder without some classes
            assert "collapse" not in round_.why, "the slice has too few rows of a class to miss it"
    assert last_accepted([teacher, *rounds]).model.labels == run.task.labels


@pytest.mark.parametrize("labels", [1, 4])
def test_few_labels_and_a_small_pool_run_and_are_warned_of(tiny_backbone, labels):
    run = job(tiny_backbone("bert"), classes=2, labels=labels, texts=30)
    warnings = " ".join(preflight(run))
    assert f"few labels: `class 00` has {labels}" in warnings
    assert "small pool: 30 texts" in warnings
    rounds = list(self_train(run, machine=MACHINE))
    assert len(rounds) == 1 + 5 + 1 + 5
    has_folds = "prior by folds" in rounds[1].numbers
    assert has_folds == (labels > 1), "one label a class leaves nothing to hold out"
    assert all("drift" in round_.numbers for round_ in rounds[1:])


def test_sixteen_labels_and_enough_texts_need_no_warning(tiny_backbone):
    run = job(tiny_backbone("bert"), classes=2, labels=16, texts=400)
    assert not [line for line in preflight(run) if "few" in line or "small pool" in line]
