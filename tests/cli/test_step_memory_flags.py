"""`selftrain fit --checkpointing` and `--accumulate N`: a step of training in less memory."""

from __future__ import annotations

import json
from pathlib import Path

from command import FIT, selftrain


def fit(bert: Path, more: str = "", out: str = "run") -> str:
    return FIT.format(bert=bert).replace("-o run", f"-o {out}") + f" --threads 1{more}"


def weights(run: str) -> list[bytes]:
    return [
        (Path(run) / "rounds" / number / "model.safetensors").read_bytes() for number in ("0", "1")
    ]


def test_checkpointing_ends_with_the_same_weights(folder: Path, bert: Path) -> None:
    assert selftrain(fit(bert)).code == 0
    said = selftrain(fit(bert, " --checkpointing", out="less"))
    assert said.code == 0, said.err
    assert weights("run") == weights("less")


def test_a_run_keeps_into_how_many_batches_a_step_is_dealt(folder: Path, bert: Path) -> None:
    assert selftrain(fit(bert, " --accumulate 4 --rounds 0")).code == 0
    assert json.loads(Path("run/manifest.json").read_text("utf-8"))["accumulate"] == 4
    said = selftrain(fit(bert))
    assert said.code == 0, said.err
    assert "accumulate 4, goes on with 1: its dropout draws other noise" in said.err
