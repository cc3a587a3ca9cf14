"""A method as data: to plain values and back, and what is refused."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from typing import Any

import pytest

from by_hand import METHOD, STUDENT, TEACHER
from selftrain.errors import ConfigError
from selftrain.method.losses import PHCE, EasyHard, Smooth, Soft, SupCon
from selftrain.method.recipes import BASES, recipe
from selftrain.method.selection import Certain, Reliable, Selection, Uniform
from selftrain.method.spec import Agreement, Method, Tune, from_plain, to_plain
from selftrain.method.upet import PRESETS
from selftrain.model.pel import Adapter, Probe


def toml(value: Any) -> str:
    """A plain value as TOML on one line, nested tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def document(plain: dict[str, Any]) -> str:
    return "".join(f"{key} = {toml(value)}\n" for key, value in plain.items())


# ── there and back ───────────────────────────────────────────────────────────────────────────

ODD = Method(
    "odd",
    teacher=replace(TEACHER, dropout=0.2, steps=None, epochs=3),
    student=(
        replace(STUDENT, reader="prompt", lm_head="tuned", contrast=None, loss=Soft()),
        replace(STUDENT, starts_from="teacher", loss=PHCE(2.5), tuning=Adapter(width=2, layers=1)),
    ),
    pool="all",
    select=Selection(
        score=Reliable(alpha=0.25, scale="rank"),
        count=None,
        shares=(0.25, 0.5),
        how="power",
        kappa=3.0,
        align=True,
    ),
)
RECIPES = [recipe(name, preset) for preset in PRESETS for name in BASES]
OTHERS = [
    METHOD,
    ODD,
    replace(METHOD, select=Selection(score=Certain(invert=True), per_class="none")),
    replace(METHOD, select=Selection(score=Uniform(), hard="bottom", label="vote")),
]
BOTH = pytest.mark.parametrize("method", RECIPES + OTHERS, ids=lambda m: m.name)


@pytest.mark.parametrize(
    "other", [{"tuning": Adapter(width=4)}, {"lm_head": "tuned"}, {"head": "dense"}]
)
def test_a_student_that_goes_on_from_its_teacher_is_made_like_it(other):
    """It is a copy of it: what the student says of its own making would count for nothing."""
    going = replace(TEACHER, starts_from="teacher", learning_rate=1e-4)
    assert replace(METHOD, student=(going,)).student[0].learning_rate == 1e-4
    with pytest.raises(ConfigError, match="expected a student that is built like its teacher"):
        replace(METHOD, student=(replace(going, **other),))


def test_there_are_recipes_to_go_there_and_back():
    assert len(RECIPES) >= 16


@BOTH
def test_every_method_survives_plain_values(method):
    plain = to_plain(method)
    assert from_plain(plain) == method
    assert from_plain(json.loads(json.dumps(plain))) == method


@BOTH
def test_every_method_survives_toml(method):
    assert from_plain(tomllib.loads(document(to_plain(method)))) == method


def test_a_short_file_is_enough():
    plain = tomllib.loads(
        """
        name = "mine"
        rounds = 2
        [teacher]
        epochs = 5
        [[student]]
        steps = 40
        loss = { kind = "phce", tau = 4 }
        contrast = { weight = 0.05 }
        [select]
        shares = [0.5]
        score = { kind = "reliable", alpha = 0.2 }
        """
    )
    assert from_plain(plain) == Method(
        "mine",
        Tune(steps=None, epochs=5),
        (Tune(steps=40, loss=PHCE(4), contrast=EasyHard(weight=0.05)),),
        rounds=2,
        select=Selection(score=Reliable(alpha=0.2), count=None, shares=(0.5,)),
    )


def test_a_method_knows_whether_it_prompts():
    assert ODD.prompts
    assert not METHOD.prompts
    assert replace(METHOD, teacher=replace(TEACHER, reader="prompt")).prompts


# ── what is refused ──────────────────────────────────────────────────────────────────────────


def changed(place: str, value: object) -> dict[str, Any]:
    """METHOD as plain values, with one entry set: ``changed("student.0.learning_rate", 0)``."""
    plain = to_plain(METHOD)
    spot: Any = plain
    *path, last = place.split(".")
    for name in path:
        spot = spot[int(name)] if name.isdigit() else spot[name]
    spot[last] = value
    return plain


@pytest.mark.parametrize("kind", ["full", "ptuning"])
def test_a_tuning_that_reaches_below_every_layer_refuses_layers(kind):
    plain = to_plain(recipe("upet-head-adapter"))
    plain["student"][0]["tuning"] = {"kind": kind, "layers": 2}
    with pytest.raises(ConfigError, match="full and ptuning change what every layer reads"):
        from_plain(plain)


@pytest.mark.parametrize(
    ("place", "meant"),
    [
        ("rnds", "rounds"),
        ("student.0.stepps", "steps"),
        ("student.0.rate", "learning_rate"),
        ("student.0.changes", "tuning"),
        ("teacher.reads", "reader"),
        ("passes_in", "dropout_layers"),
        ("student.0.contrast.lambda", None),
    ],
)
def test_an_unknown_entry_is_named_and_so_is_what_was_meant(place, meant):
    """Also where an entry has a name that it had before."""
    with pytest.raises(ConfigError, match=f"`{place}` is no entry of a method") as caught:
        from_plain(changed(place, 1))
    every = "selftrain methods --json shows every entry of every method"
    assert caught.value.hint == (f"did you mean `{meant}`? {every}" if meant else every)


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("rounds", -1, "rounds is -1"),
        ("rounds", 2.5, "`rounds` is 2.5"),
        ("rounds", "many", "`rounds` is 'many'"),
        ("pool", 1, "pool is 1; expected 2 or more, or `all`"),
        ("pool", "some", "`pool"),
        ("passes", 0, r"T \(passes\) is 0; expected 1 or more"),
        ("converged", 1.0, "converged is 1.0"),
        ("converged", -0.1, "converged is -0.1"),
        ("student", [], "student is"),
        ("student", 5, "`student` is 5"),
        ("student", {"steps": 5}, "`student` is"),
        ("teacher", 5, "`teacher` is 5"),
        ("select", 5, "`select` is 5"),
        ("select.count", 0, r"N_r \(count\) is 0"),
        ("select.kappa", -1, "kappa is -1"),
        ("select.how", "best", "`select.how` is 'best'"),
        ("select.score.alpha", 1.5, "alpha is 1.5; expected a number from 0 to 1"),
        ("select.score.kind", "lucky", "`select.score` is"),
        ("teacher.reader", "tail", "`teacher.reader` is 'tail'"),
        ("teacher.batch_size", 0, "batch_size is 0"),
        ("teacher.steps", 0, "steps or epochs is 0"),
        ("teacher.steps", -3, "steps or epochs is -3"),
        ("teacher.learning_rate", 0, "rate is 0"),
        ("teacher.learning_rate", float("nan"), "rate is nan"),
        ("teacher.head_learning_rate", 0, "head_learning_rate is 0"),
        ("teacher.weight_decay", -0.01, "decay is -0.01"),
        ("teacher.max_grad_norm", 0, "max_grad_norm is 0"),
        ("teacher.warmup", 1.5, "warmup is 1.5"),
        ("teacher.dropout", 1.0, "dropout is 1.0"),
        ("student.0.gold_share", 1.5, "gold_share is 1.5"),
        ("student.0.loss.tau", 1, "tau is 1.0; expected a number above 1"),
        ("student.0.contrast.weight", -0.1, r"lambda \(contrast weight\) is -0.1"),
        ("student.0.contrast.negatives", 0, r"N_n \(contrast negatives\) is 0"),
        ("student.0.contrast.temperature", 0, "temperature is 0"),
        ("student.0.tuning.width", 0, "adapter width is 0"),
        ("student.0.interpolation", 0, "interpolation is 0.0; expected a share above 0"),
        ("student.0.interpolation", 1.5, "interpolation is 1.5; expected a share above 0"),
    ],
)
def test_a_value_out_of_range_is_named(place, value, says):
    with pytest.raises(ConfigError, match=says):
        from_plain(changed(place, value))


def test_steps_and_epochs_exclude_each_other():
    for wrong in ({"steps": 5, "epochs": 5}, {"steps": None}):
        with pytest.raises(ConfigError, match="exactly one of them"):
            Tune(**wrong)


@pytest.mark.parametrize("wrong", [{"reader": "prompt"}, {"head": "dense"}])
def test_only_a_linear_head_can_start_from_regression(wrong):
    with pytest.raises(ConfigError, match="head_start is 'regression'"):
        Tune(head_start="regression", **wrong)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"reader": "prompt"}, "a linear head"),
        ({"head": "dense"}, "a linear head"),
        ({"contrast": EasyHard()}, "no contrast"),
        ({"smooth": Smooth()}, "no contrast"),
        ({"reweigh": Agreement()}, "no contrast"),
        ({"loss": PHCE()}, "loss is 'phce'; expected it to be left out"),
        ({"head_start": "regression"}, "head_start is 'regression'; expected it to be left out"),
        ({"head_learning_rate": 1e-3}, "head_learning_rate is 0.001; expected it to be left out"),
        ({"tuning": Probe()}, "a tuning of the encoder"),
        ({"batch_size": 2}, "4 or more"),
    ],
)
def test_what_a_contrast_of_labels_cannot_train_is_refused(wrong, says):
    with pytest.raises(ConfigError, match=says):
        Tune(supcon=SupCon(), **wrong)


def test_an_encoder_that_does_not_move_has_no_way_to_take_back():
    with pytest.raises(ConfigError, match="no interpolation"):
        Tune(tuning=Probe(), interpolation=0.5)


def test_a_method_without_rounds_needs_no_student():
    assert replace(METHOD, rounds=0, student=()).student == ()


def test_a_name_is_needed():
    plain = to_plain(METHOD)
    del plain["name"]
    with pytest.raises(ConfigError, match="`name`: field required"):
        from_plain(plain)
