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
def test_a_whole_fit_by_torchrun_ends_as_one_process_and_resumes(bert: Path, folder: Path) -> None:
    line = command.FIT.format(bert=bert)
    ended = torchrun(line)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("model: run, ") == 1, "the first process alone speaks"
    said = command.selftrain(line.replace("-o run", "-o alone"))
    assert said.code == 0, said.err
    assert records(folder / "run") == records(folder / "alone")
    again = command.selftrain(f"predict run pool.csv --backbone {bert} -o answers.csv")
    assert again.code == 0, again.err
    resumed = torchrun(line)
    assert resumed.returncode == 0, resumed.stderr
    assert "run is finished" in resumed.stderr
    refused = torchrun(line + " --minutes 5")
    assert refused.returncode != 0
    assert "plan for one process" in refused.stderr
