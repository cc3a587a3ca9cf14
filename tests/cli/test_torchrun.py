"""`torchrun … -m selftrain fit`: two processes write one run, as one process would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import command
import two_processes

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2")


def torchrun(line: str) -> subprocess.CompletedProcess[str]:
    """A command in two processes."""
    return subprocess.run(
        [*TORCHRUN, "-m", "selftrain", *line.split()],
        capture_output=True,
        text=True,
        timeout=two_processes.SECONDS,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )


def records(run: Path) -> list[tuple[int, bool]]:
    """The rounds of a run, and whether they were accepted."""
    found = [json.loads(path.read_text("utf-8")) for path in run.glob("rounds/*/round.json")]
    return sorted((each["number"], each["accepted"]) for each in found)


@pytest.mark.slow
def test_a_whole_fit_by_torchrun_is_a_run_as_any_other(bert: Path, folder: Path) -> None:
    line = command.FIT.format(bert=bert)
    ended = torchrun(line)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("model: run, ") == 1, "the first process alone speaks"
    alone = command.selftrain(line.replace("-o run", "-o alone"))
    assert alone.code == 0, alone.err
    assert records(folder / "run") == records(folder / "alone")
    answers = command.selftrain(f"predict run pool.csv --backbone {bert} -o answers.csv")
    assert answers.code == 0, answers.err
    again = command.selftrain(line)
    assert "run is finished" in again.err
    assert "started with processes 2, goes on with 1: its dropout draws other noise" in again.err


@pytest.mark.parametrize(
    ("variables", "more", "problem"),
    [
        ({"WORLD_SIZE": "2", "RANK": "0"}, " --minutes 5", "plan for one process"),
        ({"WORLD_SIZE": "2", "RANK": "0"}, " --dry-run", "plan for one process"),
        ({"ACCELERATE_USE_FSDP": "true"}, "", "FSDP splits weights"),
        ({"ACCELERATE_MIXED_PRECISION": "bf16"}, "", "which selftrain does not read"),
        ({}, " --precision tf32", "elsewhere tf32 changes nothing"),
        ({}, " --precision fp16", "expected fp32, tf32, bf16"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_trained_is_refused_before_anything_is_written(
    bert: Path, variables: dict[str, str], more: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    refused = command.selftrain(command.FIT.format(bert=bert) + more)
    assert refused.code == 1
    assert problem in refused.err
    assert "hint: " in refused.err
    assert not Path("run").exists()
