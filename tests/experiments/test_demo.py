"""The demo on the real backbone: what `make demo` promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_demo_of_one_seed_beats_the_majority_and_keeps_every_round(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "selftrain", "demo", "--on", "design", "--json", "-o", tmp_path],
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    scores = json.loads(done.stdout)["accuracy"]
    simple = ["tf-idf + logistic regression", "frozen encoder + logistic regression"]
    assert list(scores)[:4] == ["majority", *simple, "teacher"]
    (majority,), (teacher,) = scores["majority"].values(), scores["teacher"].values()
    (final,) = scores["final"].values()
    # Not a benchmark: a broken loop ends at chance, and this would see it.
    assert teacher > majority + 0.1
    assert final > majority + 0.1
    rounds = sorted(tmp_path.glob("*/*/rounds/*"))
    assert len(rounds) >= 2
    assert all((each / "lesson.parquet").is_file() for each in rounds)
    assert "round 1/" in done.stderr
