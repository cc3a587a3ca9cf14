"""Faults and load, a few of each: the script that measures them finds no harm."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_few_of_each_fault_leave_the_models_as_they_would_have_been(tmp_path: Path) -> None:
    page = shutil.copy(ROOT / "docs" / "reliability.md", tmp_path)
    given = ["--quick", "--out", tmp_path / "lines.jsonl", "--page", page]
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "reliability.py", *given],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "| two commands for one folder at the same time | 2 | 2 |" in Path(page).read_text()
