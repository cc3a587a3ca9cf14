"""What may stand in one table, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cells import UPET, cell, rows, seeds
from selftrain.errors import DataError
from selftrain.experiments.results import Result
from selftrain.experiments.tables import KINDS, Choice, Sheet


def main(cells: list[Result], **choice: Any) -> Sheet:
    return KINDS["main"](cells, Choice(**choice))[0]


def test_cells_of_two_recipes_are_an_error_until_one_is_named() -> None:
    cells = [cell(UPET, 0.8, recipe="aaa1"), cell(UPET, 0.6, recipe="bbb2"), cell("ust", 0.5)]
    with pytest.raises(DataError, match=r"several recipes: aaa1 \(1: sst2\); bbb2") as raised:
        main(cells)
    assert raised.value.hint == "say which one to show: --recipe bbb2"
    found = rows(main(cells, recipes=("aaa",)))
    assert (found["UPET Head-Adapter"]["sst2"], found["UST"]["sst2"]) == ("80.0", "50.0")
    with pytest.raises(DataError, match="no cell of this table is of recipe `ccc`"):
        main(cells, recipes=("ccc",))
    with pytest.raises(DataError, match="several recipes"):
        main(cells, recipes=("aaa", "bbb"))


def test_tasks_of_two_recipes_are_not_averaged_either() -> None:
    with pytest.raises(DataError, match="several recipes"):
        main([cell(UPET, 0.8, recipe="a"), cell(UPET, 0.8, task="cb", recipe="b")])


def test_another_recipe_with_all_labels_or_in_another_table_is_no_conflict() -> None:
    cells = [cell(UPET, 0.8), cell(UPET, 0.9, shots="full", recipe="other")]
    cells += [cell("upet-head-full", 0.8, recipe="a"), cell("upet-head-full", 0.8, 2, recipe="b")]
    assert len(main(cells).rows) == 2


def test_a_recipe_is_compared_with_itself_over_shots() -> None:
    cells = [cell(UPET, 0.8), cell(UPET, 0.9, shots=32, recipe="other")]
    with pytest.raises(DataError, match="with 16 labels a class; other with 32 labels") as raised:
        KINDS["shots"](cells, Choice())
    assert raised.value.hint.startswith("compute")
    agnews = [replace(each, task="agnews") for each in cells]
    assert len(KINDS["nonbert"](agnews, Choice())) == 1  # where it does not meet itself


def test_cells_of_other_sizes_stand_apart_by_choice_and_in_the_way_of_nobody() -> None:
    small = [cell(name, 0.8, rows=1000, max_rows=1000) for name in (UPET, "majority")]
    large = [
        cell(name, 0.7, rows=1800, max_rows=2000, backbone="bert") for name in (UPET, "majority")
    ]
    for backbone, score in (("minilm", "80.0"), ("bert", "70.0")):
        (sheet,) = KINDS["main"]([*small, *large], Choice(backbone=backbone))
        assert {row["sst2"].split()[0] for row in rows(sheet).values()} == {score}
    assert rows(main([*small, *large], rows=2000))["majority class"]["sst2"] == "70.0"
    more = cell("majority", 0.7, 99, rows=1800, max_rows=2000, backbone="bert")
    (sheet,) = KINDS["main"]([*small, more], Choice(backbone="minilm"))
    assert rows(sheet)["majority class"]["cells"] == "1"
    bare = [cell(UPET, 0.8, rows=1800, max_rows=2000), *small, *large]
    (sheet, *_) = KINDS["main"](bare, Choice(backbone="minilm", rows=2000))
    assert rows(sheet)["majority class"]["sst2"] == "70.0"


def test_a_majority_class_is_lent_to_other_numbers_of_labels() -> None:
    cells = [*seeds("majority", *[0.35] * 4), *seeds(UPET, *[0.35] * 3, shots=32)]
    cells += [cell("majority", 0.9, 0, task="cb"), cell(UPET, 0.9, 0, task="cb")]
    sheet = main(cells, shots=32)
    assert sheet.head[2:4] == ("sst2", "average")  # and to no task or seed without a cell
    found = rows(sheet)
    assert found["majority class"]["cells"] == "3"
    assert found["majority class"]["sst2"] == "35.0 ± 0.0"
    assert "UPET Head-Adapter (not learnt)" in found  # not above, to the last bit


def test_a_recipe_of_other_seeds_is_no_conflict() -> None:
    cells = [cell(UPET, 0.8, 12, recipe="a"), cell(UPET, 0.6, 21, recipe="b")]
    assert rows(main(cells, seeds=(21,)))["UPET Head-Adapter"]["sst2"] == "60.0"


@pytest.mark.parametrize("kind", ["pel", "alpha", "ablation"])
def test_a_table_of_variants_whose_variants_are_all_left_out_is_refused(kind: str) -> None:
    """With seed 1 alone, nothing but UPET itself and the majority class is there."""
    others = ("upet-head-full", f"{UPET}-alpha-0.2-raw-topk", f"{UPET}-wo-phce")
    cells = [*(cell(name, 0.8, 2) for name in others), cell(UPET, 0.8, 1), cell("majority", 0.5, 1)]
    assert KINDS[kind](cells, Choice())
    with pytest.raises(DataError, match="no cell belongs in this table"):
        KINDS[kind](cells, Choice(seeds=(1,)))


def test_presets_are_never_mixed_and_references_have_none() -> None:
    cells = [
        cell("majority", 0.5, preset=""),
        cell(UPET, 0.8),
        cell("ust", 0.7, preset="paper"),
    ]
    with pytest.raises(DataError, match="presets laptop and paper") as raised:
        main(cells)
    assert raised.value.hint == "choose one: --preset laptop"
    sheet = main(cells, preset="paper")
    assert set(rows(sheet)) == {"majority class", "UST"}
    assert "preset paper" in sheet.title
    with pytest.raises(DataError, match="no cell is of the preset `gpu`"):
        main(cells, preset="gpu")


@pytest.mark.parametrize(
    ("cells", "choice", "problem", "hint"),
    [
        ([], Choice(), "no cell belongs in this table", "selftrain bench writes them"),
        (
            [cell(UPET, 0.8, scored_on="design")],
            Choice(),
            "no cell of this table was scored on test rows; 1 were on design rows",
            "--on design",
        ),
        (
            [cell(UPET, 0.8)],
            Choice(backbone="bert"),
            "no cell of this table has the backbone `bert`",
            "there are minilm",
        ),
        (
            [cell(UPET, 0.8, shots=64), cell(UPET, 0.8, shots=32)],
            Choice(),
            "no cell of this table has 16 labels a class",
            "there are 32 and 64: --shots 32",
        ),
        (
            [cell(UPET, 0.8, 12), cell(UPET, 0.8, 21)],
            Choice(seeds=(12, 42)),
            "no cell of this table has the seed 42",
            "--seeds 12,21",
        ),
        (
            [cell(UPET, 0.8)],
            Choice(compare=(UPET, "head-st")),
            "no cell of this table is of the method `head-st`",
            "there are upet-head-adapter",
        ),
        (
            [cell(UPET, 0.8, rows=2000, max_rows=2000), cell("ust", 0.8, rows=1000, max_rows=1000)],
            Choice(),
            "cells of sst2 were scored on 1000 and 2000 rows, and do not stand in one table",
            "choose one: --rows 1000",
        ),
        (
            [cell(UPET, 0.8, rows=2000, max_rows=2000)],
            Choice(rows=1000),
            "no cell of this table was scored on at most 1000 rows",
            "--rows 2000",
        ),
        (
            [cell(UPET, 0.8, data="one"), cell("ust", 0.8, data="two"), cell("cest", 0.8)],
            Choice(),
            "cells of sst2 are of 2 different files, and do not stand in one table",
            "compute some of them again, in another folder: -o FOLDER",
        ),
        (
            [cell(UPET, 0.8, weights="one"), cell("ust", 0.8, weights="two")],
            Choice(),
            "cells on minilm are of 2 different weights, and do not stand in one table",
            "compute some of them again, in another folder: -o FOLDER",
        ),
        (
            [cell(UPET, 0.8), cell("ust", 0.8, backbone="bert")],
            Choice(compare=(UPET, "ust")),
            "`upet-head-adapter` and `ust` have no cells of this table on the same backbone",
            "selftrain bench writes them",
        ),
    ],
)
def test_a_table_without_cells_says_which_there_are(
    cells: list[Result], choice: Choice, problem: str, hint: str
) -> None:
    with pytest.raises(DataError) as raised:
        KINDS["main"](cells, choice)
    assert (raised.value.message, raised.value.hint) == (problem, hint)


def test_one_cell_that_two_commands_asked_for_with_other_limits_counts_once() -> None:
    cells = [cell(UPET, 0.8, rows=872, max_rows=limit) for limit in (1000, 2000)]
    assert rows(main(cells))["UPET Head-Adapter"]["cells"] == "1"
