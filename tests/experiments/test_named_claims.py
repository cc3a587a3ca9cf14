"""The comparisons that were named before their cells were computed."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cells import cell
from selftrain.experiments.results import Result
from selftrain.method.recipes import recipe

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "benchmarks" / "paper" / "README.md"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    path = ROOT / "benchmarks" / "named_claims.py"
    found = SimpleNamespace(**runpy.run_path(str(path), run_name="named"))
    monkeypatch.delitem(sys.modules, "lines")
    return found


def cells(script: SimpleNamespace, *one: Result, five: tuple[Result, ...] = ()) -> dict[str, list]:
    return {script.ONE: [*one], script.FIVE: [*five]}


def test_the_page_names_as_many_comparisons_as_are_corrected_for(script: SimpleNamespace) -> None:
    """A sentence of the page, and the letters of its table."""
    names = [each.claim for each in script.comparisons()]
    page = PAGE.read_text("utf-8")
    assert f"so all {len(names)} together (Holm)" in page.replace("\n", " ")
    letters = re.findall(r"^\| ([A-Z]) \|", page, flags=re.MULTILINE)
    assert letters == [*dict.fromkeys(name[0] for name in names)]


def test_every_method_of_a_comparison_is_one_that_exists(script: SimpleNamespace) -> None:
    for each in script.comparisons():
        for name in (*each.better.methods, *each.worse.methods):
            assert recipe(name).name == name


def test_a_pair_is_a_task_and_a_seed_that_has_both_sides(script: SimpleNamespace) -> None:
    claim = script.named("x", "head-st", "head-ft")
    found = claim.gains(
        cells(
            script,
            cell("head-st", 0.80, seed=12),
            cell("head-ft", 0.70, seed=12),
            cell("head-st", 0.60, seed=21),
            cell("head-st", 0.65, seed=12, task="agnews"),
            cell("head-ft", 0.67, seed=12, task="agnews"),
        )
    )
    assert found == pytest.approx([-2.0, 10.0])  # agnews, then sst2; seed 21 has one side


def test_a_mean_over_methods_needs_all_of_them(script: SimpleNamespace) -> None:
    side = script.Side(("list", "upet-prompt-adapter"))
    known = [cell("list", 0.6), cell("upet-prompt-adapter", 0.8), cell("list", 0.5, seed=21)]
    assert side.scores(cells(script, *known)) == {("sst2", 12): pytest.approx(70)}


def test_a_round_that_was_refused_leaves_the_score_of_the_last_accepted(
    script: SimpleNamespace,
) -> None:
    run = cell("x", 0.7, by_round=(0.5, 0.6, 0.9, 0.7), final_round=3, refused=(2,))
    assert [script.reached(run, number) for number in (0, 1, 2, 3, 4)] == [0.5, 0.6, 0.6, 0.7, 0.7]


def test_comparisons_without_a_cell_are_corrected_for_too(script: SimpleNamespace) -> None:
    """Two pairs: p is .5 alone, and 19 comparisons raise it to 1."""
    few = [
        cell(method, score, seed)
        for seed in (12, 21)
        for method, score in (("head-st", 0.8), ("head-ft", 0.7))
    ]
    rows = script.table(cells(script, *few))
    (row,) = [row for row in rows if row[1]]
    assert row[0].startswith("A: ")
    assert row[1:] == (2, "+10.0", 2, "0.500", "1.00")
    assert len(rows) == len([*script.comparisons()])
