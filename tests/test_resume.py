"""Killed at any moment, the same command ends with the same model, bit for bit."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest
import small_run
import tiny

from selftrain import classifier, disk, runs
from selftrain.backbone import load
from selftrain.loop import Round, self_train
from selftrain.runs import Run

# A server that has imported torch once and hands out copies of itself: real processes, each
# as fresh as a new one, without six seconds of importing.
forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload(["selftrain.experiment"])


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.make("bert", tmp_path_factory.mktemp("bert"))


# ── whole runs, killed at seeded moments ──


@pytest.fixture(scope="module")
def undisturbed(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A run that nobody disturbed, and how many seconds it took."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert go(folder.with_name("first"), bert) == 0  # starts the server, which takes a while
    started = time.monotonic()
    assert go(folder, bert) == 0
    return folder, time.monotonic() - started


def go(folder: Path, bert: Path, *, killed_after: float | None = None) -> int | None:
    """Give the command in a process of its own, killed after so many seconds; its exit code."""
    process = forks.Process(target=small_run.go, args=(folder, bert))
    process.start()
    process.join(killed_after)
    process.kill()
    process.join()
    return process.exitcode


def models(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("model.safetensors")}


def check_kills(folder: Path, bert: Path, undisturbed: tuple[Path, float], seed: int) -> None:
    """Kill a run at a moment anywhere in it, again and again until it ends; compare all models."""
    whole, seconds = undisturbed
    random = Random(seed)
    while go(folder, bert, killed_after=random.uniform(0, seconds)) == -signal.SIGKILL:
        pass
    assert models(folder) == models(whole)
    assert not list(folder.rglob("*.tmp"))


@pytest.mark.parametrize("seed", range(3))
def test_a_run_killed_at_any_moment_ends_with_the_same_models(
    seed: int, bert: Path, undisturbed: tuple[Path, float], tmp_path: Path
) -> None:
    check_kills(tmp_path / "run", bert, undisturbed, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 53))
def test_fifty_more_killed_runs_end_with_the_same_models(
    seed: int, bert: Path, undisturbed: tuple[Path, float], tmp_path: Path
) -> None:
    check_kills(tmp_path / "run", bert, undisturbed, seed)


def test_the_run_that_is_killed_learns_from_its_own_students(
    undisturbed: tuple[Path, float],
) -> None:
    rounds = runs.history(undisturbed[0])
    assert [round_["number"] for round_ in rounds] == [0, 1, 2]
    # Were round 1 refused, round 2 would not depend on what was read back.
    assert all(round_["accepted"] for round_ in rounds)


# ── one save, killed at every line ──


def killed_at_every_line(act: Callable[[], object]) -> Iterator[int]:
    """Do it in a fork killed at its first line of ours, then at its second, until it ends."""
    ours = {module.__file__ for module in (runs, disk, classifier)}
    for fatal in count(1):
        child = os.fork()
        if child == 0:
            lines = count(1)

            def trace(frame: FrameType, event: str, _: Any) -> Any:
                if frame.f_code.co_filename not in ours:
                    return None
                if event == "line" and next(lines) == fatal:
                    os.kill(os.getpid(), signal.SIGKILL)
                return trace

            sys.settrace(trace)
            act()
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return
        assert status == -signal.SIGKILL
        yield fatal


@pytest.fixture(scope="module")
def rounds(bert: Path) -> list[Round]:
    method, split = small_run.METHOD, small_run.split()
    base = load(bert)
    return list(
        self_train(small_run.TASK, split, method, backbone=base, seed=7, on=small_run.MACHINE)
    )


def test_a_start_killed_at_any_line_can_be_started_again(rounds: list[Round], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    manifest = small_run.manifest(rounds[0].model.backbone)
    kills = 0
    for kills in killed_at_every_line(lambda: Run.start(folder, manifest)):
        with Run.start(folder, manifest) as run:
            assert run.done(rounds[0].model.backbone) == []
        shutil.rmtree(folder)
    assert kills > 30


def test_a_save_killed_at_any_line_leaves_the_round_whole_or_absent(
    rounds: list[Round], tmp_path: Path
) -> None:
    backbone = rounds[0].model.backbone
    manifest = small_run.manifest(backbone)
    with Run.start(tmp_path / "one", manifest) as run:
        run.save(rounds[0])
    folder = tmp_path / "run"
    outcomes = set()
    for _ in killed_at_every_line(lambda: save_next(tmp_path, manifest, rounds[1])):
        with Run.start(folder, manifest) as run:
            found = [round_.number for round_ in run.done(backbone)]
            assert not list(folder.rglob("*.tmp"))
            outcomes.add(tuple(found))
        shutil.rmtree(folder)
    assert outcomes == {(0,), (0, 1)}


def save_next(place: Path, manifest: runs.Manifest, round_: Round) -> None:
    shutil.copytree(place / "one", place / "run")
    with Run.start(place / "run", manifest) as run:
        run.save(round_)


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
