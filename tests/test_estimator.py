"""The scikit-learn face: its conventions, and labels that come back as they were given."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from estimators import LABELS, NEW, POOL, TEXTS, Make
from selftrain import SelfTrainingClassifier
from selftrain.errors import ConfigError, DataError
from selftrain.estimator import examples_of

# ── conventions ──────────────────────────────────────────────────────────────────────────────────


def test_a_clone_has_the_same_parameters_and_nothing_learnt(
    fitted: SelfTrainingClassifier,
) -> None:
    other = clone(fitted)
    assert other.get_params() == fitted.get_params()
    assert not hasattr(other, "model_")


def test_parameters_are_kept_as_they_were_given(make: Make) -> None:
    changes = {"passes": 3}
    model = make(changes=changes, words={"good": "great"})
    assert model.changes is changes
    assert model.set_params(seed=5, rounds=2) is model
    assert (model.get_params()["seed"], model.get_params()["rounds"]) == (5, 2)
    with pytest.raises(ValueError, match="Invalid parameter 'sed'"):
        model.set_params(sed=5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": -1},
        {"rounds": 1.5},
        {"preset": "desktop"},
        {"seed": "12"},
        {"threads": 0},
        {"device": "tpu"},
        {"verbose": "yes"},
        {"words": ["great"]},
    ],
)
def test_parameters_out_of_range_are_named_when_fit_is_called(
    make: Make, wrong: dict[str, Any]
) -> None:
    model = make(**wrong)  # as scikit-learn wants it: __init__ checks nothing
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of"):
        model.fit(TEXTS, LABELS, unlabelled=POOL)


def test_a_method_out_of_range_is_our_error(make: Make) -> None:
    with pytest.raises(ConfigError, match="there is no method `upet`"):
        make(method="upet").fit(TEXTS, LABELS, unlabelled=POOL)
    with pytest.raises(ConfigError, match=r"T \(passes\) is 0"):
        make(changes={"passes": 0}).fit(TEXTS, LABELS, unlabelled=POOL)


def test_asking_before_fitting_is_the_usual_error(make: Make, tmp_path: Path) -> None:
    model = make()
    for ask in (model.predict, model.predict_proba):
        with pytest.raises(NotFittedError):
            ask(NEW)
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_fit_returns_itself_and_fitting_again_starts_afresh(make: Make) -> None:
    model = make(rounds=0)
    assert model.fit(TEXTS, LABELS, unlabelled=POOL) is model
    first = model.predict_proba(NEW)
    assert np.array_equal(model.fit(TEXTS, LABELS, unlabelled=POOL).predict_proba(NEW), first)
    assert [round_.number for round_ in model.rounds_] == list(range(6))  # and its probe rounds


def test_probabilities_stand_in_the_order_of_the_classes(fitted: SelfTrainingClassifier) -> None:
    p = fitted.predict_proba(NEW)
    assert list(fitted.classes_) == ["bad", "good"]
    assert p.shape == (6, 2)
    assert p.sum(1) == pytest.approx(np.ones(6))
    assert list(fitted.predict(NEW)) == [fitted.classes_[row.argmax()] for row in p]
    assert fitted.predict_proba([]).shape == (0, 2)
    assert 0 <= fitted.score(NEW, ["good", "bad"] * 3) <= 1


def test_it_works_at_the_end_of_a_pipeline(make: Make) -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = Pipeline([("lower", lower), ("model", make(rounds=0))])
    pipeline.fit([text.upper() for text in TEXTS], LABELS, model__unlabelled=POOL)
    assert set(pipeline.predict(NEW)) <= {"good", "bad"}
    assert clone(pipeline).get_params()["model__rounds"] == 0


def test_its_tags_say_that_it_reads_strings(make: Make) -> None:
    tags = get_tags(make())
    assert tags.estimator_type == "classifier"
    assert tags.input_tags.string


# ── labels ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("none", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT])
def test_a_label_that_says_none_means_unlabelled(
    make: Make, fitted: SelfTrainingClassifier, none: object
) -> None:
    model = make().fit([*TEXTS, *POOL], [*LABELS, *[none] * len(POOL)])
    assert np.array_equal(model.predict_proba(NEW), fitted.predict_proba(NEW))


@pytest.mark.parametrize(
    ("names", "sorted_names"),
    [
        ({"good": 10, "bad": 2}, [2, 10]),  # as strings, "10" would come before "2"
        ({"good": True, "bad": False}, [False, True]),
        ({"good": 1.5, "bad": -1.0}, [-1.0, 1.5]),
        ({"good": np.float32(0.1), "bad": np.float32(0)}, [0.0, float(np.float32(0.1))]),
        ({"good": np.float16(0.7), "bad": np.float16(2)}, [float(np.float16(0.7)), 2.0]),
    ],
)
def test_labels_come_back_as_they_were_given(
    make: Make, names: dict[str, Any], sorted_names: list[Any], tmp_path: Path
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numbers are no reason to warn: they come back
        teacher = make(method="upet-head-adapter", rounds=0)
        model = teacher.fit(TEXTS, [names[label] for label in LABELS], unlabelled=POOL)
    assert model.classes_.tolist() == sorted_names
    answers = model.predict(NEW)
    assert answers.dtype == np.asarray([*names.values()]).dtype
    model.save(tmp_path / "model")
    loaded = SelfTrainingClassifier.load(tmp_path / "model", backbone=model.backbone)
    assert loaded.classes_.dtype == model.classes_.dtype
    assert np.array_equal(loaded.predict(NEW), answers)


@pytest.mark.parametrize("labels", [[("a", 1), ("b", 2)] * 4, [b"a", b"b"] * 4, [True, 2] * 4])
def test_labels_that_no_file_brings_back_are_refused_before_training(
    make: Make, labels: list[Any]
) -> None:
    model = make()
    with pytest.raises(DataError, match="label"):
        model.fit(TEXTS, labels, unlabelled=POOL)
    assert not hasattr(model, "model_")


@pytest.mark.parametrize("labels", [None, "good", 3])
def test_labels_that_are_no_list_are_an_error(make: Make, labels: Any) -> None:
    with pytest.raises(DataError, match="expected a list"):
        make().fit(TEXTS, labels, unlabelled=POOL)


def test_whole_numbers_beside_a_gap_are_floats_as_in_any_array(make: Make) -> None:
    numbers = [float(label == "good") for label in LABELS]
    y = np.array([*numbers, *[np.nan] * len(POOL)])
    model = make(rounds=0).fit([*TEXTS, *POOL], y)
    assert model.classes_.tolist() == [0.0, 1.0]
    assert model.model_.labels == ("0", "1")


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ([1, "1"] * 4, "cannot be sorted"),
        ([["good"], ["bad"]] * 4, "cannot be sorted"),
        (["a", " a"] * 4, "one class"),
        (["", "a"] * 4, "do not differ by name"),
        (["good"] * 8, "one class"),
        (LABELS[:-1], "8 texts have 7 labels"),
        ([None] * 8, "no class"),
    ],
)
def test_labels_that_cannot_be_told_apart_are_an_error(
    make: Make, labels: list[Any], problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        make().fit(TEXTS, labels, unlabelled=POOL)


# ── texts ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "kind",
    [tuple, iter, np.array, pd.Series, lambda rows: np.array(rows, dtype=object)[:, None]],
    ids=["tuple", "iterator", "array", "series", "column"],
)
def test_texts_may_come_in_any_kind_of_list(
    make: Make, fitted: SelfTrainingClassifier, kind: Callable[[list[str]], Any]
) -> None:
    labels = list(LABELS) if kind is iter else np.array(LABELS)
    model = make().fit(kind(TEXTS), labels, unlabelled=kind(POOL))
    assert np.array_equal(model.predict_proba(kind(NEW)), fitted.predict_proba(NEW))


def test_pairs_may_be_tuples_an_array_or_two_columns_of_a_frame(make: Make) -> None:
    def paired(texts: list[str]) -> list[tuple[str, str]]:
        return [(text, text[::-1]) for text in texts]

    model = make(rounds=0).fit(paired(TEXTS), LABELS, unlabelled=paired(POOL))
    assert model.model_.task.pair
    answers = model.predict_proba(paired(NEW))
    for kind in (np.array, pd.DataFrame):
        assert np.array_equal(model.predict_proba(kind(paired(NEW))), answers)
    with pytest.raises(DataError, match="trained on pairs of strings"):
        model.predict(NEW)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ("one string", "texts are one string"),
        (None, "texts are None; expected a list"),
        (3, "texts are 3; expected a list"),
        ([*TEXTS[:-1], 3], "text 8 is 3; expected a string"),
        ([*TEXTS[:-1], ("a", "b", "c")], "text 8 is "),
        ([*TEXTS[:-1], None], "text 8 is None"),
        ([*TEXTS[:-1], " "], "text 8 is empty"),
        ([*TEXTS[:-1], ("a", "b")], "some rows are pairs"),
        ([TEXTS[0]] * 8, "two labels"),
    ],
)
def test_texts_that_are_none_are_an_error(make: Make, texts: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        make().fit(texts, LABELS, unlabelled=POOL)


def test_without_a_pool_there_is_nothing_to_train_on_itself(make: Make) -> None:
    for pool in ({}, {"unlabelled": None}, {"unlabelled": []}):
        with pytest.raises(DataError, match="no unlabelled texts"):
            make().fit(TEXTS, LABELS, **pool)


def test_what_is_put_right_is_warned_of_and_kept(make: Make) -> None:
    model = make(method="upet-head-adapter", rounds=0)
    with pytest.warns(UserWarning, match="pool") as said:
        model.fit(TEXTS, LABELS, unlabelled=[*POOL, POOL[0], "", TEXTS[0]])
    assert model.notes_ == {
        "duplicate pool rows dropped": 1,
        "empty pool rows dropped": 1,
        "labelled or dev texts inside the pool removed": 1,
    }
    assert {str(each.message) for each in said} == {f"{k}: {n}" for k, n in model.notes_.items()}
    assert {Path(each.filename).name for each in said} == {Path(__file__).name}


def test_a_prompt_takes_a_template_and_a_word_for_each_label(make: Make) -> None:
    prompted = {"method": "upet-prompt-adapter", "template": "{text} It was {mask} ."}
    numbers = [int(label == "good") for label in LABELS]
    model = make(**prompted, words={0: "terrible", 1: "great"}, rounds=0)
    assert model.fit(TEXTS, numbers, unlabelled=POOL).model_.card.reader == "prompt"
    with pytest.raises(ConfigError, match="class `1` has no label word"):
        make(**prompted, words={0: "terrible"}).fit(TEXTS, numbers, unlabelled=POOL)


def test_verbose_says_a_line_a_round_on_stderr(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    make(rounds=0, verbose=True).fit(TEXTS, LABELS, unlabelled=POOL)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("teacher")


@pytest.mark.parametrize(("progress", "lines"), [(True, True), (False, False), (None, False)])
def test_progress_is_a_line_now_and_then_where_it_is_asked_for(
    make: Make,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    progress: bool | None,
    lines: bool,
) -> None:
    monkeypatch.setattr("selftrain.runs.watch.LINE_EVERY", 0.001)
    model = make(rounds=0, progress=progress).fit(TEXTS, LABELS, unlabelled=POOL)
    model.predict(NEW)
    said = capsys.readouterr()
    assert ("training: " in said.err) == lines
    assert said.out == ""


def test_a_template_for_a_head_is_warned_of(make: Make) -> None:
    model = make(rounds=0, template="{text} {mask}", words={"good": "great", "bad": "bad"})
    with pytest.warns(UserWarning, match="template and words are not used: method `supcon`"):
        model.fit(TEXTS, LABELS, unlabelled=POOL)


def test_half_a_character_is_no_text() -> None:
    with pytest.raises(DataError, match="text 2 holds half a character"):
        examples_of(["a film", ("yes", "\ud800")])


def test_other_writings_of_a_label_are_one_class_and_a_warning_counts_them(make: Make) -> None:
    labels = [f"{each}\u200b" if n == 0 else each for n, each in enumerate(LABELS)]
    with pytest.warns(UserWarning, match="coded accents alone: one class: 1"):
        model = make(rounds=0).fit(TEXTS, labels, unlabelled=POOL)
    assert model.classes_.tolist() == list(model.model_.labels) == ["bad", "good"]
