"""A run in its folder, and the scores beside it: nothing half-written, no column shifted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from torch import Tensor

import small_run
from command import snapshot
from selftrain.data.rows import Example, Labelled, Lesson
from selftrain.errors import RunError, TrainingError
from selftrain.experiments.closing import Cell, by_system, cells, closing_rows
from selftrain.model.backbone import Backbone
from selftrain.runs import train as experiment
from selftrain.runs.train import train
from selftrain.runs.write import Run
from selftrain.training.job import Job
from selftrain.training.loop import Round

NAN = TrainingError("the loss is nan", "a lower rate")
TEST = [
    Labelled(small_run.example(label, n), label) for n in range(30, 36) for label in ("good", "bad")
]


@pytest.fixture(scope="module")
def backbone(tiny_backbone: Callable[[str], Backbone]) -> Backbone:
    return tiny_backbone("bert")


def job(backbone: Backbone, **changes: Any) -> Job:
    return replace(small_run.job(backbone), **changes)


def go(folder: Path, backbone: Backbone, *, part: bool = False, **changes: Any) -> Iterator[Round]:
    return train(folder, job(backbone, **changes), small_run.MACHINE, part=part)


# ── the run folder ───────────────────────────────────────────────────────────────────────────


def test_rounds_on_disk_come_before_new_ones(
    tmp_path: Path, backbone: Backbone, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "selftrain.runs.train")
    first = go(tmp_path / "run", backbone)
    assert next(first).number == 0
    first.close()
    assert caplog.messages == []

    rounds = list(go(tmp_path / "run", backbone))
    assert [round_.number for round_ in rounds] == [0, 1, 2]
    assert caplog.messages == [f"{tmp_path}/run resumes after round 0"]

    again = list(go(tmp_path / "run", backbone))
    assert caplog.messages[1:] == [f"{tmp_path}/run is finished: these are its rounds"]
    for old, new in zip(rounds, again, strict=True):
        assert old.number == new.number
        assert (old.accepted, old.why, old.last) == (new.accepted, new.why, new.last)
        assert torch.equal(*(each.model.probabilities(examples()) for each in (old, new)))


def test_a_run_that_resumes_on_another_machine_says_so(
    tmp_path: Path, backbone: Backbone, caplog: pytest.LogCaptureFixture
) -> None:
    first = go(tmp_path / "run", backbone)
    next(first)
    first.close()
    smaller = replace(small_run.MACHINE, cache_mb=1)
    list(train(tmp_path / "run", job(backbone), smaller))
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.getMessage() for record in warnings] == [
        "the run was started with cache_mb 4096, goes on with 1: "
        "its result may differ in the last bits"
    ]


def test_a_run_that_is_asked_for_more_rounds_ends_as_if_it_had_been_asked_at_once(
    tmp_path: Path, backbone: Backbone
) -> None:
    one, two = (replace(small_run.METHOD, rounds=rounds) for rounds in (1, 2))
    whole = list(go(tmp_path / "whole", backbone, method=two))
    begun = list(go(tmp_path / "run", backbone, method=one))
    rounds = list(go(tmp_path / "run", backbone, method=two))
    assert [len(each) for each in (whole, begun, rounds)] == [3, 2, 3]
    for mine, other in zip(rounds, whole, strict=True):
        assert torch.equal(*(each.model.probabilities(examples()) for each in (mine, other)))


def test_a_run_that_has_converged_stays_as_it_is_whatever_is_asked(
    tmp_path: Path, backbone: Backbone
) -> None:
    settled = replace(small_run.METHOD, converged=0.99)
    for rounds in (2, 5):
        found = list(go(tmp_path / "run", backbone, method=replace(settled, rounds=rounds)))
        assert [(round_.number, round_.last) for round_ in found] == [(0, False), (1, True)]


def test_a_damaged_round_is_nothing_to_who_wants_those_before_it(
    tmp_path: Path, backbone: Backbone
) -> None:
    list(go(tmp_path / "run", backbone))
    (tmp_path / "run/rounds/2/model.safetensors").write_bytes(b"")
    one = replace(small_run.METHOD, rounds=1)
    assert len(list(go(tmp_path / "run", backbone, method=one, part=True))) == 2
    with pytest.raises(RunError, match=r"rounds/2/model\.safetensors"):
        list(go(tmp_path / "run", backbone))


def examples() -> list[Example]:
    return [row.example for row in TEST]


def failing(after: int, error: BaseException) -> Callable[..., Iterator[Round]]:
    """A loop that breaks off after so many rounds."""
    real = experiment.self_train

    def loop(*arguments: Any, **more: Any) -> Iterator[Round]:
        rounds = real(*arguments, **more)
        for _ in range(after):
            yield next(rounds)
        raise error

    return loop


@pytest.mark.parametrize("error", [NAN, KeyboardInterrupt()])
def test_an_error_before_the_first_round_leaves_everything_as_it_was(
    error: BaseException, tmp_path: Path, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "self_train", failing(0, error))
    (tmp_path / "empty").mkdir()
    before = snapshot(tmp_path)
    for place in ("empty", "new", "new/deep/run"):
        with pytest.raises(type(error)):
            list(go(tmp_path / place, backbone))
        assert snapshot(tmp_path) == before


def test_an_error_after_a_round_keeps_it(
    tmp_path: Path, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "self_train", failing(1, NAN))
    with pytest.raises(TrainingError):
        list(go(tmp_path / "run", backbone))
    assert (tmp_path / "run" / "rounds" / "0" / "model.safetensors").exists()


def test_a_folder_into_which_something_came_meanwhile_is_not_removed(
    tmp_path: Path, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loop(*_: Any, **__: Any) -> Iterator[Round]:
        (tmp_path / "new" / "notes.txt").write_text("mine")
        raise NAN

    monkeypatch.setattr(experiment, "self_train", loop)
    with pytest.raises(TrainingError):
        list(go(tmp_path / "new" / "run", backbone))
    assert snapshot(tmp_path) == {"new": None, "new/notes.txt": b"mine"}


def test_a_folder_that_is_refused_is_left_as_it_was(tmp_path: Path, backbone: Backbone) -> None:
    (tmp_path / "run" / "rounds" / "0").mkdir(parents=True)
    (tmp_path / "run" / "rounds" / "0" / "x").write_text("mine")
    (tmp_path / "run" / ".lock").touch()
    before = snapshot(tmp_path)
    with pytest.raises(RunError, match="neither empty nor a run folder: it holds 'rounds'"):
        list(go(tmp_path / "run", backbone))
    assert snapshot(tmp_path) == before


def test_a_run_that_another_process_finished_meanwhile_is_not_removed(
    tmp_path: Path, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, before = experiment.Run.start, {}

    def late(*arguments: Any, **more: Any) -> Any:
        with real(tmp_path / "run", small_run.manifest(backbone, seed=8)) as other:
            other.save(
                next(experiment.self_train(job(backbone, seed=8), machine=small_run.MACHINE))
            )
        before.update(snapshot(tmp_path))
        return real(*arguments, **more)

    monkeypatch.setattr(experiment.Run, "start", late)
    with pytest.raises(RunError, match="seed was 8, is now 7"):
        list(go(tmp_path / "run", backbone))
    assert snapshot(tmp_path) == before


def test_a_run_gone_on_with_is_not_removed_by_an_error(
    tmp_path: Path, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even one without a round: another call began it."""
    with Run.start(tmp_path / "run", small_run.manifest(backbone)):
        pass
    before = snapshot(tmp_path)
    monkeypatch.setattr(experiment, "self_train", failing(0, NAN))
    with pytest.raises(TrainingError):
        list(go(tmp_path / "run", backbone))
    assert snapshot(tmp_path) == before


def test_a_run_that_another_process_began_meanwhile_is_not_removed(
    tmp_path: Path, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began between our look at the folder and our attempt to lock it."""
    real, other = experiment.Run.start, FileLock(tmp_path / "run" / ".lock")

    def late(*arguments: Any, **more: Any) -> Any:
        (tmp_path / "run").mkdir()
        other.acquire()
        return real(*arguments, **more)

    monkeypatch.setattr(experiment.Run, "start", late)
    with pytest.raises(RunError, match="another process"):
        list(go(tmp_path / "run", backbone))
    assert (tmp_path / "run").exists()
    other.release()


# ── scores ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Fixed:
    """Answers the same class with the same probability, whatever is asked."""

    right: int
    labels: tuple[str, ...] = ("good", "bad")

    def probabilities(self, examples: Sequence[Example]) -> Tensor:
        p = torch.tensor([[0.9, 0.1]] * len(examples))
        p[self.right :: 2] = torch.tensor([0.1, 0.9])
        return p


def round_(number: int, right: int, **verdict: Any) -> Round:
    return Round(number, Fixed(right), Lesson(gold=()), **verdict)  # type: ignore[arg-type]


def scored(rounds: Sequence[Round], backbone: Backbone, seed: int = 7) -> list[Cell]:
    return list(cells(rounds, job(backbone, seed=seed), TEST, small_run.MACHINE))


GOOD, BAD = 1, 0  # which of the two answers is right: all, or none


def test_the_references_come_first_and_the_kept_round_last(backbone: Backbone) -> None:
    found = scored([round_(0, BAD), round_(1, GOOD)], backbone)
    assert [cell.system for cell in found] == [
        "majority",
        "tf-idf + logistic regression",
        "frozen encoder + logistic regression",
        "teacher",
        "round 1",
        "final",
    ]
    assert [cell.accuracy for cell in found if cell.system in ("teacher", "round 1")] == [0, 1]
    assert {cell.seed for cell in found} == {7}
    assert found[0].accuracy == 0.5


def test_the_majority_class_is_that_of_the_scored_rows(backbone: Backbone) -> None:
    for row in TEST[:2]:  # the job has as many labels of each class: no majority
        found = cells([round_(0, GOOD)], job(backbone), [*TEST, row], small_run.MACHINE)
        assert next(found).accuracy == 7 / 13


def test_the_kept_round_is_the_last_accepted_one(backbone: Backbone) -> None:
    refused = round_(2, BAD, accepted=False, why="collapse")
    by_name = {
        c.system: c.accuracy for c in scored([round_(0, BAD), round_(1, GOOD), refused], backbone)
    }
    assert (by_name["round 1"], by_name["round 2"], by_name["final"]) == (1, 0, 1)


def test_a_round_whose_training_broke_off_has_no_cell(backbone: Backbone) -> None:
    broken = round_(1, GOOD, accepted=False, last=True)
    by_name = {cell.system: cell.accuracy for cell in scored([round_(0, GOOD), broken], backbone)}
    assert "round 1" not in by_name
    assert by_name["final"] == 1


def test_runs_of_different_length_share_a_table_without_shifting_it() -> None:
    short = [Cell("majority", 1, 0.5), Cell("teacher", 1, 0.6), Cell("round 1", 1, 0.7)]
    long = [replace(cell, seed=2) for cell in short] + [Cell("round 2", 2, 0.9)]
    found = by_system([*short, Cell("final", 1, 0.7), *long, Cell("final", 2, 0.9)])
    assert closing_rows(found, [1, 2])[1:] == [
        ["majority", "50.0", "50.0", "50.0 ± 0.0"],
        ["teacher", "60.0", "60.0", "60.0 ± 0.0"],
        ["round 1", "70.0", "70.0", "70.0 ± 0.0"],
        ["round 2", "–", "90.0", "90.0 (1 of 2)"],
        ["final", "70.0", "90.0", "80.0 ± 14.1"],
    ]
