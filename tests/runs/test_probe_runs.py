"""Run folders of probe rounds: a round stores its head alone and names the round of its encoder."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import small_run
from selftrain.errors import SelftrainError
from selftrain.model.backbone import Backbone
from selftrain.runs import read as runs
from selftrain.runs.train import train
from selftrain.training.loop import Round


@pytest.fixture
def trained(tmp_path: Path, backbone: Backbone) -> tuple[Path, list[Round]]:
    job = small_run.job(backbone, small_run.PROBE)
    folder = tmp_path / "run"
    return folder, list(train(folder, job, small_run.MACHINE))


def rewritten(folder: Path, number: int, **entries: object) -> None:
    path = folder / "rounds" / str(number) / "round.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def test_a_probe_round_stores_its_head_alone(trained: tuple[Path, list[Round]]) -> None:
    folder, rounds = trained
    assert [record.encoder_of for record in runs.records(folder)] == [None, 0, 0, None, 3, 3]
    for round_ in rounds:
        names = load_file(folder / "rounds" / str(round_.number) / "model.safetensors").keys()
        head_alone = all(name.startswith("head.") for name in names)
        assert head_alone == (round_.encoder_of is not None)


def test_every_round_answers_the_same_after_it_is_read_back(
    trained: tuple[Path, list[Round]], backbone: Backbone
) -> None:
    folder, rounds = trained
    for round_ in rounds:
        model = runs.load(folder, round_.number, backbone=backbone.name)
        expected = small_run.probabilities(round_.model)
        assert torch.equal(small_run.probabilities(model), expected)
        assert model.digest() == round_.model.digest()


def test_a_finished_run_yields_the_rounds_it_stored(
    trained: tuple[Path, list[Round]], backbone: Backbone
) -> None:
    folder, rounds = trained
    again = list(train(folder, small_run.job(backbone, small_run.PROBE), small_run.MACHINE))
    assert [round_.encoder_of for round_ in again] == [round_.encoder_of for round_ in rounds]
    assert [a.model.digest() for a in again] == [b.model.digest() for b in rounds]


def test_a_run_goes_on_with_one_more_student_and_its_probe_rounds(
    trained: tuple[Path, list[Round]], backbone: Backbone
) -> None:
    folder, rounds = trained
    longer = small_run.job(backbone, replace(small_run.PROBE, rounds=2))
    more = list(train(folder, longer, small_run.MACHINE))
    assert [round_.number for round_ in more] == list(range(9))
    assert [a.model.digest() for a in more[:6]] == [b.model.digest() for b in rounds]
    last_student = 6 if more[6].accepted else more[5].encoder
    assert more[8].encoder == last_student


@pytest.mark.parametrize("encoder_of", [-1, 2, 5, 9, 1])
def test_an_encoder_that_no_earlier_round_trained_is_refused(
    trained: tuple[Path, list[Round]], encoder_of: int
) -> None:
    folder, _ = trained
    rewritten(folder, 2, encoder_of=encoder_of)
    with pytest.raises(SelftrainError, match="has the encoder of round"):
        runs.load(folder, 2)


def test_a_head_without_its_encoder_is_refused(
    trained: tuple[Path, list[Round]], backbone: Backbone
) -> None:
    folder, _ = trained
    rewritten(folder, 2, encoder_of=None)
    with pytest.raises(SelftrainError, match="lacks tensor"):
        runs.load(folder, 2, backbone=backbone.name)


def test_a_changed_encoder_is_found_by_its_hash(
    trained: tuple[Path, list[Round]], backbone: Backbone
) -> None:
    folder, _ = trained
    tensors = folder / "rounds" / "0" / "model.safetensors"
    raw = bytearray(tensors.read_bytes())
    raw[-1] ^= 1
    tensors.write_bytes(raw)
    with pytest.raises(SelftrainError, match="its sha256 differs"):
        runs.load(folder, 2, backbone=backbone.name)


def test_a_head_of_another_task_is_refused(
    trained: tuple[Path, list[Round]], backbone: Backbone, resealed: Callable[[Path], None]
) -> None:
    folder, _ = trained
    card = folder / "rounds" / "2" / "model.json"
    card.write_text(card.read_text().replace('"small"', '"other"'))
    resealed(folder / "rounds" / "2")
    with pytest.raises(SelftrainError, match="head of another model"):
        runs.load(folder, 2, backbone=backbone.name)


@pytest.fixture
def resealed() -> Callable[[Path], None]:
    """Write the hashes of a changed round into its record, as a forger would."""
    from selftrain.disk import sha256

    def reseal(place: Path) -> None:
        path = place / "round.json"
        record = json.loads(path.read_text())
        record["files"] = {name: sha256(place / name) for name in record["files"]}
        path.write_text(json.dumps(record))

    return reseal
