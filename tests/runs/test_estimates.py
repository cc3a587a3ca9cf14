"""The estimate of a run: computed once, bound to its models, applied to their probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

import small_run
from damage import changed_inside
from selftrain.data.rows import Labelled, Split
from selftrain.errors import LockedError, RunError
from selftrain.model.backbone import Backbone
from selftrain.runs import estimates
from selftrain.runs.estimates import ESTIMATE, estimated, opinions_of, read_estimate
from selftrain.runs.opinions import OPINIONS, read_opinions
from selftrain.runs.read import load
from selftrain.runs.train import train
from selftrain.runs.write import locked
from selftrain.training.estimate import Estimate, Judged, Opinion, judge
from selftrain.training.job import Job
from selftrain.training.loop import Round, last_accepted


@pytest.fixture(scope="module")
def backbone(tiny_backbone: Callable[[str], Backbone]) -> Backbone:
    return tiny_backbone("bert")


@pytest.fixture(params=small_run.METHODS)
def job(backbone: Backbone, request: pytest.FixtureRequest) -> Job:
    return small_run.job(backbone, small_run.METHODS[request.param])


def trained(folder: Path, job: Job) -> list[Round]:
    return list(train(folder, job, small_run.MACHINE))


def estimate_of(folder: Path, job: Job, rounds: list[Round]) -> Estimate:
    found = estimated(folder, job, rounds, small_run.MACHINE)
    assert found is not None
    return found


def close(one: object, other: object) -> bool:
    """Whether two plain values are alike, numbers up to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=0.02, abs_tol=1e-3)
    return one == other


def test_every_round_has_an_estimate_and_reading_the_run_again_gives_the_same(
    job: Job, tmp_path: Path
) -> None:
    rounds = trained(tmp_path / "run", job)
    first = estimate_of(tmp_path / "run", job, rounds)
    assert [each.number for each in first.rounds] == [round_.number for round_ in rounds]
    for each in first.rounds:
        assert 0 <= each.expected.low <= each.expected.accuracy <= each.expected.high <= 1
    (tmp_path / "run" / ESTIMATE).unlink()
    again = trained(tmp_path / "run", job)  # loaded: no round has read the pool
    assert all(round_.readings is None for round_ in again)
    second = estimate_of(tmp_path / "run", job, again)
    assert close(asdict(first), asdict(second))


def test_an_estimate_of_the_same_models_is_read_and_of_others_made_again(
    backbone: Backbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = small_run.job(backbone)
    run = tmp_path / "run"
    rounds = trained(run, job)
    first = estimate_of(run, job, rounds)
    asked = []

    def watched(*given: object) -> Judged | None:
        asked.append(given)
        return judge(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(estimates, "judge", watched)
    assert estimate_of(run, job, rounds) == first
    assert not asked
    path = run / ESTIMATE
    path.write_text(path.read_text().replace(read_estimate(run).models[0], "0" * 64))
    assert close(asdict(estimate_of(run, job, rounds)), asdict(first))
    assert len(asked) == 1
    monkeypatch.setattr(estimates, "MARGIN", 0.5)  # as a later version may have it
    estimate_of(run, job, rounds)
    assert len(asked) == 2


def test_an_estimate_that_does_not_hold_any_more_is_removed(
    backbone: Backbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = small_run.job(backbone, replace(small_run.METHOD, rounds=0))
    run = tmp_path / "run"
    rounds = trained(run, job)
    estimate_of(run, job, rounds)
    monkeypatch.setattr(estimates, "MARGIN", 0.5)
    monkeypatch.setattr(estimates, "judge", lambda *_: None)
    assert estimated(run, job, rounds, small_run.MACHINE) is None
    assert load(run, backbone=str(backbone.name)).temperature == 1


def test_a_loaded_model_is_as_sure_as_its_estimate_says(backbone: Backbone, tmp_path: Path) -> None:
    """Labels and their order stay; the mean confidence on the pool is the expected accuracy."""
    job = small_run.job(backbone)
    run = tmp_path / "run"
    rounds = trained(run, job)
    bare = load(run, backbone=str(backbone.name))
    pool = list(job.split.unlabelled)
    before = bare.probabilities(pool)
    assert bare.temperature == 1
    found = estimate_of(run, job, rounds).of(last_accepted(rounds).number)
    model = load(run, backbone=str(backbone.name))
    assert model.temperature == found.temperature != 1
    after = model.probabilities(pool)
    assert torch.equal(before.argmax(1), after.argmax(1))
    assert float(after.max(1).values.mean()) == pytest.approx(found.expected.accuracy, abs=0.05)


def test_one_label_a_class_gives_no_estimate_and_no_file(
    backbone: Backbone, tmp_path: Path
) -> None:
    job = small_run.job(backbone)
    job = replace(job, split=Split(job.split.labelled[:2], job.split.unlabelled))
    rounds = trained(tmp_path / "run", job)
    assert estimated(tmp_path / "run", job, rounds, small_run.MACHINE) is None
    assert not (tmp_path / "run" / ESTIMATE).exists()


def test_labels_that_say_nothing_give_no_estimate(backbone: Backbone, tmp_path: Path) -> None:
    """Half of each class has the words of the other: models without a row answer it wrong."""
    job = small_run.job(backbone, replace(small_run.METHOD, rounds=0))
    labels = ("good", "good", "bad", "bad", "good", "good", "bad", "bad")
    mixed = tuple(map(replace_label, job.split.labelled, labels))
    job = replace(job, split=Split(mixed, job.split.unlabelled))
    rounds = trained(tmp_path / "run", job)
    assert estimated(tmp_path / "run", job, rounds, small_run.MACHINE) is None


def replace_label(row: Labelled, label: str) -> Labelled:
    return replace(row, label=label)


def test_a_run_that_another_process_writes_is_not_written(
    backbone: Backbone, tmp_path: Path
) -> None:
    job = small_run.job(backbone)
    rounds = trained(tmp_path / "run", job)
    with locked(tmp_path / "run"), pytest.raises(LockedError, match="by another process"):
        estimated(tmp_path / "run", job, rounds, small_run.MACHINE)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("estimate", "rounds", 0, "temperature"), 0.0),
        (("estimate", "rounds", 0, "temperature"), -1.0),
        (("estimate", "rounds", 0, "temperature"), "hot"),
        (("estimate", "rounds", 0, "number"), 5),
        (("models",), {"0": 7}),
        (("estimate",), None),
        (("format",), 99),
        (("estimate", "rounds", 0, "temperature"), 1e-320),
        (("estimate", "rounds", 0, "expected", "accuracy"), float("nan")),
        (("estimate", "rounds", 0, "expected", "high"), 37.0),
    ],
)
def test_an_estimate_from_a_stranger_is_not_trusted(
    backbone: Backbone, tmp_path: Path, place: tuple[str | int, ...], value: object
) -> None:
    job = small_run.job(backbone, replace(small_run.METHOD, rounds=0))
    run = tmp_path / "run"
    estimate_of(run, job, trained(run, job))
    changed_inside(run / ESTIMATE, place, value)
    with pytest.raises(RunError, match=r"estimate\.json"):
        load(run, backbone=str(backbone.name))


def test_an_estimate_behind_a_link_is_not_read(backbone: Backbone, tmp_path: Path) -> None:
    job = small_run.job(backbone, replace(small_run.METHOD, rounds=0))
    run = tmp_path / "run"
    estimate_of(run, job, trained(run, job))
    (run / ESTIMATE).rename(tmp_path / "elsewhere.json")
    (run / ESTIMATE).symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(RunError, match=r"estimate\.json"):
        load(run, backbone=str(backbone.name))


# ── opinions ─────────────────────────────────────────────────────────────────────────────────


def test_opinions_of_labelled_and_pool_rows_are_on_disk_beside_the_estimate(
    job: Job, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    rounds = trained(run, job)
    estimate = estimate_of(run, job, rounds)
    labelled, pool = opinions_of(run, job.task.labels)
    assert [each.uid for each in labelled] == [row.example.uid for row in job.split.labelled]
    doubted = [each.uid for each in labelled if answer(each, job) != each.label]
    assert sorted(doubted) == sorted(each.uid for each in estimate.doubts)
    assert {each.uid for each in pool} <= {each.uid for each in job.split.unlabelled}
    assert all(len(each.model) == len(each.folds) == len(job.task.labels) for each in pool)
    final = last_accepted(rounds)
    confidence = sum(max(each.model) for each in pool) / len(pool)
    assert confidence == pytest.approx(estimate.of(final.number).expected.accuracy, abs=0.02)


def answer(opinion: Opinion, job: Job) -> str:
    return job.task.labels[opinion.folds.index(max(opinion.folds))]


def test_opinions_that_were_changed_are_refused(job: Job, tmp_path: Path) -> None:
    run = tmp_path / "run"
    estimate_of(run, job, trained(run, job))
    path = run / OPINIONS
    with pytest.raises(RunError, match="no run writes"):
        read_opinions(path, ["another", "class"])
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(RunError, match="sha256"):
        opinions_of(run, job.task.labels)
    path.write_bytes(b"PAR1")
    with pytest.raises(RunError, match="not Parquet"):
        read_opinions(path, job.task.labels)
