"""The record of a round: one from elsewhere is not trusted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from damage import refusal, relisted, rewritten
from selftrain.model.backbone import Backbone
from selftrain.runs.manifest import Manifest

DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "record missing": (
        lambda f: (f / "rounds/1/round.json").unlink(),
        "round.json: No such file",
    ),
    "record cut short": (
        lambda f: os.truncate(f / "rounds/1/round.json", 40),
        "round.json is damaged: invalid JSON",
    ),
    "record of another round": (
        lambda f: rewritten(f / "rounds/1/round.json", number=2),
        "round.json is that of round 2",
    ),
    "record with text for a number": (
        lambda f: rewritten(f / "rounds/1/round.json", numbers={"seconds": "x"}),
        "round.json is damaged: `numbers.seconds",
    ),
    "record with an infinite number": (
        lambda f: rewritten(f / "rounds/1/round.json", numbers={"seconds": float("inf")}),
        "round.json is damaged: `numbers.seconds",
    ),
    "record with a number without end": (
        lambda f: rewritten(f / "rounds/1/round.json", numbers={"seconds": 10**4000}),
        "round.json is damaged: `numbers.seconds",
    ),
    "record with a name without end": (
        lambda f: rewritten(f / "rounds/1/round.json", numbers={"x" * 100_000: "y"}),
        f"round.json is damaged: `numbers.{'x' * 70}",
    ),
    "record with a name that would move the cursor": (
        lambda f: rewritten(f / "rounds/1/round.json", numbers={"a\n\x1b[2J": "x"}),
        "round.json is damaged: `numbers.a\\n\\x1b[2J",
    ),
    "record naming a file outside": (
        lambda f: relisted(f, **{"../../manifest.json": "0" * 64}),
        "lists the files ['../../manifest.json'",
    ),
    "teacher refused": (
        lambda f: rewritten(f / "rounds/0/round.json", accepted=False),
        "refuses round 0",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_record_is_one_line_and_a_hint(
    damage: str, folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    harm, said = DAMAGES[damage]
    harm(folder)
    assert said in refusal(folder, manifest, backbone).message
