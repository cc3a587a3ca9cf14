"""Tables from cells: what is averaged, what is marked, what is missing, and what is refused."""

from __future__ import annotations

import csv as reading
import gzip
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from selftrain import results
from selftrain.cli.tables import format_of, table
from selftrain.errors import ConfigError, DataError, SelftrainError
from selftrain.published import figures
from selftrain.results import Result
from selftrain.tables import KINDS, Choice, Sheet, Sweep, corpora, read_sweep, search
from selftrain.tables.names import MAIN, is_main, shown
from selftrain.tables.sheet import csv, latex, markdown

UPET = "upet-head-adapter"


def cell(method: str, accuracy: float, seed: int = 12, task: str = "sst2", **more: Any) -> Result:
    known = {
        "recipe": f"hash of {method}",
        "preset": "laptop",
        "backbone": "minilm",
        "shots": 16,
        "on": "test",
        "rows": 1000,
        "macro_f1": accuracy / 2,
        "f1": {"equivalent": accuracy / 4, "not_equivalent": 0.1},
        "calibration_error": 0.1,
        "tuned": (22_713_986, 600_000),
        "seconds": 40.0,
        "threads": 1,
    }
    if method == "majority":
        known |= {"tuned": (), "seconds": None}
    return Result(task=task, method=method, accuracy=accuracy, seed=seed, **(known | more))


def seeds(method: str, *accuracies: float, **more: Any) -> list[Result]:
    return [cell(method, each, seed, **more) for seed, each in enumerate(accuracies)]


def rows(sheet: Sheet) -> dict[str, dict[str, str]]:
    """Cells by row and column; a row goes by its first cell."""
    return {row[0]: dict(zip(sheet.head, row, strict=True)) for row in sheet.rows}


def main(cells: list[Result], **choice: Any) -> Sheet:
    return KINDS["main"](cells, Choice(**choice))[0]


# ── the main result ──────────────────────────────────────────────────────────────────────────


def test_a_cell_is_mean_and_sd_over_seeds_in_percent() -> None:
    """80 and 82: mean 81, sd sqrt(2) = 1.4."""
    found = rows(main(seeds("head-ft", 0.80, 0.82)))["Head FT"]
    assert found["sst2"] == "81.0 ± 1.4"
    assert (found["tunable"], found["seconds"], found["cells"]) == ("0.6M", "40", "2")


def test_fewer_seeds_than_the_most_in_the_table_are_said() -> None:
    sheet = main([*seeds("head-ft", 0.7, 0.7, 0.7), *seeds(UPET, 0.80, 0.82)])
    assert rows(sheet)["UPET Head-Adapter"]["sst2"] == "81.0 ± 1.4 (2 of 3)"
    assert rows(sheet)["Head FT"]["sst2"] == "70.0 ± 0.0"


def test_a_missing_cell_is_shown_as_missing_and_leaves_no_average() -> None:
    sheet = main(
        [*seeds("head-ft", 0.7), *seeds("head-ft", 0.5, task="cb"), *seeds(UPET, 0.8, task="cb")]
    )
    assert sheet.head == ("method", "tunable", "sst2", "cb", "average", "seconds", "cells")
    assert rows(sheet)["Head FT"]["average"] == "60.0"
    assert rows(sheet)["UPET Head-Adapter"]["sst2"] == "–"
    assert rows(sheet)["UPET Head-Adapter"]["average"] == "–"


def test_an_average_with_seeds_missing_says_how_many_cells_it_has() -> None:
    sheet = main([*seeds("head-ft", 0.7, 0.7), *seeds("head-ft", 0.5, task="cb")])
    assert rows(sheet)["Head FT"]["average"] == "60.0 (3 of 4 cells)"


def test_methods_stand_in_the_papers_order_whatever_the_order_of_the_file() -> None:
    """References, then the full data, then the few labels; what the paper has not comes last."""
    methods = [method for method in MAIN if method != "majority"]
    cells = [cell(method, 0.8) for method in ("something-new", *reversed(methods))]
    cells += [cell("head-ft", 0.9, shots="full")]
    expected = [shown(method) for method in methods]
    expected[2:2] = ["Head FT, full data"]
    assert [row[0] for row in main(cells).rows] == [*expected, "something-new"]


def test_tasks_stand_in_the_papers_order_and_others_after_them() -> None:
    sheet = main([cell("ust", 0.8, task=task) for task in ("zoo", "agnews", "sst2", "mnli")])
    assert sheet.head[2:6] == ("sst2", "mnli", "agnews", "zoo")


def test_methods_and_tasks_without_any_cell_are_named_below() -> None:
    notes = main([cell("ust", 0.8)]).notes
    absent = next(note for note in notes if note.startswith("No cells of"))
    assert "LiST" in absent
    assert "UST (hard)" in absent
    assert "No cells on: mnli, qnli, mrpc, rte, cb, agnews." in notes


def test_a_reconstructed_baseline_says_so_in_its_name() -> None:
    sheet = main([cell("cest", 0.8)])
    assert "CEST (reconstruction)" in rows(sheet)
    assert any("rebuilt" in note for note in sheet.notes)


def test_what_is_not_above_the_majority_class_is_marked_by_task_and_by_row() -> None:
    sheet = main(
        [
            *seeds("majority", 0.5, 0.5),
            *seeds("majority", 0.7, 0.7, task="mrpc"),
            *seeds("head-ft", 0.8, 0.8),
            *seeds("head-ft", 0.6, 0.7, task="mrpc"),
            *seeds(UPET, 0.5, 0.5),
        ]
    )
    found = rows(sheet)
    assert found["Head FT"]["sst2"] == "80.0 ± 0.0"
    assert found["Head FT"]["mrpc"] == "65.0 ± 7.1 (not learnt)"
    assert found["UPET Head-Adapter (not learnt)"]["sst2"] == "50.0 ± 0.0 (not learnt)"
    assert found["majority class"]["mrpc"] == "70.0 ± 0.0"
    assert any(note.startswith("Not learnt") for note in sheet.notes)


def test_without_a_majority_row_nothing_is_marked() -> None:
    assert "Head FT" in rows(main([cell("head-ft", 0.1)]))


def test_backbones_are_never_averaged_together_and_share_the_majority_row() -> None:
    cells = [
        cell("majority", 0.5, backbone="none"),
        cell("head-ft", 0.8),
        cell("head-ft", 0.6, backbone="bert"),
    ]
    sheets = KINDS["main"](cells, Choice())
    assert ["bert" in sheets[0].title, "minilm" in sheets[1].title] == [True, True]
    assert [rows(sheet)["Head FT"]["sst2"] for sheet in sheets] == ["60.0", "80.0"]
    assert [rows(sheet)["majority class"]["sst2"] for sheet in sheets] == ["50.0", "50.0"]
    (only,) = KINDS["main"](cells, Choice(backbone="bert"))
    assert set(rows(only)) == {"majority class", "Head FT"}


def test_other_shots_ablations_and_alphas_stay_out_of_the_main_table() -> None:
    other = [f"{UPET}-wo-phce", f"{UPET}-alpha-0.2-rank-topk", "upet-head-full"]
    other += [f"{UPET}-pel-teacher", "upet-head-full-pel-teacher"]
    other += [f"{UPET}-pel-teacher-wo-phce"]
    assert not any(map(is_main, other))
    cells = [cell(UPET, 0.8), cell(UPET, 0.9, shots=32), *(cell(name, 0.1) for name in other)]
    assert [row[:3] for row in main(cells).rows] == [("UPET Head-Adapter", "0.6M", "80.0")]


def test_the_title_names_metric_rows_backbone_preset_and_shots() -> None:
    assert main([cell(UPET, 0.8, on="design")], on="design").title == (
        "Main result: accuracy on design rows, minilm, preset laptop, 16 labels a class"
    )


def test_f1_is_of_the_class_the_task_names_and_missing_where_it_names_none() -> None:
    cells = [cell("ust", 0.8, task=task) for task in ("sst2", "mrpc", "cb")]
    found = rows(main(cells, metric="f1"))["UST"]
    assert (found["sst2"], found["mrpc"], found["cb"]) == ("–", "20.0", "40.0")
    assert rows(main(cells, metric="macro_f1"))["UST"]["sst2"] == "40.0"
    with pytest.raises(DataError, match="no F1 of `equivalent`"):
        main([cell("ust", 0.8, task="mrpc", f1={"yes": 0.1})], metric="f1")


def test_notes_say_what_is_not_alike() -> None:
    cells = [
        cell("ust", 0.8, by_round=(0.7, 0.8), version="0.1", also_in_train=3),
        cell(UPET, 0.8, by_round=(0.7, 0.8, 0.8), version="0.2", rows=872, threads=2),
    ]
    notes = main(cells).notes
    assert "Rounds at most: 1 (UST); 2 (UPET Head-Adapter)." in notes
    assert "Cells of sst2 were scored on 1000 and 872 rows: not the same test." in notes
    assert "Of the scored rows of sst2, up to 3 are also labelled or in the pool." in notes
    assert "Cells were written by versions 0.1 and 0.2." in notes
    assert "Runs had 1 and 2 threads: their seconds do not compare." in notes


def test_heads_of_different_tasks_make_a_range_of_parameters() -> None:
    cells = [cell("ust", 0.8, tuned=(9, 770)), cell("ust", 0.8, task="cb", tuned=(9, 1155))]
    assert rows(main(cells))["UST"]["tunable"] == "770–1155"


def test_the_papers_figures_stand_below_ours() -> None:
    cells = [cell("ust", 0.8, task=task) for task in ("sst2", "agnews")]
    ours, theirs = main(cells, paper=True).rows
    assert ours[0] == "UST"
    assert theirs == ("as published", "355M", "84.0 ± 4.0", "89.3 ± 3.5", "86.7", "–", "–")
    assert "The paper's averages here are over the tasks shown." in main(cells, paper=True).notes


def test_a_printed_average_is_shown_as_printed_where_all_seven_tasks_are() -> None:
    cells = [cell("upet-head-prefix", 0.8, task=task) for task in figures().tasks]
    sheet = main(cells, paper=True)
    assert rows(sheet)["as published"]["average"] == "74.6"
    assert any("mean of its row is 75.0" in note for note in sheet.notes)


# ── what may stand together ──────────────────────────────────────────────────────────────────


def test_cells_of_two_recipes_are_an_error_until_one_is_named() -> None:
    cells = [cell(UPET, 0.8, recipe="aaa1"), cell(UPET, 0.6, recipe="bbb2"), cell("ust", 0.5)]
    with pytest.raises(DataError, match=r"several recipes: aaa1 \(1: sst2\); bbb2") as raised:
        main(cells)
    assert raised.value.hint == "say which is meant: --recipe bbb2"
    found = rows(main(cells, recipes=("aaa",)))
    assert (found["UPET Head-Adapter"]["sst2"], found["UST"]["sst2"]) == ("80.0", "50.0")
    with pytest.raises(DataError, match="no cell of this table is of recipe `ccc`"):
        main(cells, recipes=("ccc",))
    with pytest.raises(DataError, match="several recipes"):
        main(cells, recipes=("aaa", "bbb"))


def test_tasks_of_two_recipes_are_not_averaged_either() -> None:
    with pytest.raises(DataError, match="several recipes"):
        main([cell(UPET, 0.8, recipe="a"), cell(UPET, 0.8, task="cb", recipe="b")])


def test_another_recipe_with_other_shots_or_in_another_table_is_no_conflict() -> None:
    cells = [cell(UPET, 0.8), cell(UPET, 0.9, shots=32, recipe="other")]
    cells += [cell("upet-head-full", 0.8, recipe="a"), cell("upet-head-full", 0.8, 2, recipe="b")]
    assert len(main(cells).rows) == 1


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
            [cell(UPET, 0.8, on="design")],
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
    ],
)
def test_a_table_without_cells_says_which_there_are(
    cells: list[Result], choice: Choice, problem: str, hint: str
) -> None:
    with pytest.raises(DataError) as raised:
        KINDS["main"](cells, choice)
    assert (raised.value.message, raised.value.hint) == (problem, hint)


# ── compared ─────────────────────────────────────────────────────────────────────────────────


def compared(cells: list[Result], kind: str = "main") -> dict[tuple[str, str], dict[str, str]]:
    sheet = KINDS[kind](cells, Choice())[-1]
    assert sheet.title == "Compared"
    return {(row[0], row[1]): dict(zip(sheet.head, row, strict=True)) for row in sheet.rows}


def test_pairs_are_the_tasks_and_seeds_that_both_methods_have() -> None:
    """Seeds 0 and 1 of sst2 alone: +10 and -4 points; seed 2 and cb have no partner."""
    cells = [*seeds(UPET, 0.80, 0.66, 0.99), *seeds("head-ft", 0.70, 0.70)]
    cells += seeds(UPET, 0.9, task="cb")
    found = compared(cells)["UPET Head-Adapter", "Head FT"]
    assert (found["points"], found["pairs"], found["wins"]) == ("+3.0", "2", "1")
    assert found["p"] == "fewer than 6 pairs"


def test_six_pairs_have_a_p_value_corrected_for_the_number_of_comparisons() -> None:
    """All six agree: 2/64 = .031; two such comparisons: .0625 each."""
    six = [0.81, 0.82, 0.83, 0.84, 0.85, 0.86]
    one = compared([*seeds(UPET, *six), *seeds("head-ft", *[0.7] * 6)])
    assert one["UPET Head-Adapter", "Head FT"]["p"] == "0.031"
    two = compared([*seeds(UPET, *six), *seeds("head-ft", *[0.7] * 6), *seeds("ust", *[0.6] * 6)])
    assert {row["p"] for row in two.values()} == {"0.062"}


def test_comparisons_that_cannot_be_significant_say_so() -> None:
    six = [*seeds(UPET, *[0.8] * 6), *seeds("head-ft", *[0.7] * 6), *seeds("ust", *[0.6] * 6)]
    told = "So many comparisons of so few pairs: no p can fall below 0.06."
    assert told in KINDS["main"](six, Choice())[-1].notes
    assert told not in KINDS["main"](six[:12], Choice())[-1].notes


def test_a_comparison_without_p_is_not_counted_in_the_correction() -> None:
    six = [0.81, 0.82, 0.83, 0.84, 0.85, 0.86]
    found = compared([*seeds(UPET, *six), *seeds("head-ft", *[0.7] * 6), *seeds("ust", 0.6)])
    assert [row["p"] for row in found.values()] == ["0.031", "fewer than 6 pairs"]


def test_upet_meets_the_baselines_that_read_alike_on_the_same_backbone() -> None:
    cells = [cell(method, 0.8) for method in MAIN if method != "majority"]
    cells += [cell("list", 0.8, backbone="bert")]
    found = set(compared(cells))
    assert ("UPET Head-Adapter", "CEST (reconstruction)") in found
    assert ("UPET Prompt-Prefix", "LiST") in found
    assert ("UPET Head-Adapter", "LiST") not in found
    assert len(found) == 3 * 5 + 3 * 3


def test_a_method_that_did_not_learn_is_marked_where_it_is_compared() -> None:
    cells = [cell("majority", 0.9), cell(UPET, 0.8), cell("head-ft", 0.7)]
    assert list(compared(cells)) == [("UPET Head-Adapter (not learnt)", "Head FT")]


def test_no_difference_has_no_sign_of_a_loss() -> None:
    found = compared([cell(UPET, 0.80), cell("head-ft", 0.80002)])
    assert found["UPET Head-Adapter", "Head FT"]["points"] == "+0.0"


def test_without_two_methods_to_compare_there_is_no_such_sheet() -> None:
    assert len(KINDS["main"]([cell(UPET, 0.8)], Choice())) == 1


# ── the other tables ─────────────────────────────────────────────────────────────────────────


def test_pel_has_all_four_choices_and_says_what_both_sides_tune() -> None:
    cells = [
        cell(UPET, 0.8, tuned=(22_000_000, 600_000)),
        cell("upet-head-full", 0.9, tuned=(22_000_000, 22_000_000)),
    ]
    sheet, versus = KINDS["pel"](cells, Choice(paper=True))
    assert sheet.head[:4] == ("reading", "teacher", "student", "teacher + student")
    assert [row[1:5] for row in sheet.rows if row[0] == "head"] == [
        ("full", "full", "22.0M + 22.0M", "90.0"),
        ("full", "adapter", "22.0M + 0.6M", "80.0"),
        ("adapter", "full", "–", "–"),
        ("adapter", "adapter", "–", "–"),
    ]
    assert ("as published", "", "", "355M + 14M", "–", "76.0", "4.1 hours", "–") in sheet.rows
    assert versus.rows[0][:2] == ("UPET Head-Adapter", "UPET Head-Full")


def test_pel_is_no_table_of_the_papers_own_choice_alone() -> None:
    """A reading, or a backbone, with a full teacher and an adapter student only is left out."""
    with pytest.raises(DataError, match="no cell belongs"):
        KINDS["pel"]([cell(UPET, 0.8), cell("majority", 0.5)], Choice())
    cells = [cell(UPET, 0.8), cell("upet-prompt-full", 0.8), cell(UPET, 0.8, backbone="bert")]
    (sheet,) = KINDS["pel"](cells, Choice())
    assert {row[0] for row in sheet.rows} == {"prompt"}


def test_shots_stand_across_and_methods_with_one_number_are_named_below() -> None:
    cells = [
        *(cell("upet-prompt-adapter", 0.8 + k / 1000, shots=k) for k in (16, 32)),
        cell("upet-prompt-adapter", 0.7, task="cb"),
        cell("list", 0.8, shots=64),
    ]
    sheet = KINDS["shots"](cells, Choice(paper=True))[0]
    assert sheet.head == ("method", "task", "16 a class", "32 a class", "64 a class", "cells")
    name = "UPET Prompt-Adapter"
    assert sheet.rows == (
        (name, "sst2", "81.6", "83.2", "–", "2"),
        ("as published", "sst2", "91.9", "93.0", "93.6", "–"),
        (name, "cb", "70.0", "–", "–", "1"),
        ("as published", "cb", "80.4", "84.3", "86.2", "–"),
        (name, "average", "75.8", "–", "–", "3"),
        ("as published", "average of seven", "77.3", "80.0", "81.9", "–"),
    )
    assert "With one number of labels only: LiST." in sheet.notes


def test_shots_need_two_numbers_of_labels() -> None:
    with pytest.raises(DataError, match="two numbers of labels"):
        KINDS["shots"]([cell(UPET, 0.8)], Choice())


def test_alpha_stands_down_and_scale_and_draw_across() -> None:
    cells = [
        cell(f"{UPET}-wo-res-all", 0.75),
        cell(f"{UPET}-alpha-0-raw-sample", 0.77),
        cell(f"{UPET}-alpha-0.2-raw-sample", 0.78),
        cell(f"{UPET}-alpha-0.2-rank-topk", 0.79),
        cell(f"{UPET}-alpha-1-rank-topk", 0.74),
    ]
    sheet, versus = KINDS["alpha"](cells, Choice(paper=True))
    assert sheet.head == ("alpha", "rank, topk", "raw, sample", "as published", "cells")
    assert sheet.rows == (
        ("None", "75.0", "75.0", "76.0", "1"),
        ("0", "–", "77.0", "77.2", "1"),
        ("0.2", "79.0", "78.0", "77.9", "2"),
        ("1", "74.0", "–", "76.8", "1"),
    )
    assert any("caption" in note for note in sheet.notes)
    assert len(versus.rows) == 4


def test_alpha_averages_over_its_own_tasks() -> None:
    cells = [
        cell(f"{UPET}-wo-res-all", 0.1, task="agnews"),
        *seeds(f"{UPET}-alpha-0.5-raw-topk", 0.8, 0.8),
        *seeds(f"{UPET}-alpha-0.5-raw-topk", 0.6, task="cb"),
        *seeds(f"{UPET}-alpha-0.50-raw-topk", 0.6),
    ]
    sheet = KINDS["alpha"](cells, Choice())[0]
    assert sheet.rows == (
        ("None", "–", "0"),
        ("0.5", "70.0 (3 of 4 cells)", "3"),
        ("0.50", "–", "1"),
    )
    assert sheet.notes[0] == "Averages over sst2, cb."


def test_an_ablation_shows_every_part_on_the_tasks_where_parts_were_left_out() -> None:
    name = "upet-prompt-ptuning"
    cells = [
        *seeds(name, *[0.8] * 6),
        *seeds(name, *[0.9] * 9, task="cb"),
        *seeds(f"{name}-wo-phce", 0.70, 0.71, 0.72, 0.73, 0.74, 0.75),
        *seeds("prompt-st", 0.6),
    ]
    sheet, versus = KINDS["ablation"](cells, Choice(paper=True))
    found = rows(sheet)
    assert "cb" not in sheet.head
    assert found["UPET Prompt-Ptuning"]["sst2"] == "80.0 ± 0.0"
    assert found["Prompt ST"]["sst2"] == "60.0 (1 of 6)"
    assert found["w/o certainty"]["sst2"] == "–"
    assert found["w/o certainty"]["cells"] == "0"
    assert ("as published", "–", "91.3", "91.3", "–", "–") in sheet.rows
    assert versus.rows[0][1:] == (
        "UPET Prompt-Ptuning w/o PHCE",
        *("minilm", "16", "+7.5", "6", "6", "0.031"),
    )


def test_agnews_stands_by_labels_in_all_beside_systems_without_bert() -> None:
    """16 a class of four classes are 64 labels, as in the paper's table."""
    cells = [cell(UPET, 0.88, task="agnews"), cell(UPET, 0.9, task="agnews", shots=64)]
    cells += [cell("ust", 0.88, task="agnews"), cell(UPET, 0.1)]
    (sheet,) = KINDS["nonbert"](cells, Choice())
    assert sheet.rows[0] == ("variational pre-training", "published", "200", "83.9", "–")
    assert sheet.rows[-2:] == (
        ("UPET Head-Adapter", "minilm", "64", "88.0", "1"),
        ("UPET Head-Adapter", "minilm", "256", "90.0", "1"),
    )
    with pytest.raises(ConfigError, match="accuracies"):
        KINDS["nonbert"](cells, Choice(metric="f1"))


def test_speed_is_a_multiple_of_full_self_training_on_shared_runs() -> None:
    """On seed 12: 30 of 60 seconds; the run with seed 1 has no partner."""
    cells = [
        cell("head-st", 0.8, seconds=60.0),
        cell(UPET, 0.8, seconds=30.0),
        cell(UPET, 0.8, 1, seconds=90.0),
        cell("head-ft", 0.8, seconds=6.0, tuned=(22_000_000,)),
        cell("majority", 0.5),
        cell("list", 0.5, seconds=9.0),
        cell(f"{UPET}-wo-phce", 0.5),
    ]
    (sheet,) = KINDS["speed"](cells, Choice())
    found = rows(sheet)
    assert found["UPET Head-Adapter"]["sst2"] == "60"
    assert found["UPET Head-Adapter"]["of full self-training"] == "0.50 ×"
    assert found["Head FT"]["teacher + student"] == "22.0M"
    assert found["LiST"]["of full self-training"] == "–"
    assert "majority class" not in found
    assert len(found) == 4
    assert "1 ablations and alphas that were timed are left out." in sheet.notes
    assert "a machine that also did other work" in sheet.notes[0]


def test_data_counts_lines_beside_the_papers(tmp_path: Path) -> None:
    lines = [{"text_a": "a b", "text_b": "c", "label": label} for label in ("yes", "no", "yes")]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    for name in ("rte", "mine"):
        (tmp_path / name).mkdir()
    with gzip.open(tmp_path / "rte" / "train.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(text)
    (tmp_path / "mine" / "test.jsonl").write_text(text, encoding="utf-8")
    (tmp_path / "README.md").write_text("no task", encoding="utf-8")
    sheet = corpora(tmp_path)
    found = rows(sheet)
    assert list(found["rte"].values()) == ["rte", "2", "3", "–", "3", "2", "2,490", "277"]
    assert list(found["mine"].values()) == ["mine", "–", "–", "3", "–", "–", "–", "–"]
    assert found["mnli"]["train, paper"] == "392,702"
    assert sheet.notes[0] == "Not in the folder: sst2, mrpc, mnli, qnli, cb, agnews."


def test_a_folder_without_tasks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no folder with a train"):
        corpora(tmp_path)
    with pytest.raises(DataError, match="cannot read the folder"):
        corpora(tmp_path / "nowhere")


def test_grid_is_the_papers_alone_without_a_sweep() -> None:
    sheet = search()
    assert sheet.head == ("value", "paper")
    assert ("alpha", "0.1, 0.3, 0.5, 0.7, 0.9") in sheet.rows


def test_grid_puts_a_sweep_beside_the_paper_and_drops_none_of_its_names() -> None:
    sweep = Sweep(
        space={"select.score.alpha": [0.2, 0.4], "student.rate": [1e-3, 5e-3]},
        best={"select.score.alpha": 0.4, "tau": 4},
        trials=12,
    )
    sheet = search(sweep)
    found = rows(sheet)
    assert list(found["alpha"].values())[2:] == ["select.score.alpha", "0.2, 0.4", "0.4"]
    assert list(found["student.rate"].values())[1:] == ["–", "student.rate", "0.001, 0.005", "–"]
    assert list(found["tau"].values())[1:] == ["–", "tau", "–", "4"]
    assert found["seeds"]["searched"] == "–"
    assert "The sweep tried 12 points." in sheet.notes


def test_a_sweeps_report_is_read_and_a_strange_file_refused(tmp_path: Path) -> None:
    path = tmp_path / "sweep.json"
    path.write_text('{"space": {"alpha": [0.2]}, "best": {}, "trials": 3, "more": 1}', "utf-8")
    assert read_sweep(path) == Sweep({"alpha": [0.2]}, {}, 3)
    path.write_text('{"space": 7}', "utf-8")
    with pytest.raises(DataError, match="space: "):
        read_sweep(path)
    with pytest.raises(DataError, match="cannot read"):
        read_sweep(tmp_path / "nowhere")


# ── formats ──────────────────────────────────────────────────────────────────────────────────

ODD = Sheet(
    "50 % & more_or_less",
    ("name", "a|b"),
    (("[x] \\ <1M #1", "81.0 ± 1.4"), ("=1+1", "-0.4")),
    ("a note\nin {two} lines",),
)


def test_markdown_shows_what_it_would_obey() -> None:
    assert markdown([ODD]).splitlines() == [
        "### 50 % & more_or_less",
        "",
        r"| name | a\|b |",
        "| --- | ---: |",
        r"| \[x\] \\ \<1M #1 | 81.0 ± 1.4 |",
        "| =1+1 | -0.4 |",
        "",
        "- a note in {two} lines",
    ]


def test_latex_shows_what_it_would_obey() -> None:
    text = latex([ODD])
    assert r"\caption{50 \% \& more\_or\_less}" in text
    assert r"{[}x{]} \textbackslash{} \textless{}1M \#1 & 81.0 $\pm$ 1.4 \\" in text
    assert r"=1+1 & $-$0.4 \\" in text
    assert r"a note in \{two\} lines" in text
    assert text.splitlines()[3:5] == [r"\begin{tabular}{lr}", r"\toprule"]


def test_csv_is_read_back_cell_by_cell_and_holds_no_formula() -> None:
    found = list(reading.reader(StringIO(csv([ODD, ODD]))))
    one = [
        ["50 % & more_or_less"],
        ["name", "a|b"],
        ["[x] \\ <1M #1", "81.0 ± 1.4"],
        ["'=1+1", "-0.4"],
        ["a note in {two} lines"],
    ]
    assert found == [*one, [], *one]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.text(max_size=20), min_size=2, max_size=2))
def test_whatever_a_cell_holds_a_row_stays_a_row(names: list[str]) -> None:
    sheet = Sheet("t", ("a", "b"), (tuple(names),))
    assert len(markdown([sheet]).split("\n")) == 5
    row = latex([sheet]).split("\n")[7]
    assert row.replace(r"\&", "").count("&") == 1
    assert row.endswith(r" \\")
    *_, last = reading.reader(StringIO(csv([sheet])), strict=True)
    assert len(last) == 2


def test_a_row_of_another_length_is_no_sheet() -> None:
    with pytest.raises(AssertionError):
        Sheet("t", ("a", "b"), (("1",),))


# ── the command ──────────────────────────────────────────────────────────────────────────────

app = typer.Typer()
app.command()(table)


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    path = tmp_path / "cells.jsonl"
    for each in [*seeds("majority", 0.5, 0.5), *seeds(UPET, 0.80, 0.82), *seeds("ust", 0.7)]:
        results.append(path, each)
    return path


def run(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)


def refused(*words: object) -> SelftrainError:
    with pytest.raises(SelftrainError) as raised:
        run(*words)
    return raised.value


def test_text_is_a_table_on_stdout_with_its_notes(cells: Path) -> None:
    said = run("main", cells)
    assert said.exit_code == 0
    assert "│ UPET Head-Adapter" in said.stdout
    assert "81.0 ± 1.4" in said.stdout
    assert "No cells on: mnli" in said.stdout
    assert "Compared" in said.stdout
    assert said.stderr == ""


@pytest.mark.parametrize(
    ("form", "start"), [("markdown", "### Main"), ("csv", '"Main'), ("latex", "\\begin{table}")]
)
def test_every_format_goes_to_stdout(cells: Path, form: str, start: str) -> None:
    assert run("main", cells, "--format", form).stdout.startswith(start)


def test_json_has_the_sheets(cells: Path) -> None:
    first, second = json.loads(run("main", cells, "--json", "--paper").stdout)
    assert first["head"][0] == "method"
    assert ["as published", *first["rows"][2][1:]] == first["rows"][2]
    assert second["title"] == "Compared"


def test_a_files_name_says_its_format(cells: Path, tmp_path: Path) -> None:
    out = tmp_path / "main.tex"
    said = run("main", cells, "--out", out)
    assert (said.stdout, said.stderr) == ("", f"written: {out}\n")
    assert out.read_text("utf-8").endswith("\\end{table}\n")


def test_text_and_unknown_endings_are_not_written_to_a_file() -> None:
    for form, out in (("text", "a.md"), (None, "a.pdf")):
        with pytest.raises(ConfigError) as raised:
            format_of(form, Path(out))  # type: ignore[arg-type]
        assert "--format markdown" in str(raised.value.hint)
    assert format_of(None, None) == "text"
    assert format_of("csv", Path("a.md")) == "csv"


def test_a_strangers_names_send_no_codes_to_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    results.append(path, cell("\x1b[2Jx", 0.8, task="a\x1b[2J\nb", backbone="\x1b]0;"))
    for form in ("text", "markdown", "csv", "latex"):
        assert "\x1b" not in run("main", path, "--format", form).stdout
    assert "\x1b" not in run("main", path, "--json").stdout


def test_what_a_table_is_made_of_must_be_given(tmp_path: Path) -> None:
    assert refused("main").hint == "selftrain table main cells.jsonl"
    assert refused("data").hint == "--data DIR"
    assert refused("main", tmp_path / "nowhere").hint == "selftrain bench writes one"
    assert "1 or more" in refused("main", tmp_path / "nowhere", "--shots", 0).message
    assert run("grid").exit_code == 0
    assert run("nothing").exit_code == 2


def test_recipes_backbones_and_rows_are_chosen_by_flags(cells: Path) -> None:
    other = [replace(cell(UPET, 0.9), recipe="other"), cell("ust", 0.3, on="design")]
    for each in other:
        results.append(cells, each)
    assert "--recipe other" in str(refused("main", cells).hint)
    assert "90.0" in run("main", cells, "--recipe", "other").stdout
    assert "30.0" in run("main", cells, "--on", "design", "--backbone", "minilm").stdout


def test_sweep_and_data_are_read_by_their_flags(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.json"
    sweep.write_text('{"space": {"alpha": [0.25]}}', encoding="utf-8")
    assert "0.25" in run("grid", "--sweep", sweep).stdout
    (tmp_path / "cb").mkdir()
    (tmp_path / "cb" / "train.jsonl").write_text('{"text": "a", "label": "b"}\n', "utf-8")
    assert "│ cb" in run("data", "--data", tmp_path).stdout
