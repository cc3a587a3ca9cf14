"""Killed at any moment, the same command ends with the same model, bit for bit."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import count, cycle
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, TypeVar

import pytest

import small_run
from command import config, write_files
from selftrain import disk
from selftrain.method.spec import Method
from selftrain.model.backbone import load
from selftrain.runs import lessons, manifest, record
from selftrain.runs import read as runs
from selftrain.runs import write as running
from selftrain.runs.write import Run
from selftrain.training.loop import Round, self_train

T = TypeVar("T")

# A server that has imported torch once and hands out copies of itself: real processes, each
# as fresh as a new one, without six seconds of importing.
forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload(["selftrain.runs.train"])


@pytest.fixture(scope="module")
def bert(tiny_folder: Callable[[str], Path]) -> Path:
    return tiny_folder("bert")


# ── whole runs, killed at seeded moments ──


@dataclass(frozen=True)
class Undisturbed:
    """A run that nobody disturbed."""

    folder: Path
    bert: Path
    method: Method
    seconds: float


@pytest.fixture(scope="module")
def undisturbed(
    bert: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Undisturbed]:
    root = tmp_path_factory.mktemp("runs")

    @cache
    def of(name: str) -> Undisturbed:
        method = small_run.METHODS[name]
        if not list(root.iterdir()):
            assert go(root / "first", bert, method) == 0  # starts the server, which takes a while
        started = time.monotonic()
        assert go(root / name, bert, method) == 0
        return Undisturbed(root / name, bert, method, time.monotonic() - started)

    return of


def go(
    folder: Path, bert: Path, method: Method, *, killed_after: float | None = None
) -> int | None:
    """Give the command in a process of its own, killed after so many seconds; its exit code."""
    process = forks.Process(target=small_run.go, args=(folder, bert, method))
    process.start()
    process.join(killed_after)
    process.kill()
    process.join()
    return process.exitcode


def models(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("model.safetensors")}


def check_kills(folder: Path, whole: Undisturbed, seed: int) -> int:
    """Kill a run at some moment, again and again until it ends; compare all models; the kills."""
    seconds = whole.seconds
    random = Random(seed)
    kills = 0
    while (
        go(folder, whole.bert, whole.method, killed_after=random.uniform(0, seconds))
        == -signal.SIGKILL
    ):
        kills += 1
        seconds *= 1.1  # so that it ends on a machine that has become slower
    assert models(folder) == models(whole.folder)
    assert not list(folder.rglob("*.tmp"))
    return kills


@pytest.mark.parametrize(("name", "seed"), [("sampled", 0), ("sampled", 1), ("laptop", 3)])
def test_a_run_killed_at_any_moment_ends_with_the_same_models(
    name: str, seed: int, undisturbed: Callable[[str], Undisturbed], tmp_path: Path
) -> None:
    check_kills(tmp_path / "run", undisturbed(name), seed)


@pytest.mark.slow
def test_runs_killed_fifty_times_in_all_end_with_the_same_models(
    undisturbed: Callable[[str], Undisturbed], tmp_path: Path
) -> None:
    kills, turns = 0, zip(cycle(small_run.METHODS), count(4))
    while kills < 50:
        name, seed = next(turns)
        kills += check_kills(tmp_path / f"run-{seed}", undisturbed(name), seed)


@pytest.mark.parametrize("name", small_run.METHODS)
def test_the_run_that_is_killed_learns_from_its_own_students(
    name: str, undisturbed: Callable[[str], Undisturbed]
) -> None:
    rounds = runs.records(undisturbed(name).folder)
    total = small_run.METHODS[name].total_rounds
    assert [round_.number for round_ in rounds] == list(range(total + 1))
    # Were round 1 refused, round 2 would not depend on what was read back.
    assert all(round_.accepted for round_ in rounds)


# ── the command itself, with the default backbone and method ──

FIT = "fit labelled.csv -u pool.csv --config quick.toml --threads 1 -o"


def give(folder: Path, out: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "selftrain", *FIT.split(), out]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_fit_killed_between_rounds_and_given_again_ends_with_the_same_models(
    tmp_path: Path,
) -> None:
    write_files(tmp_path)
    (tmp_path / "quick.toml").write_text(config("method.rounds = 3\nmethod.student.steps = 30"))
    first = give(tmp_path, "killed")
    while first.poll() is None and not (tmp_path / "killed" / "rounds" / "1").exists():
        time.sleep(0.01)
    first.kill()
    first.communicate()
    assert first.returncode == -signal.SIGKILL
    before = models(tmp_path / "killed")
    assert set(before) == {"rounds/0/model.safetensors", "rounds/1/model.safetensors"}

    again, whole = give(tmp_path, "killed"), give(tmp_path, "whole")
    told = again.communicate()[1], whole.communicate()[1]
    assert (again.returncode, whole.returncode) == (0, 0), told
    assert "killed resumes after round 1" in told[0]
    after = models(tmp_path / "killed")
    assert "rounds/3/model.safetensors" in after
    assert after == models(tmp_path / "whole")
    assert {name: after[name] for name in before} == before


# ── one step, killed at every line ──

ROOMS = (running, runs, manifest, record, lessons, disk)
OURS = {room.__file__ for room in ROOMS}


def killed_at_every_line(act: Callable[[T], object], prepare: Callable[[], T]) -> Iterator[int]:
    """Act in a fork that is killed at the first line of ours, then at the second, until it ends."""
    for fatal in count(1):
        child = os.fork()
        if child == 0:
            try:
                prepared = prepare()
                sys.settrace(killer(fatal))
                act(prepared)
                os._exit(0)
            finally:
                os._exit(1)  # an error must not run the rest of the tests a second time
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return
        assert status == -signal.SIGKILL
        yield fatal


def killer(fatal: int) -> Callable[[FrameType, str, Any], Any]:
    """A trace that kills its process when it comes to so many different lines of ours."""
    lines: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in OURS:
            return None
        if event == "line":
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        if len(lines) == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


@pytest.fixture(scope="module")
def rounds(bert: Path) -> list[Round]:
    return list(self_train(small_run.job(load(bert)), machine=small_run.MACHINE))


def test_a_start_killed_at_any_line_can_be_started_again(
    rounds: list[Round], tmp_path: Path
) -> None:
    backbone = rounds[0].model.backbone
    manifest = small_run.manifest(backbone)

    found = []
    for _ in killed_at_every_line(
        lambda folder: Run.start(folder, manifest), prepare=lambda: tmp_path / "run"
    ):
        with Run.start(tmp_path / "run", manifest) as run:
            found.append(run.done(backbone))
        shutil.rmtree(tmp_path / "run")
    assert found == [[]] * len(found)
    assert len(found) > 30


def test_a_start_with_more_rounds_killed_at_any_line_asks_for_them_or_does_not(
    rounds: list[Round], tmp_path: Path
) -> None:
    asked = small_run.manifest(rounds[0].model.backbone)
    more = replace(asked, method={**asked.method, "rounds": 4})
    with Run.start(tmp_path / "teacher", asked) as run:
        run.save(rounds[0])

    found = []
    for _ in killed_at_every_line(
        lambda folder: Run.start(folder, more),
        prepare=lambda: shutil.copytree(tmp_path / "teacher", tmp_path / "run"),
    ):
        now = runs.read_manifest(tmp_path / "run")
        assert now in (asked, more)
        found.append(now.method["rounds"])
        with Run.start(tmp_path / "run", more) as run:
            assert len(run.done(rounds[0].model.backbone)) == 1
        shutil.rmtree(tmp_path / "run")
    assert sorted(found) == found
    assert [found[0], found[-1]] == [2, 4]


def test_a_save_killed_at_any_line_leaves_the_round_whole_or_absent(
    rounds: list[Round], tmp_path: Path
) -> None:
    backbone = rounds[0].model.backbone
    manifest = small_run.manifest(backbone)
    with Run.start(tmp_path / "teacher", manifest) as run:
        run.save(rounds[0])

    def with_a_teacher() -> Run:
        return Run.start(shutil.copytree(tmp_path / "teacher", tmp_path / "run"), manifest)

    found = []
    for _ in killed_at_every_line(lambda run: run.save(rounds[1]), prepare=with_a_teacher):
        with Run.start(tmp_path / "run", manifest) as run:
            found.append([round_.number for round_ in run.done(backbone)])
            assert not list(run.folder.rglob("*.tmp"))
        shutil.rmtree(tmp_path / "run")
    assert len(found) > 30
    assert sorted(found) == found  # absent up to some line, whole from there on
    assert [found[0], found[-1]] == [[0], [0, 1]]


# ── what a kill cannot show: a power cut ──


def test_a_round_gets_its_name_only_after_all_of_it_is_on_disk(
    rounds: list[Round], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, int]] = []
    fsync, rename = os.fsync, Path.replace

    def noted_fsync(handle: int) -> None:
        fsync(handle)
        seen.append(("on disk", os.fstat(handle).st_ino))

    def noted_rename(path: Path, target: Path) -> Path:
        seen.append(("named", path.stat().st_ino))
        return rename(path, target)

    with Run.start(tmp_path / "run", small_run.manifest(rounds[0].model.backbone)) as run:
        monkeypatch.setattr(os, "fsync", noted_fsync)
        monkeypatch.setattr(Path, "replace", noted_rename)
        run.save(rounds[0])
        here = run.folder / "rounds" / "0"
    named = seen.index(("named", here.stat().st_ino))
    before = {inode for _, inode in seen[:named]}
    assert before == {path.stat().st_ino for path in (here, *here.iterdir())}
    assert seen[named + 1 :] == [("on disk", here.parent.stat().st_ino)]
