"""The tables beside the main one: by module, shots, alpha, part, corpus, search and speed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cells import UPET, cell, rows, seeds
from selftrain.errors import ConfigError, DataError
from selftrain.experiments.tables import KINDS, Choice, Sweep, corpora, read_sweep, search


def test_pel_has_all_four_choices_and_says_what_both_sides_tune() -> None:
    cells = [
        cell(UPET, 0.8, tuned=(22_000_000, 600_000)),
        cell("upet-head-full", 0.9, tuned=(22_000_000, 22_000_000)),
    ]
    sheet, versus = KINDS["pel"](cells, Choice(paper=True))
    assert sheet.head[:4] == ("reader", "teacher", "student", "teacher + student")
    assert [row[1:5] for row in sheet.rows if row[0] == "head"] == [
        ("full", "full", "22.0M + 22.0M", "90.0"),
        ("full", "adapter", "22.0M + 0.6M", "80.0"),
        ("adapter", "full", "–", "–"),
        ("adapter", "adapter", "–", "–"),
    ]
    assert ("as published", "", "", "355M + 14M", "–", "76.0", "4.1 hours", "–") in sheet.rows
    assert versus.rows[0][:2] == ("UPET Head-Adapter", "UPET Head-Full")


def test_pel_is_no_table_of_the_papers_own_choice_alone() -> None:
    """A reader, or a backbone, with a full teacher and an adapter student only is left out."""
    with pytest.raises(DataError, match="no cell belongs"):
        KINDS["pel"]([cell(UPET, 0.8), cell("majority", 0.5)], Choice())
    cells = [cell(UPET, 0.8), cell("upet-prompt-full", 0.8), cell(UPET, 0.8, backbone="bert")]
    (sheet,) = KINDS["pel"](cells, Choice())
    assert {row[0] for row in sheet.rows} == {"prompt"}


def test_shots_stand_across_and_what_has_one_number_is_named_below_and_blanks_no_average() -> None:
    name = "upet-prompt-adapter"
    cells = [
        *(cell(name, 0.8 + k / 1000, shots=k) for k in (16, 32)),
        *(cell(name, 0.6, task="agnews", shots=k) for k in (16, 32, 64)),
        *(cell("majority", 0.5, task=task, shots=k) for task in ("sst2", "cb") for k in (16, 32)),
        cell(name, 0.7, task="cb"),
        cell("list", 0.8, shots=64),
    ]
    sheet = KINDS["shots"](cells, Choice(paper=True))[0]
    labels = ("16 a class", "32 a class", "64 a class")
    assert sheet.head == ("method", "task", *labels, "tunable", "seconds", "cells")
    ours, none = ("0.6M", "40"), ("–", "–", "–")
    assert [row for row in sheet.rows if row[0] != "majority class"] == [
        ("UPET Prompt-Adapter", "sst2", "81.6", "83.2", "–", *ours, "2"),
        ("as published", "sst2", "91.9", "93.0", "93.6", *none),
        ("UPET Prompt-Adapter", "agnews", "60.0", "60.0", "60.0", *ours, "3"),
        ("as published", "agnews", "91.0", "91.4", "91.9", *none),
        ("UPET Prompt-Adapter", "average", "70.8", "71.6", "–", *ours, "5"),
        ("as published", "average of seven", "77.3", "80.0", "81.9", *none),
    ]
    assert "With one number of labels only: LiST, cb." in sheet.notes
    assert "No cells on: mnli, qnli, mrpc, rte." in sheet.notes


def test_the_papers_numbers_of_labels_have_a_column_each_and_an_average_its_mark() -> None:
    cells = [*(cell(name, 0.5, shots=k) for name in (UPET, "majority") for k in (8, 16))]
    sheet = KINDS["shots"](cells, Choice())[0]
    assert sheet.head[2:6] == ("8 a class", "16 a class", "32 a class", "64 a class")
    (average,) = [row for row in sheet.rows if row[:2] == ("UPET Head-Adapter", "average")]
    assert average[2:6] == ("50.0 (not learnt)", "50.0 (not learnt)", "–", "–")


def test_a_method_with_more_labels_meets_itself_with_fewer() -> None:
    """Table 3 claims that more labels help: six seeds agree in two comparisons of four."""
    few = [0.70, 0.71, 0.72, 0.73, 0.74, 0.75]
    cells = [
        row
        for name in (UPET, "ust")
        for k in (16, 32)
        for row in seeds(name, *(each + k / 1000 for each in few), shots=k)
    ]
    versus = KINDS["shots"](cells, Choice())[-1]
    found = {(row[0], row[1], row[3]): row[4:] for row in versus.rows}
    assert found["UST", "UST", "32 with 16"] == ("+1.6", "6", "6", "0.125")
    assert found["UPET Head-Adapter", "UPET Head-Adapter", "32 with 16"][0] == "+1.6"
    assert found["UPET Head-Adapter", "UST", "16"] == ("+0.0", "6", "0", "1.000")
    assert len(found) == 4
    far = [*cells, *seeds(UPET, *few, shots=8), *seeds("ust", *few, shots=64)]
    found = {(row[0], row[3]) for row in KINDS["shots"](far, Choice())[-1].rows if row[0] == row[1]}
    assert {("UPET Head-Adapter", "16 with 8"), ("UST", "64 with 32")} < found
    assert len(found) == 4
    asked = KINDS["shots"](cells, Choice(compare=(UPET, "ust")))[-1]
    assert [row[3] for row in asked.rows] == ["16", "32"]


def test_two_numbers_of_labels_on_two_tasks_are_no_comparison() -> None:
    with pytest.raises(DataError, match="two numbers of labels"):
        KINDS["shots"]([cell(UPET, 0.8), cell(UPET, 0.8, task="cb", shots=32)], Choice())


def test_pel_shows_the_tasks_on_which_teachers_or_students_were_changed() -> None:
    """cb has the majority row and the paper's own choice alone: no column, no gap in a mean."""
    cells = [*seeds(UPET, 0.80, 0.82), *seeds("upet-head-full", 0.90, 0.92)]
    cells += [cell(UPET, 0.1, task="cb"), cell("majority", 0.5), cell("majority", 0.5, task="cb")]
    sheet = KINDS["pel"](cells, Choice())[0]
    assert "cb" not in sheet.head
    averages = [row[sheet.head.index("average")] for row in sheet.rows]
    assert averages[:3] == ["50.0 (1 of 2)", "91.0 ± 1.4", "81.0 ± 1.4"]
    assert sheet.rows[0][:4] == ("majority class", "–", "–", "–")


@pytest.mark.parametrize("kind", ["pel", "alpha"])
def test_the_papers_numbers_of_16_labels_stand_beside_no_others(kind: str) -> None:
    cells = [cell(UPET, 0.8, shots=32), cell("upet-head-full", 0.9, shots=32)]
    cells += [cell(f"{UPET}-alpha-0.2-raw-topk", 0.8, shots=32)]
    sheet = KINDS[kind](cells, Choice(shots=32, paper=True))[0]
    assert "as published" not in {*sheet.head, *(row[0] for row in sheet.rows)}


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
        cell("majority", 0.5),
    ]
    sheet, versus = KINDS["alpha"](cells, Choice(paper=True))
    assert sheet.head == ("alpha", "rank, topk", "raw, sample", "as published", "cells")
    assert sheet.rows == (
        ("majority class", "50.0", "50.0", "–", "1"),
        ("None", "75.0", "75.0", "76.0", "1"),
        ("0", "–", "77.0", "77.2", "1"),
        ("0.2", "79.0", "78.0", "77.9", "2"),
        ("0.4", "–", "–", "78.2", "0"),
        ("0.6", "–", "–", "77.6", "0"),
        ("0.8", "–", "–", "77.3", "0"),
        ("1", "74.0", "–", "76.8", "1"),
    )
    assert "Tunable: 0.6M. Seconds of a run, on the mean: 40." in sheet.notes
    assert any("caption" in note for note in sheet.notes)
    assert len(versus.rows) == 4


def test_alpha_averages_over_its_own_tasks() -> None:
    cells = [
        cell(f"{UPET}-wo-res-all", 0.1, task="agnews"),
        *seeds(f"{UPET}-alpha-0.6-raw-topk", 0.8, 0.8),
        *seeds(f"{UPET}-alpha-0.6-raw-topk", 0.6, task="cb"),
        *seeds(f"{UPET}-alpha-0.5-raw-topk", 0.6),  # the name of no recipe
    ]
    sheet = KINDS["alpha"](cells, Choice())[0]
    assert [row for row in sheet.rows if row[-1] != "0"] == [
        ("0.6", "70.0 (3 of 4 cells)", "3"),
    ]
    assert sheet.notes[0] == "Averages over sst2, cb."


def test_alpha_has_a_sheet_of_averages_over_seeds_and_one_for_each_task() -> None:
    """Seed 0: 80 and 60, mean 70; seed 1: 82 and 62, mean 72."""
    name = f"{UPET}-alpha-0.4-raw-topk"
    cells = [*seeds(name, 0.80, 0.82), *seeds(name, 0.60, 0.62, task="cb")]
    averages, first, second = KINDS["alpha"](cells, Choice(paper=True))
    assert ("0.4", "71.0 ± 1.4", "78.2", "4") in averages.rows
    assert ("0.4", "81.0 ± 1.4", "2") in first.rows
    assert ("0.4", "61.0 ± 1.4", "2") in second.rows
    assert [sheet.title.split(":")[0] for sheet in (averages, first, second)] == [
        "Alpha of UPET Head-Adapter",
        "Alpha of UPET Head-Adapter on sst2",
        "Alpha of UPET Head-Adapter on cb",
    ]
    assert not any("As published" in note for note in (*first.notes, *second.notes))


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


def test_the_papers_ablation_stands_below_any_upet_by_the_part_left_out() -> None:
    """Its own are Prompt-Ptuning and Prompt ST, and a note says so."""
    cells = [cell(name, 0.8) for name in (UPET, "head-st", f"{UPET}-wo-phce")]
    sheet = KINDS["ablation"](cells, Choice(paper=True))[0]
    score = sheet.head.index("sst2")
    theirs = {
        ours[0]: row[score]
        for ours, row in zip(sheet.rows, sheet.rows[1:], strict=False)
        if row[0] == "as published"
    }
    assert theirs == {
        "Head ST": "91.0 ± 3.1",
        "UPET Head-Adapter": "91.7 ± 2.8",
        "w/o reliable sampling (all)": "91.3",
        "w/o certainty": "91.4",
        "w/o confidence": "91.6",
        "w/o PHCE": "91.3",
        "w/o easy-hard contrast": "91.5",
    }
    assert any("UPET Prompt-Ptuning and Prompt ST on RoBERTa-large" in note for note in sheet.notes)


def test_agnews_stands_by_labels_in_all_beside_systems_without_bert() -> None:
    """16 a class of four classes are 64 labels, as in the paper's table."""
    cells = [cell(UPET, 0.88, task="agnews"), cell(UPET, 0.9, task="agnews", shots=64)]
    cells += [
        cell("ust", 0.88, task="agnews"),
        cell(UPET, 0.1),
        cell("majority", 0.3, task="agnews"),
    ]
    (sheet,) = KINDS["nonbert"](cells, Choice())
    assert sheet.rows[0] == ("variational pre-training", "published", "200", "83.9", *"–––")
    assert sheet.rows[-3:] == (
        ("majority class", "minilm", "64", "30.0", "–", "–", "1"),
        ("UPET Head-Adapter", "minilm", "64", "88.0", "0.6M", "40", "1"),
        ("UPET Head-Adapter", "minilm", "256", "90.0", "0.6M", "40", "1"),
    )
    assert "No cells of: UPET Head-Ptuning, UPET Head-Prefix." in sheet.notes
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
    (absent,) = [note for note in sheet.notes if note.startswith("No cells of")]
    assert absent.startswith("No cells of: UST, UST (hard), CEST")
    assert "Prompt" not in absent
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
        space={"select.score.alpha": [0.2, 0.4], "student.learning_rate": [1e-3, 5e-3]},
        best={"select.score.alpha": 0.4, "tau": 4},
        trials=12,
    )
    sheet = search(sweep)
    found = rows(sheet)
    assert list(found["alpha"].values())[2:] == ["select.score.alpha", "0.2, 0.4", "0.4"]
    assert list(found["student.learning_rate"].values())[1:] == [
        "–",
        "student.learning_rate",
        "0.001, 0.005",
        "–",
    ]
    assert list(found["tau"].values())[1:] == ["–", "tau", "–", "4"]
    assert found["seeds"]["searched"] == "–"
    assert "The sweep tried 12 points." in sheet.notes


def test_a_sweeps_report_is_read_and_a_strange_file_refused(tmp_path: Path) -> None:
    path = tmp_path / "sweep.json"
    path.write_text('{"space": {"alpha": [0.2]}, "best": {}, "trials": 3, "more": 1}', "utf-8")
    assert read_sweep(path) == Sweep({"alpha": [0.2]}, {}, 3)
    path.write_text('{"space": 7}', "utf-8")
    with pytest.raises(DataError, match="`space` is 7: "):
        read_sweep(path)
    with pytest.raises(DataError, match="cannot read"):
        read_sweep(tmp_path / "nowhere")
