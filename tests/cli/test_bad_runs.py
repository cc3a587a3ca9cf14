"""Run folders that cannot be used: one line and a hint, exit code 1, nothing half-written."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from bad_input import Case, check_refused, labelled, pairs
from command import FIT, csv, selftrain, snapshot
from small_disk import small_disk


def manifest(**changes: object) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        path = folder / "done" / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


def overwrite(name: str, text: str = "spoilt") -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def without(name: str) -> Callable[[Path], object]:
    return lambda folder: shutil.rmtree(folder / "done" / name)


AGAIN = FIT.replace("-o run", "-o done")
PREDICT = "predict done test.csv --backbone {bert}"
EVALUATE = "evaluate done test.csv --backbone {bert}"
RUNS = {
    "a folder of someone else's": Case(FIT.replace("-o run", "-o ."), "neither empty nor a run"),
    "a file in the way": Case(FIT.replace("-o run", "-o pool.csv"), "pool.csv is a file"),
    "another seed": Case(AGAIN + " --seed 5", "another configuration: seed was 12", hint="-o NEW"),
    "other rows": Case(AGAIN, "another configuration: data.labelled", labelled(("film", "good"))),
    "a newer run": Case(AGAIN, "has format 99", spoil=manifest(format=99), hint="pip install"),
    "a newer run, read": Case(PREDICT, "has format 99", spoil=manifest(format=99)),
    "a foreign manifest": Case(
        PREDICT, "was not written by selftrain", spoil=overwrite("done/manifest.json", "{}")
    ),
    "a damaged manifest": Case(PREDICT, "is not JSON", spoil=overwrite("done/manifest.json")),
    "a damaged manifest, fit": Case(AGAIN, "is not JSON", spoil=overwrite("done/manifest.json")),
    "an entry of another kind": Case(PREDICT, "is damaged: `seed`", spoil=manifest(seed="x")),
    "a damaged round": Case(EVALUATE, "is damaged", spoil=overwrite("done/rounds/1/round.json")),
    "a damaged model": Case(
        EVALUATE, "sha256 differs", spoil=overwrite("done/rounds/1/model.safetensors")
    ),
    "a damaged lesson": Case(
        AGAIN, "sha256 differs", spoil=overwrite("done/rounds/1/lesson.parquet")
    ),
    "a missing round": Case(EVALUATE, "round 0 is not", spoil=without("rounds/0")),
    "no round yet": Case(PREDICT, "no whole round yet", spoil=without("rounds")),
    "no run": Case(PREDICT.replace("done", "nowhere"), "is not a run folder"),
    "a backbone that only the run names": Case(
        "predict done test.csv", "is not embedded", hint="--backbone "
    ),
    "answers of an unknown kind": Case(PREDICT + " -o answers.txt", "ends in `.txt`"),
    "answers without a folder": Case(PREDICT + " -o no/where.csv", "cannot write"),
    "no passes": Case(PREDICT + " --passes 0", "--passes is 0"),
    "answers to two places": Case(
        PREDICT + " --json -o answers.csv", "--json prints", hint="-o answers.jsonl"
    ),
    "pairs for single texts": Case(
        PREDICT, "trained on single texts", {"test.csv": pairs(("a", "b", "good"))}
    ),
    "a label the run has never seen": Case(
        EVALUATE,
        "label `odd` is in the test rows",
        {"test.csv": csv([("film", "odd")], "text", "label")},
    ),
    "unlabelled test rows": Case(EVALUATE.replace("test.csv", "pool.csv"), "no label column"),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_bad_run_is_one_line_and_a_hint_and_leaves_nothing_behind(
    name: str, folder: Path, bert: Path, done: Path
) -> None:
    check_refused(RUNS[name], folder, bert, done)


def test_a_run_that_another_process_writes_is_left_alone(folder: Path, bert: Path) -> None:
    (folder / "run").mkdir()
    with FileLock(folder / "run" / ".lock").acquire():
        before = snapshot(folder)
        said = selftrain(FIT.format(bert=bert))
        assert said.code == 1
        assert "error: run is being written by another process" in said.lines
        assert snapshot(folder) == before


# ── a full disk ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "step", ["selftrain.runs.write._write_json", "selftrain.runs.write.write_lesson"]
)
def test_a_disk_full_at_the_manifest_or_at_the_first_round_leaves_no_run(
    step: str, folder: Path, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(step, full)
    before = snapshot(folder)
    said = selftrain(FIT.format(bert=bert).replace("-o run", "-o runs/first"))
    assert said.code == 1
    assert "No space left on device" in said.lines[-2]
    assert "df -h" in said.lines[-1]
    assert snapshot(folder) == before


def test_a_really_full_disk_is_one_line_and_a_hint(folder: Path, bert: Path) -> None:
    (folder / "disk").mkdir()
    forks = multiprocessing.get_context("forkserver")
    process = forks.Process(target=fit_on_a_full_disk, args=(folder, bert))
    process.start()
    process.join()
    assert process.exitcode == 0


def fit_on_a_full_disk(folder: Path, bert: Path) -> None:
    """In a process that can be thrown away, and the disk with it."""
    fill_up = small_disk(folder / "disk")
    os.chdir(folder)
    fill_up()
    said = selftrain(FIT.format(bert=bert).replace("-o run", "-o disk/run"))
    assert said.code == 1, said.err
    assert [line.partition(":")[0] for line in said.lines] == ["error", "hint"], said.err
    assert not (folder / "disk" / "run").exists()
