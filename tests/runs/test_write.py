"""A run folder being written: what is saved comes back, who may go on, and errors on the way."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

import small_run
from damage import moved_behind_a_link, refusal
from selftrain.data.rows import Lesson
from selftrain.errors import RunError
from selftrain.model.backbone import Backbone, load
from selftrain.model.card import Source
from selftrain.runs import lessons
from selftrain.runs import read as runs
from selftrain.runs import write as running
from selftrain.runs.manifest import PACKAGES, Manifest
from selftrain.runs.write import Run
from selftrain.training.loop import Round, self_train
from small_disk import FULL, small_disk

forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload(["selftrain.runs.train"])


# ── what is saved comes back ──


def test_saved_rounds_come_back_with_their_models_lessons_and_numbers(
    folder: Path, rounds: list[Round], manifest: Manifest, backbone: Backbone
) -> None:
    with Run.start(folder, manifest) as run:
        done = run.done(backbone)
    for was, now in zip(rounds, done, strict=True):
        assert torch.equal(small_run.probabilities(was.model), small_run.probabilities(now.model))
        assert now.lesson == Lesson(gold=(), audit=was.lesson.audit)
        assert now.numbers == was.numbers
        assert (now.number, now.accepted, now.why, now.last) == (
            was.number,
            was.accepted,
            was.why,
            was.last,
        )


def test_a_round_whose_training_failed_has_no_model_of_its_own(
    tmp_path: Path, rounds: list[Round], manifest: Manifest, backbone: Backbone
) -> None:
    teacher = rounds[0].model
    failed = Round(1, teacher, rounds[1].lesson, {}, False, "the loss is nan", last=True)
    with Run.start(tmp_path / "run", manifest) as run:
        run.save(rounds[0])
        run.save(failed)
        done = run.done(backbone)
    assert sorted(p.name for p in (tmp_path / "run/rounds/1").iterdir()) == [
        "lesson.parquet",
        "round.json",
    ]
    assert torch.equal(small_run.probabilities(done[1].model), small_run.probabilities(teacher))
    kept = runs.load(tmp_path / "run", backbone=backbone.name)
    assert torch.equal(small_run.probabilities(kept), small_run.probabilities(teacher))
    with pytest.raises(RunError, match=r"round 1 of .* has no model: the loss is nan"):
        runs.load(tmp_path / "run", 1)


def test_a_finished_run_started_again_has_nothing_left_to_do(
    folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != ".lock"}
    small_run.go(folder, Path(backbone.name))
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_everything_in_a_run_folder_is_for_its_owner_only(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_a_model_keeps_only_what_was_trained(folder: Path) -> None:
    teacher, student = (folder / f"rounds/{n}/model.safetensors" for n in (0, 1))
    assert student.stat().st_size < teacher.stat().st_size / 5


# ── who may go on ──


def test_a_run_may_begin_in_an_empty_folder(tmp_path: Path, manifest: Manifest) -> None:
    with Run.start(tmp_path, manifest) as run:
        assert runs.read_manifest(tmp_path) == run.manifest == manifest


def test_a_foreign_folder_is_left_as_it_is(tmp_path: Path, manifest: Manifest) -> None:
    (tmp_path / "holiday").write_bytes(b"beach")
    with pytest.raises(RunError, match="it holds 'holiday'"):
        Run.start(tmp_path, manifest)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday"]


def test_a_second_writer_is_refused_until_the_first_has_ended(
    tmp_path: Path, manifest: Manifest
) -> None:
    with Run.start(tmp_path / "run", manifest):
        process = forks.Process(target=refused_as_second, args=(tmp_path / "run", manifest))
        process.start()
        process.join()
        assert process.exitcode == 0
    with Run.start(tmp_path / "run", manifest):
        pass


def refused_as_second(folder: Path, manifest: Manifest) -> None:
    with pytest.raises(RunError, match="being written by another process") as caught:
        Run.start(folder, manifest)
    assert caught.value.hint


def test_a_lock_that_is_a_link_is_not_followed(
    folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    moved_behind_a_link(folder / ".lock")
    assert ".lock is a link" in refusal(folder, manifest, backbone).message


def changed(value: Any, place: str, new: Any) -> Any:
    """A manifest with another value at a place such as ``method.student.0.learning_rate``."""
    plain = json.loads(json.dumps(asdict(value)))
    *path, name = place.split(".")
    inner = plain
    for step in path:
        inner = inner[int(step) if step.isdigit() else step]
    inner[name] = new
    return Manifest(**{**plain, "backbone": Source(**plain["backbone"])})


@pytest.mark.parametrize(
    ("place", "new", "said"),
    [
        ("seed", 8, "seed was 7, is now 8"),
        (
            "method.student.0.learning_rate",
            0.5,
            "method.student.0.learning_rate was 0.003, is now 0.5",
        ),
        ("method.student.0.epochs", 3, "method.student.0.epochs was None, is now 3"),
        ("method.rounds", 1, "method.rounds was 2, is now 1"),
        ("task.labels", ["good", "bad", "ugly"], "task.labels was ['good', 'bad'], is now"),
        ("data.labelled", "x", "data.labelled was '"),
        ("data.pool", "x", "data.pool was '"),
        ("backbone.sha256", "x", "backbone.sha256 was '"),
    ],
)
def test_another_configuration_is_refused_by_its_first_difference(
    folder: Path, manifest: Manifest, place: str, new: object, said: str
) -> None:
    with pytest.raises(RunError, match="another configuration") as caught:
        Run.start(folder, changed(manifest, place, new))
    assert said in caught.value.message
    assert caught.value.hint
    with Run.start(folder, manifest):  # and the lock was given back
        pass


def test_another_number_of_rounds_may_be_asked_of_a_run_but_nothing_else_with_it(
    folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    more = changed(manifest, "method.rounds", 4)
    with pytest.raises(RunError, match="another configuration: seed was 7, is now 8"):
        Run.start(folder, changed(more, "seed", 8))
    assert runs.read_manifest(folder) == manifest
    with Run.start(folder, changed(more, "threads", 99)) as run:
        [warning] = run.warnings  # and what it was started with stays as it was
    assert "goes on with 99" in warning
    assert runs.read_manifest(folder) == more
    with Run.start(folder, changed(manifest, "method.rounds", 1), part=True) as run:
        assert len(run.done(backbone)) == 2  # enough for who wants the first rounds
    assert runs.read_manifest(folder) == more
    with Run.start(folder, manifest):  # no third round was begun: it was a slip, and is taken back
        pass
    assert runs.read_manifest(folder) == manifest


@pytest.mark.parametrize("strange", ["many", None, True, 10**9])
def test_a_strange_number_of_rounds_is_not_believed(
    folder: Path, manifest: Manifest, backbone: Backbone, strange: object
) -> None:
    plain = asdict(changed(manifest, "method.rounds", strange))
    (folder / "manifest.json").write_text(json.dumps(plain))
    with Run.start(folder, manifest) as run:
        assert len(run.done(backbone)) == 3
    assert runs.read_manifest(folder) == manifest


@pytest.mark.parametrize(
    ("place", "new"),
    [
        ("threads", 99),
        ("device", "abacus"),
        ("cache_mb", 0),
        *((f"versions.{name}", "1.0") for name in ("python", *PACKAGES)),
    ],
)
def test_another_machine_is_a_warning_and_not_refused(
    folder: Path, manifest: Manifest, place: str, new: object
) -> None:
    with Run.start(folder, changed(manifest, place, new)) as run:
        [warning] = run.warnings
    assert f"goes on with {new}: its result may differ in the last bits" in warning


@pytest.mark.parametrize("place", ["processes", "accumulate"])
def test_other_dropout_noise_is_a_warning(folder: Path, manifest: Manifest, place: str) -> None:
    with Run.start(folder, changed(manifest, place, 4)) as run:
        [warning] = run.warnings
    expected = f"the run was started with {place} 1, goes on with 4: its dropout draws other noise"
    assert warning == expected


@pytest.mark.parametrize("place", ["backbone.name", "created"])
def test_a_backbone_found_elsewhere_is_the_same_by_its_weights(
    folder: Path, manifest: Manifest, place: str
) -> None:
    with Run.start(folder, changed(manifest, place, "elsewhere")) as run:
        assert run.warnings == ()


# ── errors while writing ──


@pytest.fixture
def begun(tmp_path: Path, rounds: list[Round], manifest: Manifest) -> Iterator[Run]:
    """A run with its teacher saved."""
    with Run.start(tmp_path / "run", manifest) as run:
        run.save(rounds[0])
        yield run


def check_only_the_teacher_is_there(run: Run, backbone: Backbone) -> None:
    assert [path.name for path in (run.folder / "rounds").iterdir()] == ["0"]
    assert [round_.number for round_ in run.done(backbone)] == [0]


@pytest.mark.parametrize(
    "step",
    [
        "selftrain.model.classifier.Classifier.save",
        "pyarrow.parquet.ParquetWriter.write_table",
        "os.fsync",
        "pathlib.Path.replace",
    ],
)
def test_a_full_disk_at_any_step_leaves_the_earlier_rounds_whole(
    step: str,
    begun: Run,
    rounds: list[Round],
    backbone: Backbone,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(step, full)
        with pytest.raises(RunError, match=r"cannot write .*: No space left on device") as caught:
            begun.save(rounds[1])
    assert "df -h" in caught.value.hint
    check_only_the_teacher_is_there(begun, backbone)
    begun.save(rounds[1])
    assert len(begun.done(backbone)) == 2


def test_a_lesson_that_could_not_be_read_back_is_not_written(
    begun: Run, rounds: list[Round], backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(lessons, "LARGEST_TABLE", 23)
        with pytest.raises(RunError, match="bytes unpacked, more than is ever read") as caught:
            begun.save(rounds[1])
    assert caught.value.hint
    check_only_the_teacher_is_there(begun, backbone)


def test_what_a_killed_save_left_gives_way_to_the_next(
    begun: Run, rounds: list[Round], backbone: Backbone
) -> None:
    (begun.folder / "rounds" / "1.tmp").mkdir()
    (begun.folder / "rounds" / "1.tmp" / "half").touch()
    begun.save(rounds[1])
    assert [path.name for path in sorted((begun.folder / "rounds").iterdir())] == ["0", "1"]
    assert len(begun.done(backbone)) == 2


def test_an_interrupted_save_leaves_nothing_behind(
    begun: Run, rounds: list[Round], backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "write_lesson", interrupted)
    with pytest.raises(KeyboardInterrupt):
        begun.save(rounds[1])
    check_only_the_teacher_is_there(begun, backbone)


def test_a_really_full_disk_leaves_the_earlier_rounds_whole(
    tmp_path: Path, backbone: Backbone
) -> None:
    process = forks.Process(target=save_on_a_small_disk, args=(tmp_path, Path(backbone.name)))
    process.start()
    process.join()
    assert process.exitcode == 0


def save_on_a_small_disk(place: Path, bert: Path) -> None:
    """Save a round where there is room for one, in a process that can be thrown away."""
    fill_up = small_disk(place)  # first: a process with threads may not move to a new namespace
    torch.set_num_threads(1)
    backbone = load(bert)
    loop = self_train(small_run.job(backbone), machine=small_run.MACHINE)
    with Run.start(place / "run", small_run.manifest(backbone)) as run:
        run.save(next(loop))
        fill_up()
        student = next(loop)
        with pytest.raises(RunError, match=f"cannot write .*: {FULL}"):
            run.save(student)
        check_only_the_teacher_is_there(run, backbone)
