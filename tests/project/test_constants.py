"""Constants of the product that a script measured are what it computes from the committed runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from selftrain.training.expected import FROZEN_INTERVALS, TRAINED_INTERVALS
from selftrain.training.ladder import TEACHER_LOOKED_BETTER

DEVELOPMENT = Path(__file__).parents[2] / "benchmarks" / "development"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModuleType, ModuleType]]:
    """Two scripts; no other test sees the modules that they import by name."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(DEVELOPMENT)
    import conditions
    import expected_accuracy

    yield expected_accuracy, conditions
    for name in {*sys.modules} - before:
        if (DEVELOPMENT / f"{name}.py").exists():
            del sys.modules[name]


def test_how_often_intervals_held_is_what_the_committed_runs_say(
    scripts: tuple[ModuleType, ModuleType],
) -> None:
    expected_accuracy, conditions = scripts
    assert conditions.intervals(DEVELOPMENT / "conditions.jsonl") == FROZEN_INTERVALS
    measured = expected_accuracy.intervals(DEVELOPMENT / "on_test_rows.jsonl")
    assert measured == TRAINED_INTERVALS
    right, judged = measured
    told = f"intervals held in {right} of {judged}"
    assert told in (DEVELOPMENT / "README.md").read_text("utf-8")


def test_how_often_a_favoured_teacher_was_no_better_is_what_the_committed_runs_say(
    scripts: tuple[ModuleType, ModuleType],
) -> None:
    expected_accuracy, _ = scripts
    runs = DEVELOPMENT / "on_test_rows.jsonl"
    assert expected_accuracy.teacher_looked_better(runs) == TEACHER_LOOKED_BETTER
    not_worse, such = TEACHER_LOOKED_BETTER
    assert f"as good or better in {not_worse} of {such}" in (DEVELOPMENT / "README.md").read_text()


def test_a_model_is_judged_by_constants_of_other_tasks(
    scripts: tuple[ModuleType, ModuleType],
) -> None:
    """Two tasks where the truth is belief, and one of half of it, which the others cannot know."""
    expected_accuracy, _ = scripts
    runs = [
        expected_accuracy.Run(
            variant=task,
            task=task,
            seed=seed,
            final=True,
            belief=belief,
            agreement=belief,
            half=0.01,
            accuracy=belief * share,
            bare=0.0,
            calibrated=0.0,
        )
        for task, share in (("a", 1.0), ("b", 1.0), ("c", 0.5))
        for seed, belief in enumerate((0.5, 0.7, 0.9))
    ]
    error, held = expected_accuracy.left_out(runs)
    assert held[6:].tolist() == [False] * 3
    assert min(error[6:]) > 0.2
