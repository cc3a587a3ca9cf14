"""Reading a run folder: what was written is found, and what came from elsewhere is not trusted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import torch

import small_run
from damage import moved_behind_a_link, refusal, relisted, swapped
from selftrain.errors import RunError, SelftrainError
from selftrain.model.backbone import Backbone
from selftrain.model.build import load as load_model
from selftrain.runs import read as runs
from selftrain.runs.manifest import Manifest
from selftrain.runs.write import Run
from selftrain.training.loop import Round

# ── what was written is found ──


@pytest.mark.parametrize(
    ("revision", "name", "asked"),
    [("a" * 40, "org/model", "a" * 40), ("a" * 40, "org/other", None), ("main", "org/model", None)],
)
def test_a_backbone_given_by_its_name_is_that_of_the_revision_trained_on(
    tmp_path: Path,
    rounds: list[Round],
    backbone: Backbone,
    monkeypatch: pytest.MonkeyPatch,
    revision: str,
    name: str,
    asked: str | None,
) -> None:
    rounds[0].model.save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    card = json.loads(path.read_text())
    card["backbone"] |= {"name": "org/model", "revision": revision}
    path.write_text(json.dumps(card))
    found = []

    def load(name: str, *, revision: str | None = None) -> Backbone:
        found.append((name, revision))
        return backbone

    monkeypatch.setattr("selftrain.model.backbone.load", load)
    load_model(tmp_path / "model", name)
    assert found == [(name, asked)]


def test_records_say_what_each_round_gave(folder: Path, rounds: list[Round]) -> None:
    records = runs.records(folder)
    assert [record.number for record in records] == [0, 1, 2]
    assert [record.numbers for record in records] == [round_.numbers for round_ in rounds]


def test_load_gives_the_last_accepted_model_or_the_one_asked_for(
    tmp_path: Path, rounds: list[Round], manifest: Manifest, backbone: Backbone
) -> None:
    with Run.start(tmp_path / "run", manifest) as run:
        run.save(rounds[0])
        run.save(replace(rounds[1], accepted=True))
        run.save(replace(rounds[2], accepted=False, why="collapse"))
    last = runs.load(tmp_path / "run", backbone=backbone.name)
    assert torch.equal(small_run.probabilities(last), small_run.probabilities(rounds[1].model))
    for round_ in rounds:  # the refused one too: it is kept, for whoever wants to know why
        asked = runs.load(tmp_path / "run", round_.number, backbone=backbone.name)
        assert torch.equal(small_run.probabilities(asked), small_run.probabilities(round_.model))


@pytest.mark.parametrize("reader", [runs.load, runs.records, runs.read_manifest])
@pytest.mark.parametrize("place", ["missing", "empty", "file"])
def test_what_is_no_run_folder_is_said_to_be_none(
    reader: Callable[[Path], object], place: str, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"not a run folder|a run is a folder"):
        reader(tmp_path / place)


def test_a_run_without_a_whole_round_has_no_model(tmp_path: Path, manifest: Manifest) -> None:
    with Run.start(tmp_path, manifest):
        assert runs.records(tmp_path) == []
        with pytest.raises(RunError, match="no whole round yet"):
            runs.load(tmp_path)


def test_a_round_that_is_not_there_is_an_error(folder: Path) -> None:
    with pytest.raises(RunError, match="has no round 3; its last one is 2"):
        runs.load(folder, 3)


# ── folders from elsewhere ──

DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (
        lambda f: (f / "manifest.json").unlink(),
        "neither empty nor a run folder: it holds 'rounds'",
    ),
    "rounds a link": (lambda f: moved_behind_a_link(f / "rounds"), "rounds is not a plain folder"),
    "round a link": (
        lambda f: moved_behind_a_link(f / "rounds/1"),
        "rounds/1 is not a plain folder",
    ),
    "model a link": (
        lambda f: moved_behind_a_link(f / "rounds/1/model.safetensors"),
        "model.safetensors is not a plain file",
    ),
    "round missing": (
        lambda f: (f / "rounds/1").rename(f / "gone"),
        "rounds/2 is there, but round 1 is not",
    ),
    "model missing": (
        lambda f: (f / "rounds/1/model.safetensors").unlink(),
        "model.safetensors: No such file",
    ),
    "model cut short": (
        lambda f: os.truncate(f / "rounds/1/model.safetensors", 100),
        "model.safetensors is not what was written",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_folder_is_one_line_and_a_hint(
    damage: str, folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    harm, said = DAMAGES[damage]
    harm(folder)
    assert said in refusal(folder, manifest, backbone).message


def test_any_changed_byte_of_a_model_is_noticed(folder: Path, backbone: Backbone) -> None:
    random = Random(0)
    for name in ("model.safetensors", "model.json"):
        path = folder / "rounds/2" / name
        whole = path.read_bytes()
        for _ in range(10):
            place = random.randrange(len(whole))
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(RunError, match="its sha256 differs"):
                runs.load(folder)
        path.write_bytes(whole)
    assert runs.load(folder, backbone=backbone.name)


def test_a_backbone_named_in_a_folder_is_not_followed_out_of_it(
    folder: Path, backbone: Backbone
) -> None:
    with pytest.raises(SelftrainError, match="is not embedded") as caught:
        runs.load(folder)
    assert caught.value.hint == f"give it yourself: --backbone {backbone.name}"


def test_a_model_made_to_fit_its_own_digest_is_still_compared_with_the_backbone(
    folder: Path, backbone: Backbone
) -> None:
    teacher, student = (folder / f"rounds/{n}/model.safetensors" for n in (0, 1))
    relisted(folder, **{"model.safetensors": swapped(student, teacher.read_bytes())})
    with pytest.raises(SelftrainError, match="tensor"):
        runs.load(folder, 1, backbone=backbone.name)
