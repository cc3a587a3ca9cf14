"""A space: which entries of a method a search tries, and over which values."""

from __future__ import annotations

import pytest

from selftrain.errors import ConfigError
from selftrain.experiments.space import changed, check_space, entries, paper_space, read_space
from selftrain.method.recipes import recipe
from small_sweep import ALPHA, BATCH, LENGTH, WIDTH

LAMBDA = {"student.contrast.weight": (0.001, 0.01, 0.05, 0.1, 0.5, 1)}


@pytest.mark.parametrize(
    ("name", "space"),
    [
        ("upet-head-adapter", BATCH | ALPHA | LAMBDA | {"student.tuning.width": WIDTH}),
        ("upet-head-prefix", BATCH | ALPHA | LAMBDA | {"student.tuning.length": LENGTH}),
        ("upet-prompt-ptuning", BATCH | ALPHA | LAMBDA | {"student.tuning.length": LENGTH}),
        ("upet-head-prefix-wo-contrast", BATCH | ALPHA | {"student.tuning.length": LENGTH}),
        ("upet-head-full-pel-teacher", BATCH | ALPHA | LAMBDA | {"teacher.tuning.width": WIDTH}),
        ("upet-head-full", BATCH | ALPHA | LAMBDA),
        ("list", BATCH | {"student.tuning.width": WIDTH}),
        ("ust", BATCH),
        ("head-ft", BATCH),
    ],
)
def test_table_8_is_searched_where_the_method_has_it(name, space):
    assert paper_space(recipe(name)) == space


def test_table_8_fits_the_default_method():
    method = recipe("upet-head-adapter")
    check_space(paper_space(method), method)


@pytest.mark.parametrize(
    "text",
    [
        '"select.score.alpha" = [0.2, 0.4]',
        "select.score.alpha = [0.2, 0.4]",
        "[select]\nscore.alpha = [0.2, 0.4, 0.2]",
    ],
)
def test_a_space_is_a_list_of_values_for_an_entry(tmp_path, text):
    (tmp_path / "space.toml").write_text(text)
    assert read_space(tmp_path / "space.toml") == {"select.score.alpha": (0.2, 0.4)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"select.score.alpha" = 0.2', "expected a list"),
        ('"select.score.alpha" = []', "expected a list"),
        ('"select.score.alpha" = [[0.2]]', "expected a list"),
        ('"student.learning_rate" = [inf]', "expected a list"),
        ("", "no entry"),
        ("alpha", "is not TOML"),
    ],
)
def test_what_is_no_space_is_named(tmp_path, text, problem):
    (tmp_path / "space.toml").write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_space(tmp_path / "space.toml")


@pytest.mark.parametrize(
    ("name", "space", "problem"),
    [
        ("upet-head-adapter", {"select.score.alfa": (1,)}, "unknown entry `select.score.alfa`"),
        ("upet-head-adapter", {"student.tuning.length": (4,)}, "`student.tuning.length`"),
        ("head-ft", {"select.score.alpha": (0.5,)}, "`select.score.alpha`"),
        ("head-st", {"student.contrast.weight": (0.5,)}, "`student.contrast.weight`"),
        ("list", {"student.reweigh.after": (0.5,)}, "`student.reweigh.after`"),
        ("upet-head-adapter", {"name": ("ust",)}, "unknown entry `name`"),
        ("upet-head-adapter", {"select.score.alpha": (0.5, 2)}, "= 2: alpha is 2"),
        ("upet-head-adapter", {"teacher.batch_size": (4, "big")}, "= 'big'"),
        (
            "upet-head-adapter",
            {"student.head": ("linear", "dense"), "student.gold_share": (0,)},
            "= 'dense': head_start",
        ),
        (
            "upet-head-prefix",
            {"student.steps": (5,), "student.epochs": (1,)},
            "`student.steps` = 5 and `student.epochs` = 1: steps and epochs",
        ),
    ],
)
def test_a_space_that_does_not_fit_the_method_is_named(name, space, problem):
    with pytest.raises(ConfigError) as error:
        check_space(space, recipe(name))
    assert problem in error.value.message


def test_an_entry_that_is_not_set_can_be_searched():
    method = recipe("upet-head-adapter")
    assert entries(method)["student.head_learning_rate"] is None
    assert changed(method, {"student.head_learning_rate": 0.1}).student[0].head_learning_rate == 0.1


def test_without_rounds_only_entries_of_the_teacher_and_its_tapt_vary() -> None:
    tables = {path.split(".")[0] for path in entries(recipe("tapt-head-ft"))}
    assert tables == {"teacher", "tapt"}
