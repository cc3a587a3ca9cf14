"""The main table: what is averaged, what is marked and what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from cells import UPET, cell, rows, seeds
from selftrain.errors import DataError
from selftrain.experiments.names import MAIN, is_main, shown
from selftrain.experiments.published import numbers
from selftrain.experiments.results import Result
from selftrain.experiments.tables import KINDS, Choice, Sheet


def main(cells: list[Result], **choice: Any) -> Sheet:
    return KINDS["main"](cells, Choice(**choice))[0]


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


def test_an_average_over_tasks_is_mean_and_sd_over_seeds() -> None:
    """Seed 0: 70 and 50, mean 60; seed 1: 72 and 52, mean 62. Over both 61, sd sqrt(2) = 1.4."""
    cells = [*seeds("head-ft", 0.70, 0.72), *seeds("head-ft", 0.50, 0.52, task="cb")]
    cells += [*seeds("ust", *[0.6] * 3), *seeds("ust", *[0.6] * 3, task="cb")]
    assert rows(main(cells))["Head FT"]["average"] == "61.0 ± 1.4 (2 of 3)"
    assert rows(main(cells[:4]))["Head FT"]["average"] == "61.0 ± 1.4"


def test_an_average_over_tasks_of_other_seeds_has_no_sd() -> None:
    cells = [cell("ust", 0.7, 1), cell("ust", 0.5, 2, task="cb")]
    assert rows(main(cells))["UST"]["average"] == "60.0 (seeds differ by task)"


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
    notes = main([cell("ust", 0.8, backbone="bert")]).notes
    absent = next(note for note in notes if note.startswith("No cells of"))
    assert "LiST" in absent
    assert "UST (hard)" in absent
    assert "No cells on: mnli, qnli, mrpc, rte, cb, agnews." in notes


def test_what_there_cannot_be_is_not_missing() -> None:
    """`minilm` answers no prompts, and only pairs can be encoded apart."""

    def absent(task: str, backbone: str) -> str:
        notes = main([cell("ust", 0.8, task=task, backbone=backbone)]).notes
        return next(note for note in notes if note.startswith("No cells of"))

    for word in ("LiST", "TAPT", "Prompt", "apart"):
        assert word not in absent("sst2", "minilm")
    assert "Prompt ST" in absent("sst2", "bert")
    assert "apart" not in absent("sst2", "bert")
    assert "apart" in absent("rte", "minilm")


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
    assert main([cell(UPET, 0.8, scored_on="design")], scored_on="design").title == (
        "Main result: accuracy on design rows, minilm, preset laptop, 16 labels a class"
    )


def test_chosen_seeds_are_the_only_ones_averaged_and_stand_in_the_title() -> None:
    cells = [*seeds(UPET, 0.80, 0.82, 0.99), *seeds("ust", 0.70, 0.72)]
    sheet = main(cells, seeds=(0, 1))
    assert rows(sheet)["UPET Head-Adapter"]["sst2"] == "81.0 ± 1.4"
    assert rows(sheet)["UST"]["sst2"] == "71.0 ± 1.4"
    assert sheet.title.endswith(", seeds 0 1")
    assert main(cells, seeds=(2,)).title.endswith(", seed 2")


def test_different_seeds_are_noted_with_those_that_all_have() -> None:
    cells = [*seeds(UPET, 0.80, 0.82, 0.99), *seeds("ust", 0.70, 0.72)]
    told = "Not all have the same seeds; those that all have: --seeds 0,1."
    assert told in main(cells).notes
    assert told not in main(cells, seeds=(0, 1)).notes
    apart = main([*cells, cell("cest", 0.7, 9)]).notes
    assert "Not all have the same seeds, and none is common to all." in apart
    assert not any("same seeds" in note for note in main(cells[:3]).notes)


def test_a_model_that_stayed_because_rounds_were_refused_is_told() -> None:
    cells = [
        cell(UPET, 0.8, 1, by_round=(0.8, None), refused=(1,)),
        cell(UPET, 0.8, 2, by_round=(0.8, 0.1, 0.2), final_round=0),  # as older cells say it
        cell(UPET, 0.8, 3, by_round=(0.8, 0.1, 0.9), refused=(1,), final_round=2),
        cell(UPET, 0.8, 4, by_round=(0.8, 0.9), final_round=1),
        cell("ust", 0.8, by_round=(0.8, 0.9), final_round=1),
    ]
    told = "Rounds refused, so that the model before them stayed: UPET Head-Adapter in 3 of 4 runs"
    assert f"{told}, in 1 because training broke off." in main(cells).notes
    assert not any("refused" in note for note in main(cells[3:]).notes)


def test_a_student_that_broke_off_has_no_count_of_parameters() -> None:
    broken = cell(UPET, 0.8, 1, by_round=(0.8, None), tuned=(22_713_986,))
    assert rows(main([broken]))["UPET Head-Adapter"]["tunable"] == "–"
    whole = cell(UPET, 0.8, 2, by_round=(0.8, 0.9))
    assert rows(main([broken, whole]))["UPET Head-Adapter"]["tunable"] == "0.6M"


def test_time_is_a_mean_over_the_tasks_and_missing_where_one_is() -> None:
    cells = [cell("ust", 0.8, seconds=10.0), *seeds("ust", 0.8, 0.8, task="cb", seconds=40.0)]
    cells += [cell(UPET, 0.8, task="cb", seconds=40.0)]
    found = rows(main(cells))
    assert (found["UST"]["seconds"], found["UPET Head-Adapter"]["seconds"]) == ("25", "–")


def test_runs_of_two_devices_are_told() -> None:
    cells = [cell("ust", 0.8, device="cpu"), cell(UPET, 0.8, device="cuda"), cell("cest", 0.8)]
    assert "Runs were on cpu and cuda: their seconds do not compare." in main(cells).notes


@pytest.mark.parametrize("shots", [32, "full"])
def test_the_majority_class_is_the_same_for_every_number_of_labels(shots: int | str) -> None:
    cells = [cell("majority", 0.9), cell("head-ft", 0.95), cell("head-ft", 0.7, shots=shots)]
    sheet = KINDS["main"](cells, Choice()) if shots == "full" else KINDS["shots"](cells, Choice())
    marked = [row for row in sheet[0].rows if any("not learnt" in each for each in row)]
    assert len(marked) == (1 if shots == "full" else 2)  # the task and its average
    assert any("70.0 (not learnt)" in each for row in marked for each in row)


def test_what_a_baseline_leaves_out_stands_below_it() -> None:
    for method, told in (("list", "LiST: in the preset"), ("tapt-head-ft", "TAPT: a few hundred")):
        assert any(note.startswith(told) for note in main([cell(method, 0.8)]).notes)
        assert not any(note.startswith(told) for note in main([cell("ust", 0.8)]).notes)
    assert not any("LiST: in" in note for note in main([cell("list", 0.8, preset="paper")]).notes)


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
        cell(UPET, 0.8, by_round=(0.7, 0.8, 0.8), version="0.2", threads=2),
    ]
    notes = main(cells).notes
    assert "Rounds: 1 (UST); 2 (UPET Head-Adapter)." in notes
    assert "Of the scored rows of sst2, up to 3 are also labelled or in the pool." in notes
    assert "Cells were written by versions 0.1 and 0.2." in notes
    assert "Runs had 1 and 2 threads: their seconds do not compare." in notes


def test_a_note_says_who_stopped_before_the_last_round() -> None:
    cells = [
        cell("ust", 0.8, by_round=(0.7, 0.8)),
        cell("ust", 0.8, 2, by_round=(0.7, 0.8, 0.8)),
        cell(UPET, 0.8, by_round=(0.7, 0.8, 0.8)),
    ]
    assert "Rounds: 1 to 2 (UST); 2 (UPET Head-Adapter)." in main(cells).notes
    assert "Rounds: 1 to 2." in main(cells[:2]).notes
    assert not any("Rounds" in note for note in main([cell("head-ft", 0.8)]).notes)


def test_notes_say_what_stands_behind_the_scores() -> None:
    cells = [
        cell("ust", 0.8, by_round=(0.7, 0.8), commit="abc1234"),
        cell("cest", 0.8, by_round=(0.7, 0.8), commit="def5678+"),
        cell("ust", 0.8, task="agnews", by_round=(0.7, 0.8), rows=7600, commit="abc1234"),
    ]
    notes = main(cells).notes
    assert "Rounds: 1." in notes
    assert "Rows scored: sst2 1,000, agnews 7,600." in notes
    assert "Commits: abc1234, def5678+." in notes
    old = [*cells, cell("head-st", 0.8)]
    assert "Commits: abc1234, def5678+, some cells do not say at which." in main(old).notes
    assert not any("Commits" in note for note in main([cell("ust", 0.8)]).notes)


def test_a_mean_time_needs_the_times_of_all_runs() -> None:
    cells = [cell("ust", 0.8, seconds=60.0), cell("ust", 0.8, task="agnews", seconds=None)]
    assert rows(main(cells))["UST"]["seconds"] == "–"


def test_heads_of_different_tasks_make_a_range_of_parameters() -> None:
    cells = [cell("ust", 0.8, tuned=(9, 770)), cell("ust", 0.8, task="cb", tuned=(9, 1155))]
    assert rows(main(cells))["UST"]["tunable"] == "770–1155"


def test_the_papers_numbers_stand_below_ours() -> None:
    cells = [cell("ust", 0.8, task=task) for task in ("sst2", "agnews")]
    ours, theirs = main(cells, paper=True).rows
    assert ours[0] == "UST"
    assert theirs == ("as published", "355M", "84.0 ± 4.0", "89.3 ± 3.5", "86.7", "–", "–")
    assert "The paper's averages here are over the tasks shown." in main(cells, paper=True).notes
    other = main(cells, paper=True, metric="macro_f1").notes
    assert "The paper's numbers stand beside macro F1 of ours: they do not compare." in other
    assert not any("macro F1" in note for note in main(cells, paper=True).notes)


def test_a_printed_average_is_shown_as_printed_where_all_seven_tasks_are() -> None:
    cells = [cell("upet-head-prefix", 0.8, task=task) for task in numbers().tasks]
    sheet = main(cells, paper=True)
    assert rows(sheet)["as published"]["average"] == "74.6"
    assert any("mean of its row is 75.0" in note for note in sheet.notes)
