"""Which model answers for a run: the last accepted round, or the rung that a person keeps."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import small_run
from selftrain import SelfTrainingClassifier
from selftrain.errors import ConfigError, RunError
from selftrain.method.recipes import recipe
from selftrain.model.backbone import Backbone
from selftrain.runs.estimates import estimated, read_estimate
from selftrain.runs.keep import KEEP, rung_named
from selftrain.runs.ladders import check_can_keep, keep, laddered
from selftrain.runs.read import answering, load
from selftrain.runs.train import train
from selftrain.training.ladder import Models
from selftrain.training.loop import last_accepted


@pytest.fixture(scope="module")
def backbone(tiny_backbone: Callable[[str], Backbone]) -> Backbone:
    return tiny_backbone("bert")


@pytest.fixture(scope="module")
def finished(backbone: Backbone, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("keep") / "run"
    job = small_run.job(backbone)
    rounds = list(train(run, job, small_run.MACHINE))
    own = Models(rounds, estimated(run, job, rounds, small_run.MACHINE))
    laddered(run, job, own, [], small_run.MACHINE)
    return run


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("rung", "place", "number"),
    [
        ("frozen", "rungs/frozen", 0),
        ("frozen-self-trained", "rungs/frozen", None),
        ("teacher", "", 0),
        ("1", "", 1),
        ("2", "", 2),
        ("last", "", None),
    ],
)
def test_the_kept_model_answers_with_its_own_temperature(
    run: Path, backbone: Backbone, rung: str, place: str, number: int | None
) -> None:
    keep(run, "1")
    chosen = keep(run, rung)
    if number is None:
        records = sorted((run / place / "rounds").iterdir(), key=lambda path: int(path.name))
        facts = [json.loads((each / "round.json").read_text()) for each in records]
        number = max(each["number"] for each in facts if each["accepted"])
    assert chosen == answering(run)
    assert (chosen.folder, chosen.number) == (run / place, number)
    model, expected = load(run, backbone=backbone), load(run / place, number, backbone=backbone)
    assert torch.equal(small_run.probabilities(model), small_run.probabilities(expected))
    stored = read_estimate(run / place)
    assert stored is not None
    assert model.temperature == stored.estimate.of(number).temperature


def test_the_estimator_loads_the_kept_model(run: Path, backbone: Backbone) -> None:
    keep(run, "frozen")
    texts = [row.example.text for row in small_run.split().labelled]
    answers = SelfTrainingClassifier.load(run, backbone=backbone.name).predict_proba(texts)
    expected = load(run / "rungs/frozen", 0, backbone=backbone)
    assert answers == pytest.approx(small_run.probabilities(expected).numpy(), abs=1e-6)


def test_a_round_that_is_named_answers_whatever_is_kept(run: Path, backbone: Backbone) -> None:
    before = small_run.probabilities(load(run, 1, backbone=backbone))
    keep(run, "frozen")
    assert torch.equal(small_run.probabilities(load(run, 1, backbone=backbone)), before)


def test_a_choice_is_private_and_last_takes_it_back(run: Path) -> None:
    number = answering(run).number
    keep(run, "teacher")
    assert stat.S_IMODE((run / KEEP).stat().st_mode) == 0o600
    assert keep(run, "last") == answering(run)
    assert (answering(run).rung, answering(run).number) == (None, number)
    assert not (run / KEEP).exists()


def test_a_rung_that_is_not_there_is_not_kept(run: Path) -> None:
    keep(run, "teacher")
    with pytest.raises(RunError, match="has no round 7; its last one is 2"):
        keep(run, "7")
    shutil.rmtree(run / "rungs")
    with pytest.raises(RunError, match=r"keeps `frozen`, but .* has no run"):
        keep(run, "frozen")
    assert answering(run).rung == "teacher", "an error changes nothing"


def test_more_rounds_leave_the_choice_as_it_is(run: Path, backbone: Backbone) -> None:
    keep(run, "frozen")
    job = small_run.job(backbone, replace(small_run.METHOD, rounds=3))
    rounds = list(train(run, job, small_run.MACHINE))
    assert len(rounds) == 4
    assert answering(run).rung == "frozen"
    keep(run, "last")
    assert answering(run).number == last_accepted(rounds).number


# ── names ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["majority", "tf-idf", "tfidf", "Majority"])
def test_a_yardstick_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match="is a yardstick, and no model of it is stored") as failed:
        rung_named(name)
    assert "--keep frozen" in failed.value.hint


@pytest.mark.parametrize(
    ("name", "near"), [("frosen", "frozen"), ("techer", "teacher"), ("self trained", None)]
)
def test_an_unknown_rung_is_refused_with_the_list_and_the_closest_name(
    name: str, near: str | None
) -> None:
    with pytest.raises(ConfigError, match=f"there is no rung `{name}` to keep") as failed:
        rung_named(name)
    hint = failed.value.hint
    assert hint.endswith("frozen, frozen-self-trained, teacher, last, or the number of a round")
    assert near is None or hint.startswith(f"did you mean `{near}`?")


@pytest.mark.parametrize("name", ["-1", "1.5", "", "01", "9" * 30])
def test_what_is_no_number_of_a_round_is_no_rung(name: str) -> None:
    with pytest.raises(ConfigError, match="there is no rung"):
        rung_named(name)


def test_a_rung_that_a_run_will_not_have_is_refused_before_training(backbone: Backbone) -> None:
    job = small_run.job(backbone)
    for rung in ("frozen", "frozen-self-trained", "teacher", "2", "last"):
        check_can_keep(rung, job)
    with pytest.raises(ConfigError, match="there is no round 3 to keep: the method has 2 rounds"):
        check_can_keep("3", job)
    with pytest.raises(ConfigError, match="the run itself is of the frozen encoder"):
        check_can_keep("frozen", replace(job, method=recipe("frozen")))


# ── from a stranger ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "content",
    [
        '{"format": 1, "rung": "../../elsewhere"}',
        '{"format": 1, "rung": "majority"}',
        '{"format": 1, "rung": 1}',
        '{"format": 1, "rung": "99"}',
        '{"format": 2, "rung": "teacher"}',
        '{"rung": "teacher"}',
        "[]",
        "teacher",
    ],
)
def test_a_choice_from_a_stranger_is_not_trusted(
    run: Path, backbone: Backbone, content: str
) -> None:
    (run / KEEP).write_text(content)
    with pytest.raises(RunError):
        load(run, backbone=backbone)


def test_a_choice_behind_a_link_is_not_read(run: Path, backbone: Backbone, tmp_path: Path) -> None:
    keep(run, "teacher")
    (run / KEEP).rename(tmp_path / "elsewhere.json")
    (run / KEEP).symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(RunError, match=r"keep\.json is not a plain file"):
        load(run, backbone=backbone)


def test_a_rung_behind_a_link_or_of_another_task_does_not_answer(
    run: Path, backbone: Backbone, tmp_path: Path
) -> None:
    keep(run, "frozen")
    path = run / "rungs/frozen/manifest.json"
    whole = path.read_text()
    facts = json.loads(whole)
    facts["task"]["labels"] = ["yes", "no"]
    path.write_text(json.dumps(facts))
    with pytest.raises(RunError, match="is a run of another task"):
        load(run, backbone=backbone)
    path.write_text(whole)
    load(run, backbone=backbone)
    (run / "rungs").rename(tmp_path / "elsewhere")
    (run / "rungs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="is not a plain folder"):
        load(run, backbone=backbone)
