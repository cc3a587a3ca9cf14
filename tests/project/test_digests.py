"""What a run computes has not moved since tests/digests.json was written (tools/digests.py)."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "digests.py"))
COMMITTED = json.loads((ROOT / "tests" / "project" / "digests.json").read_text("utf-8"))
QUICK = ("head-adapter", "prompt-prefix", "frozen-layers", "list", "tapt", "streamed")
NAMES = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in COMMITTED
]


@pytest.mark.parametrize("name", NAMES)
def test_a_run_computes_what_it_did(name: str, tmp_path: Path) -> None:
    """Lessons exactly; weights and answers within what another processor may round differently.

    Biases alone (bitfit) moved by 7e-5 between two machines with the same code.
    """
    was, now = COMMITTED[name], TOOL["digests_of"](name, tmp_path)
    for old, new in zip(was["rounds"], now["rounds"], strict=True):
        assert new["lesson"] == old["lesson"]
        assert new["projections"] == pytest.approx(old["projections"], abs=3e-4)
    for old, new in zip(was["answers"], now["answers"], strict=True):
        assert new["label"] == old["label"]
        chances = [value for key, value in old.items() if key.startswith("p_")]
        assert [value for key, value in new.items() if key.startswith("p_")] == pytest.approx(
            chances, abs=1e-3
        )


def test_every_kind_of_run_is_written_down() -> None:
    assert COMMITTED.keys() == TOOL["KINDS"].keys()
    assert COMMITTED["resumed"] == COMMITTED["head-adapter"], (
        "a resumed run ends with the same bits"
    )
    assert COMMITTED["streamed"] != COMMITTED["head-adapter"]
