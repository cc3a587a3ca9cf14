"""What happens to a run folder on its way or in a stranger's hands, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from selftrain.disk import sha256
from selftrain.errors import RunError
from selftrain.model.backbone import Backbone
from selftrain.runs.manifest import Manifest
from selftrain.runs.write import Run


def rewritten(path: Path, **new: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **new}))


def changed_inside(path: Path, place: Sequence[str | int], value: object) -> None:
    """Change one entry of a JSON file; ``place`` leads to it from outside to inside."""
    facts = json.loads(path.read_text())
    inner = facts
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    path.write_text(json.dumps(facts))


def relisted(folder: Path, **files: str) -> None:
    """Change what round 1 says its files are."""
    path = folder / "rounds/1/round.json"
    rewritten(path, files={**json.loads(path.read_text())["files"], **files})


def swapped(path: Path, new: bytes = b"PAR1") -> str:
    path.write_bytes(new)
    return sha256(path)


def made_anew(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def moved_behind_a_link(path: Path) -> None:
    elsewhere = path.parent.parent / f"elsewhere-{path.name}"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def refusal(folder: Path, manifest: Manifest, backbone: Backbone) -> RunError:
    """What is said when the run in a damaged folder is to go on: one line and a hint."""
    with pytest.raises(RunError) as caught, Run.start(folder, manifest) as run:
        run.done(backbone)
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 1000
    assert caught.value.hint
    return caught.value
