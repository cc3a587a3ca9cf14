"""A fitted classifier on disk: saved, loaded, and not trusted when it comes from elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimators import LABELS, NEW, POOL, QUICK, TEXTS, Make
from selftrain import SelfTrainingClassifier
from selftrain.errors import RunError, SelftrainError
from selftrain.runs.read import read_manifest


def test_a_saved_model_answers_the_same_after_reload(
    fitted: SelfTrainingClassifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "deep" / "model")
    loaded = SelfTrainingClassifier.load(str(tmp_path / "deep" / "model"), backbone=fitted.backbone)
    assert np.array_equal(loaded.predict_proba(NEW), fitted.predict_proba(NEW))
    assert list(loaded.predict(NEW)) == list(fitted.predict(NEW))
    assert loaded.get_params() == fitted.get_params()
    assert loaded.model_.temperature == fitted.model_.temperature != 1


def test_a_backbone_may_be_a_path_when_a_model_is_loaded(
    fitted: SelfTrainingClassifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model")
    loaded = SelfTrainingClassifier.load(tmp_path / "model", backbone=Path(fitted.backbone))
    assert np.array_equal(loaded.predict_proba(NEW), fitted.predict_proba(NEW))


def test_parameters_come_back_as_values_that_fit_takes(make: Make, tmp_path: Path) -> None:
    changes = {**QUICK, "passes": np.int64(2), "rounds": np.array(0)}
    model = make(seed=np.int64(5), changes=changes, words={1.0: "great"}, rounds=None)
    model.fit(TEXTS, LABELS, unlabelled=POOL)
    model.save(tmp_path / "model")
    loaded = SelfTrainingClassifier.load(tmp_path / "model", backbone=model.backbone)
    assert (loaded.seed, loaded.changes) == (5, {**changes, "passes": 2, "rounds": 0})
    assert loaded.words == {"1": "great"}
    again = loaded.set_params(words=None).fit(TEXTS, LABELS, unlabelled=POOL)
    assert np.array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


def test_a_parameter_that_no_file_holds_is_an_error_and_nothing_is_written(
    make: Make, fitted: SelfTrainingClassifier, tmp_path: Path
) -> None:
    odd = make(changes={"note": object()})
    odd.model_, odd.classes_ = fitted.model_, fitted.classes_
    with pytest.raises(RunError, match="no file brings back"):
        odd.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_is_not_written_over(
    fitted: SelfTrainingClassifier, tmp_path: Path
) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RunError, match="is not empty"):
        fitted.save(tmp_path)
    with pytest.raises(RunError, match="is a file; a saved model is a folder"):
        fitted.save(tmp_path / "thesis.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


NOT_LOCAL = {
    "an address": ("s3://bucket/model", "is an address"),
    "the address of a file": ("file:///model", "is an address"),
    "a name that is not UTF-8": (os.fsdecode(b"mod\xffel"), "is not UTF-8"),
    "a NUL": ("mod\0el", "has a NUL character"),
}


@pytest.mark.parametrize("name", NOT_LOCAL)
def test_a_place_that_not_every_library_can_write_is_refused(
    name: str, fitted: SelfTrainingClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place, problem = NOT_LOCAL[name]
    with pytest.raises(RunError, match=problem) as caught:
        fitted.save(place)
    assert caught.value.hint
    assert "\n" not in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_saved_model_a_pipe_and_a_link_to_itself_are_not_written_over(
    fitted: SelfTrainingClassifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, problem in (
        ("model", "is not empty: it holds 'estimator.json'"),
        ("pipe", "is a file; a saved model is a folder"),
        ("loop", "leads to itself|cannot write"),
    ):
        with pytest.raises(RunError, match=problem) as caught:
            fitted.save(tmp_path / name)
        assert caught.value.hint


def test_the_working_folder_is_not_replaced_under_who_works_in_it(
    fitted: SelfTrainingClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="is the working folder") as caught:
        fitted.save(".")
    assert caught.value.hint
    fitted.save("model/../other")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_saving_leaves_what_else_is_in_the_folder_as_it_was(
    fitted: SelfTrainingClassifier, tmp_path: Path
) -> None:
    (tmp_path / "model.tmp").mkdir()
    (tmp_path / "model.tmp" / "thesis.txt").write_text("mine")
    fitted.save(tmp_path / "model")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "model.tmp"]
    assert (tmp_path / "model.tmp" / "thesis.txt").read_text() == "mine"


def test_a_run_of_the_command_line_can_be_loaded(
    tmp_path: Path, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from command import selftrain, write_files

    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    line = (
        f"fit labelled.csv -u pool.csv -o run --config quick.toml --backbone {tiny_folder('bert')}"
    )
    assert selftrain(line).code == 0
    model = SelfTrainingClassifier.load("run", backbone=str(tiny_folder("bert")))
    assert list(model.classes_) == read_manifest("run").task["labels"]
    assert len(model.predict(NEW)) == 6


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ("spoilt", "cannot be read"),
        ("[]", "cannot be read"),
        ({"params": {"sed": 1}, "classes": ["bad", "good"]}, "unknown parameters"),
        ({"params": {}, "classes": ["bad", "worse"]}, "not those of the model"),
        ({"params": {}}, "cannot be read"),
        ({"params": {}, "classes": [[1], [2]]}, "no plain list"),
        ({"params": {}, "classes": ["bad", "good"], "type": "M8[D]"}, "have the type"),
        ({"params": {}, "classes": [999, 1], "type": "int8"}, "cannot be read"),
        ({"params": {}, "classes": ["bad", "good"], "temperature": 1e-320}, "its temperature is"),
        (" " * 1_000_001, "1,000,001 bytes; expected at most 1,000,000"),
        ("[" * 100_000, "cannot be read: maximum recursion"),
    ],
)
def test_facts_from_a_stranger_are_not_trusted(
    fitted: SelfTrainingClassifier, tmp_path: Path, facts: Any, problem: str
) -> None:
    fitted.save(tmp_path / "model")
    text = facts if isinstance(facts, str) else json.dumps(facts)
    (tmp_path / "model" / "estimator.json").write_text(text, encoding="utf-8")
    with pytest.raises(SelftrainError, match=problem):
        SelfTrainingClassifier.load(tmp_path / "model", backbone=fitted.backbone)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("linked", [True, False])
def test_facts_that_never_end_are_not_read(
    fitted: SelfTrainingClassifier, tmp_path: Path, linked: bool
) -> None:
    fitted.save(tmp_path / "model")
    path = tmp_path / "model" / "estimator.json"
    path.unlink()
    os.mkfifo(tmp_path / "pipe" if linked else path)
    if linked:
        path.symlink_to(tmp_path / "pipe")
    with pytest.raises(RunError, match="is not a plain file"):
        SelfTrainingClassifier.load(tmp_path / "model", backbone=fitted.backbone)


def test_facts_behind_a_link_are_read_beside_a_model_and_not_in_a_run(
    fitted: SelfTrainingClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub's cache is made of links; a run folder holds none."""
    fitted.save(tmp_path / "model")
    path = tmp_path / "model" / "estimator.json"
    path.rename(tmp_path / "blob")
    path.symlink_to(tmp_path / "blob")
    loaded = SelfTrainingClassifier.load(tmp_path / "model", backbone=fitted.backbone)
    assert loaded.rounds == fitted.rounds
    (tmp_path / "model" / "manifest.json").touch()
    monkeypatch.setattr("selftrain.runs.read.load", lambda *_, **__: fitted.model_)
    with pytest.raises(RunError, match="is not a plain file"):
        SelfTrainingClassifier.load(tmp_path / "model", backbone=fitted.backbone)


@pytest.mark.parametrize(("named", "kept"), [("minilm", True), ("evil/hub", False), ([1], False)])
def test_a_backbone_a_stranger_names_is_not_what_the_next_fit_takes(
    fitted: SelfTrainingClassifier, tmp_path: Path, named: Any, kept: bool
) -> None:
    fitted.save(tmp_path / "model")
    facts = {"params": {"backbone": named}, "classes": ["bad", "good"]}
    (tmp_path / "model" / "estimator.json").write_text(json.dumps(facts), encoding="utf-8")
    loaded = SelfTrainingClassifier.load(tmp_path / "model", backbone=fitted.backbone)
    assert loaded.backbone == (named if kept else fitted.backbone)


def test_a_model_without_facts_has_string_labels(
    fitted: SelfTrainingClassifier, tmp_path: Path
) -> None:
    fitted.model_.save(tmp_path / "model")
    loaded = SelfTrainingClassifier.load(tmp_path / "model", backbone=fitted.backbone)
    assert list(loaded.predict(NEW)) == list(fitted.predict(NEW))
