"""How the threads of torch wait: what the command line chooses, and that a user can choose."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from selftrain.cli import SHORT_SPIN, WAIT_SETTINGS

NO_SPIN = "0"


@pytest.mark.parametrize(
    ("user_settings", "spins"),
    [
        ({}, SHORT_SPIN),
        ({"OMP_NUM_THREADS": "2"}, SHORT_SPIN),
        ({"OMP_WAIT_POLICY": "passive"}, NO_SPIN),
        ({"GOMP_SPINCOUNT": "500"}, "500"),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, dict) else "",
)
def test_waiting_threads_soon_sleep_unless_the_user_chose(
    user_settings: dict[str, str], spins: str
) -> None:
    """OpenMP itself prints what it read as torch was loaded; a later change would not show."""
    others = {name: value for name, value in os.environ.items() if name not in WAIT_SETTINGS}
    done = subprocess.run(
        [sys.executable, "-m", "selftrain", "doctor"],
        capture_output=True,
        text=True,
        check=True,
        env=others | {"OMP_DISPLAY_ENV": "verbose"} | user_settings,
    )
    assert set(re.findall(r"GOMP_SPINCOUNT = '(\d+)'", done.stderr)) == {spins}
