"""A rung that a person keeps leaves home too, with what the run knows of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import small_run
from selftrain.export.folder import Wanted, export
from selftrain.export.origin import read_origin
from selftrain.model.backbone import Backbone
from selftrain.runs import read as runs
from selftrain.runs.estimates import estimated
from selftrain.runs.ladders import keep, laddered
from selftrain.runs.train import train
from selftrain.training.expected import FROZEN_INTERVALS, TRAINED_INTERVALS
from selftrain.training.ladder import Models


@pytest.fixture(scope="module")
def run(backbone: Backbone, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with an estimate and a ladder."""
    folder = tmp_path_factory.mktemp("rungs") / "run"
    job = small_run.job(backbone)
    rounds = list(train(folder, job, small_run.MACHINE))
    estimate = estimated(folder, job, rounds, small_run.MACHINE)
    laddered(folder, job, Models(rounds, estimate), [], small_run.MACHINE)
    return folder


@pytest.mark.parametrize(("rung", "kind"), [("frozen", "probe"), ("teacher", "full")])
def test_a_kept_rung_is_exported_with_its_estimate_and_the_ladder(
    run: Path, backbone: Backbone, tmp_path: Path, rung: str, kind: str
) -> None:
    keep(run, rung)
    origin = read_origin(run, None, backbone)
    assert (origin.rung, origin.model.tuning.kind) == (rung, kind)
    assert origin.model.digest() == runs.load(run, backbone=backbone).digest()
    assert origin.expected is not None
    assert (origin.expected.right, origin.expected.judged) == (
        FROZEN_INTERVALS if rung == "frozen" else TRAINED_INTERVALS
    )
    assert origin.gold == {"good": 4, "bad": 4}
    export(origin, tmp_path / "model", Wanted("sentence-transformers"))
    card = (tmp_path / "model" / "README.md").read_text()
    assert "8 labelled texts: good 4, bad 4." in card
    assert "| frozen self-trained |" in card
    assert "Expected accuracy" in card


def test_a_rung_that_is_not_there_is_refused_by_name(run: Path, backbone: Backbone) -> None:
    (run / "keep.json").write_text('{"format": 1, "rung": "tf-idf"}')
    with pytest.raises(runs.RunError, match="keeps 'tf-idf', which is no rung"):
        read_origin(run, None, backbone)
