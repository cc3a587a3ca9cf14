"""The ladder of a run on disk: written rung by rung after the models, read again, not trusted."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import small_run
from command import snapshot
from damage import changed_inside
from selftrain.data.rows import Example, Labelled, Split
from selftrain.errors import RunError
from selftrain.method.recipes import recipe
from selftrain.model.backbone import Backbone
from selftrain.runs import ladders
from selftrain.runs.estimates import estimated, read_estimate
from selftrain.runs.ladders import LADDER, laddered, read_ladder
from selftrain.runs.read import load
from selftrain.runs.train import train
from selftrain.training.job import Job
from selftrain.training.ladder import Models, Rung

FROZEN = Path("rungs", "frozen")


@pytest.fixture(scope="module")
def backbone(tiny_backbone: Callable[[str], Backbone]) -> Backbone:
    return tiny_backbone("bert")


@pytest.fixture
def job(backbone: Backbone) -> Job:
    return small_run.job(backbone, replace(small_run.METHOD, rounds=1))


def trained(folder: Path, job: Job) -> Models:
    rounds = list(train(folder, job, small_run.MACHINE))
    return Models(rounds, estimated(folder, job, rounds, small_run.MACHINE))


def ladder_of(folder: Path, job: Job, test: list[Labelled] | None = None) -> list[Rung]:
    return laddered(folder, job, trained(folder, job), test or [], small_run.MACHINE)


def no_training(*_: object) -> None:
    raise AssertionError("it was computed again")


def test_a_ladder_is_stored_beside_the_estimate_and_read_again(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    first = ladder_of(run, job)
    assert stat.S_IMODE((run / LADDER).stat().st_mode) == 0o600
    assert {path.name for path in run.iterdir()} == {
        *(".lock", "manifest.json", "rounds", "rungs"),
        *("estimate.json", "opinions.parquet", "ladder.json"),
    }
    before = snapshot(run)
    monkeypatch.setattr(ladders, "climb", no_training)
    monkeypatch.setattr(ladders, "train", no_training)
    assert ladder_of(run, job) == first
    assert snapshot(run) == before


def test_frozen_is_a_run_of_its_own_with_its_own_temperature(
    job: Job, backbone: Backbone, tmp_path: Path
) -> None:
    """The same rounds as a run of that method, bit for bit."""
    run = tmp_path / "run"
    rungs = ladder_of(run, job)
    alone = trained(tmp_path / "alone", replace(job, method=recipe("frozen")))
    models = [
        {p: p.read_bytes() for p in sorted(each.rglob("*.safetensors"))}
        for each in (run / FROZEN, tmp_path / "alone")
    ]
    assert list(models[0].values()) == list(models[1].values())
    assert alone.estimate is not None
    assert rungs[2].accuracy == alone.estimate.hits
    stored = read_estimate(run / FROZEN)
    assert stored is not None
    model = load(run / FROZEN, 0, backbone=backbone)
    assert model.temperature == stored.estimate.of(0).temperature


def test_killed_between_the_rounds_and_the_ladder_the_same_command_writes_it(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the ladder, in the run of the frozen encoder, and between two rungs."""
    run = tmp_path / "run"
    trained(run, job)
    models = snapshot(run / "rounds")

    class Killed(BaseException):
        pass

    def killed_after(rounds: int) -> Callable[..., object]:
        def some(*given: object) -> object:
            for number, round_ in enumerate(train(*given)):  # type: ignore[arg-type]
                if number == rounds:
                    raise Killed
                yield round_

        return some

    with monkeypatch.context() as patched:
        patched.setattr(ladders, "train", killed_after(2))
        with pytest.raises(Killed):
            ladder_of(run, job)
    half = snapshot(run / FROZEN / "rounds" / "1")
    whole_climb = ladders.climb

    def two_rungs(*given: object) -> object:
        for number, rung in enumerate(whole_climb(*given)):  # type: ignore[arg-type]
            if number == 2:
                raise Killed
            yield rung

    with monkeypatch.context() as patched:
        patched.setattr(ladders, "climb", two_rungs)
        with pytest.raises(Killed):
            ladder_of(run, job)
    stored = read_ladder(run)
    assert stored is not None
    assert stored.names == ["majority", "tf-idf"]
    rungs = ladder_of(run, job)
    assert tuple(rungs[:2]) == stored.rungs, "with their seconds: not computed again"
    assert rungs[-1].name in ("round 1", "teacher")
    assert snapshot(run / FROZEN / "rounds" / "1") == half
    assert snapshot(run / "rounds") == models


def test_more_rounds_give_another_ladder_on_the_same_frozen_run(job: Job, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ladder_of(run, replace(job, method=replace(job.method, rounds=0)))
    frozen = snapshot(run / FROZEN)
    rungs = ladder_of(run, job)
    assert len(read_ladder(run).models) == 2  # type: ignore[union-attr]
    assert rungs[4].name == "teacher"
    assert snapshot(run / FROZEN) == frozen


def test_other_test_rows_are_measured_again(job: Job, tmp_path: Path) -> None:
    run = tmp_path / "run"
    good = [Labelled(Example(f"{n}", f"great film {n}"), "good") for n in range(4)]
    bad = [replace(row, label="bad") for row in good]
    measured = [[rung.measured for rung in ladder_of(run, job, test)] for test in (good, bad)]
    assert measured[0][0] != measured[1][0]
    assert [one + other for one, other in zip(*measured, strict=True)] == [1.0] * len(measured[0])
    assert [rung.measured for rung in ladder_of(run, job)] == [None] * len(measured[0])


def test_a_run_without_a_pool_has_rungs_without_numbers_and_trains_nothing_more(
    job: Job, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    alone = replace(job.method, rounds=0)
    job = replace(job, method=alone, split=Split(job.split.labelled, []))
    rungs = ladder_of(run, job)
    assert [(rung.name, rung.accuracy) for rung in rungs] == [
        ("majority", None),
        ("tf-idf", None),
        ("teacher", None),
    ]
    assert not (run / "rungs").exists()


@pytest.mark.parametrize("labels", [2, 3])
def test_two_or_three_labels_a_class_give_rungs_without_numbers(
    job: Job, tmp_path: Path, labels: int
) -> None:
    job = replace(job, split=Split(job.split.labelled[: 2 * labels], job.split.unlabelled))
    own = trained(tmp_path / "run", job)
    assert own.estimate is None
    rungs = laddered(tmp_path / "run", job, own, [], small_run.MACHINE)
    assert [rung.name for rung in rungs][:4] == [
        *("majority", "tf-idf", "frozen", "frozen self-trained")
    ]
    assert {rung.accuracy for rung in rungs} == {None}


def test_the_lines_of_the_frozen_run_are_not_logged(
    job: Job, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = trained(tmp_path / "run", job)
    caplog.clear()
    caplog.set_level("INFO", "selftrain")
    laddered(tmp_path / "run", job, own, [], small_run.MACHINE)
    (tmp_path / "run" / LADDER).unlink()
    laddered(tmp_path / "run", job, own, [], small_run.MACHINE)
    assert caplog.messages == []


# ── from a stranger ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("rungs", 1, "accuracy"), 37.0),
        (("rungs", 1, "accuracy"), float("nan")),
        (("rungs", 1, "seconds"), -1.0),
        (("rungs", 1, "seconds"), "fast"),
        (("rungs", 1, "how"), "guessed"),
        (("rungs",), None),
        (("models",), {"0": 7}),
        (("format",), 99),
    ],
)
def test_a_ladder_from_a_stranger_is_not_trusted(
    job: Job, tmp_path: Path, place: tuple[str | int, ...], value: object
) -> None:
    run = tmp_path / "run"
    ladder_of(run, job)
    changed_inside(run / LADDER, place, value)
    with pytest.raises(RunError, match=r"ladder\.json"):
        ladder_of(run, job)


def test_a_ladder_of_other_rungs_is_made_again(job: Job, tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = ladder_of(run, job)
    path = run / LADDER
    path.write_text(path.read_text().replace('"teacher"', '"prophet"'))
    assert [rung.name for rung in ladder_of(run, job)] == [rung.name for rung in first]


@pytest.mark.parametrize("name", [LADDER, "rungs", "rungs/frozen"])
def test_no_link_is_followed(job: Job, tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    ladder_of(run, job)
    (run / name).rename(tmp_path / "elsewhere")
    (run / name).symlink_to(tmp_path / "elsewhere")
    before = snapshot(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="is not a plain"):
        ladder_of(run, job)
    assert snapshot(tmp_path / "elsewhere") == before


def test_a_damaged_frozen_run_says_that_it_can_be_removed(job: Job, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ladder_of(run, job)
    (run / FROZEN / "rounds/1/round.json").write_text("{}")
    with pytest.raises(RunError) as failed:
        ladder_of(run, job)
    assert (
        failed.value.hint == f"remove {run / FROZEN}: the same command trains it again, in seconds"
    )
