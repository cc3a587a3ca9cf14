"""Better than: which cells make pairs, and when a p-value is given."""

from __future__ import annotations

from cells import UPET, cell, seeds
from selftrain.experiments.names import MAIN, shown
from selftrain.experiments.results import Result
from selftrain.experiments.tables import KINDS, Choice
from selftrain.experiments.tables.compared import CLAIMS


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


def test_methods_of_different_numbers_of_rounds_are_named() -> None:
    """Asked for, not gone through: who converges early had as many. The teacher alone has none."""
    three = [cell(UPET, 0.8, by_round=(0.7, 0.8), rounds=3), cell("head-ft", 0.7, rounds=0)]
    assert not any("rounds" in note for note in KINDS["main"](three, Choice())[-1].notes)
    one = [cell("ust", 0.7, by_round=(0.7, 0.8), rounds=1), cell("head-st", 0.7, rounds=3)]
    told = "Of different numbers of rounds: UPET Head-Adapter (3) with UST (1)."
    assert told in KINDS["main"]([*three, *one], Choice())[-1].notes
    older = cell("ust", 0.7, by_round=(0.7, 0.8))  # does not say what it was asked for
    assert told in KINDS["main"]([*three, older], Choice())[-1].notes


def test_comparisons_that_cannot_be_significant_say_so() -> None:
    six = [*seeds(UPET, *[0.8] * 6), *seeds("head-ft", *[0.7] * 6), *seeds("ust", *[0.6] * 6)]
    note = "Many comparisons of few pairs: no p can fall below 0.06."
    alone = "One comparison may be tested as a family of its own: --compare A B."
    assert {note, alone} <= set(KINDS["main"](six, Choice())[-1].notes)
    assert not {note, alone} & set(KINDS["main"](six[:12], Choice())[-1].notes)


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
    others = [pair for pair in found if not (pair[0].startswith("UPET") and "UPET" not in pair[1])]
    assert len(found) - len(others) == 3 * 5 + 3 * 3


def test_self_training_meets_fine_tuning_and_a_prompt_meets_a_head() -> None:
    found = set(compared([cell(method, 0.8) for method in MAIN if method != "majority"]))
    assert {
        ("Head ST", "Head FT"),
        ("Prompt ST", "Prompt FT"),
        ("Prompt FT", "Head FT"),
        ("UPET Prompt-Ptuning", "UPET Head-Ptuning"),
        ("UPET Prompt-Prefix", "UPET Head-Prefix"),
        ("UPET Prompt-Adapter", "UPET Head-Adapter"),
    } == {(shown(one), shown(other)) for one, other in CLAIMS}
    assert {(shown(one), shown(other)) for one, other in CLAIMS} <= found


def test_one_comparison_may_be_tested_as_a_family_of_its_own() -> None:
    """All six agree: 2/64, whatever else the table could compare."""
    six = [0.81, 0.82, 0.83, 0.84, 0.85, 0.86]
    cells = [*seeds(UPET, *six), *seeds("head-ft", *[0.7] * 6), *seeds("ust", *[0.6] * 6)]
    sheet = KINDS["main"](cells, Choice(compare=("ust", "head-ft")))[-1]
    assert sheet.title == "Compared: UST with Head FT, the only comparison, named by the user"
    assert [(row[0], row[1], row[-1]) for row in sheet.rows] == [("UST", "Head FT", "0.031")]
    assert (
        "A comparison that was named after a look at the numbers has too small a p." in sheet.notes
    )
    assert not any("Holm" in note for note in sheet.notes)


def test_one_comparison_on_two_backbones_is_a_family_of_two() -> None:
    six = [0.81, 0.82, 0.83, 0.84, 0.85, 0.86]
    cells = [*seeds(UPET, *six), *seeds("ust", *[0.6] * 6)]
    cells += [*seeds(UPET, *six, backbone="bert"), *seeds("ust", *[0.6] * 6, backbone="bert")]
    sheet = KINDS["main"](cells, Choice(compare=(UPET, "ust")))[-1]
    assert [row[-1] for row in sheet.rows] == ["0.062", "0.062"]
    assert "Many comparisons of few pairs: no p can fall below 0.06." in sheet.notes


def test_tasks_on_which_a_method_did_not_learn_are_named_where_it_is_compared() -> None:
    """On the mean over its tasks either is above the majority class; cb is not compared."""
    cells = [cell("majority", 0.5, task=task) for task in ("sst2", "rte", "cb")]
    cells += [cell(UPET, 0.9), cell(UPET, 0.5, task="rte"), cell(UPET, 0.1, task="cb")]
    cells += [cell("head-ft", 0.7), cell("head-ft", 0.6, task="rte")]
    assert list(compared(cells)) == [("UPET Head-Adapter (not learnt: rte)", "Head FT")]
    cells[-2:] = [cell("head-ft", 0.4), cell("head-ft", 0.4, task="rte")]
    ((_, other),) = compared(cells)
    assert other == "Head FT (not learnt: sst2, rte)"
    assert any(note.startswith("Not learnt") for note in KINDS["main"](cells, Choice())[-1].notes)


def test_no_difference_has_no_sign_of_a_loss() -> None:
    found = compared([cell(UPET, 0.80), cell("head-ft", 0.80002)])
    assert found["UPET Head-Adapter", "Head FT"]["points"] == "+0.0"


def test_without_two_methods_to_compare_there_is_no_such_sheet() -> None:
    assert len(KINDS["main"]([cell(UPET, 0.8)], Choice())) == 1
