"""Before a model is used: the run is unfinished, or its round was refused. It is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from selftrain import SelfTrainingClassifier
from selftrain.errors import RunError
from selftrain.model.backbone import Backbone
from selftrain.runs.read import caveats


def rewritten(path: Path, **new: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **new}))


def test_a_finished_run_has_no_caveat(folder: Path) -> None:
    assert list(caveats(folder)) == []
    assert list(caveats(folder, 0)) == []


def test_an_unfinished_run_says_how_far_it_is(folder: Path) -> None:
    shutil.rmtree(folder / "rounds" / "2")
    (said,) = caveats(folder)
    assert said.startswith(f"{folder} is not finished: it has 1 of 2 rounds")
    assert "selftrain fit" in said


def test_a_run_that_ended_early_is_finished(folder: Path) -> None:
    shutil.rmtree(folder / "rounds" / "2")
    rewritten(folder / "rounds/1/round.json", last=True, why="converged")
    assert list(caveats(folder)) == []


def test_a_refused_round_says_why_and_the_accepted_one_does_not(folder: Path) -> None:
    rewritten(folder / "rounds/2/round.json", accepted=False, why="collapse\x1b: it never answers")
    assert list(caveats(folder)) == []
    (said,) = caveats(folder, 2)
    assert said == f"round 2 of {folder} was refused: collapse\\x1b: it never answers"


def test_python_warns_of_an_unfinished_run(folder: Path, backbone: Backbone) -> None:
    shutil.rmtree(folder / "rounds" / "2")
    with pytest.warns(UserWarning, match="is not finished"):
        SelfTrainingClassifier.load(folder, backbone=Path(backbone.name))


@pytest.mark.parametrize("method", [{}, {"rounds": "x"}, {"rounds": 1, "probe": {"rounds": []}}])
def test_a_manifest_without_rounds_is_damaged(folder: Path, method: object) -> None:
    rewritten(folder / "manifest.json", method=method)
    with pytest.raises(RunError, match="its method has no rounds"):
        list(caveats(folder))
