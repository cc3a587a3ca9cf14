"""The audit of any lines: what holds whatever the numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from selftrain.cli.audit import class_rows, round_rows
from selftrain.data.rows import AuditLine
from selftrain.runs.audit import plain, truth
from selftrain.training import metrics

slow = [HealthCheck.too_slow]  # a busy machine is no finding
quick = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=slow)
finite = st.floats(allow_nan=False, allow_infinity=False)
unit = st.floats(0, 1)
label = st.sampled_from("xyz")
role = st.sampled_from(["easy", "hard", "left"])


def audits(
    number: st.SearchStrategy[float],
) -> st.SearchStrategy[list[tuple[AuditLine, str | None]]]:
    """Lines, each with its gold label or none."""
    line = st.builds(AuditLine, st.just(""), label, number, number, number, role)
    return st.lists(st.tuples(line, st.none() | label), max_size=30)


def named(rows: Sequence[tuple[AuditLine, str | None]]) -> tuple[list[AuditLine], dict[str, str]]:
    lines = [replace(line, uid=str(n)) for n, (line, _) in enumerate(rows)]
    return lines, {str(n): gold for n, (_, gold) in enumerate(rows) if gold is not None}


@given(audits(unit))
@quick
def test_the_numbers_are_those_of_the_textbook(rows: list[tuple[AuditLine, str | None]]) -> None:
    lines, gold = named(rows)
    found = truth(lines, gold)
    known = [line for line in lines if line.uid in gold]
    for name, part in found.parts.items():
        mine = [line for line in known if name in ("all", line.role)]
        assert part.rows == len(mine)
        assert part.right == sum(line.label == gold[line.uid] for line in mine)
        for c, each in part.classes.items():
            assert each.gold == sum(gold[line.uid] == c for line in mine)
            assert each.pseudo == sum(line.label == c for line in mine)
    right = torch.tensor([line.label == gold[line.uid] for line in known])
    for name, area in found.areas.items():
        scores = torch.tensor([getattr(line, name) for line in known], dtype=torch.float32)
        expected = metrics.error_detection_area(scores, right) if known else float("nan")
        assert area == pytest.approx(expected) or (area is None and expected != expected)


@given(st.lists(st.tuples(st.floats(0.5, 1), st.booleans()), min_size=1, max_size=30))
@quick
def test_the_calibration_error_is_that_of_metrics(rows: list[tuple[float, bool]]) -> None:
    lines = [AuditLine(str(n), "x", sure, 1, 1, "left") for n, (sure, _) in enumerate(rows)]
    gold = {str(n): "x" if right else "y" for n, (_, right) in enumerate(rows)}
    p = torch.tensor([[sure, 1 - sure] for sure, _ in rows], dtype=torch.float64)
    answers = torch.tensor([0 if right else 1 for _, right in rows])
    expected = metrics.calibration_error(p, answers)
    assert truth(lines, gold).calibration_error == pytest.approx(expected, abs=1e-12)


@given(audits(unit))
@quick
def test_roles_add_up_to_the_whole(rows: list[tuple[AuditLine, str | None]]) -> None:
    every, *others = truth(*named(rows)).parts.values()
    for c, whole in every.classes.items():
        parts = [part.classes[c] for part in others]
        assert whole.gold == sum(part.gold for part in parts)
        assert whole.pseudo == sum(part.pseudo for part in parts)
        assert whole.right == sum(part.right for part in parts)


@given(audits(unit), audits(unit))
@quick
def test_rows_without_a_gold_label_move_nothing_but_their_count_and_the_effective_size(
    rows: list[tuple[AuditLine, str | None]], more: list[tuple[AuditLine, str | None]]
) -> None:
    few = truth(*named(rows))
    many = truth(*named([*rows, *((line, None) for line, _ in more)]))
    assert many.audit_line == few.audit_line + len(more)
    assert replace(many, audit_line=few.audit_line, effective=few.effective) == few


@given(audits(unit), st.randoms(use_true_random=False))
@quick
def test_the_order_of_lines_changes_nothing(
    rows: list[tuple[AuditLine, str | None]], random: Random
) -> None:
    lines, gold = named(rows)
    found, again = truth(lines, gold), truth(random.sample(lines, len(lines)), gold)
    assert (found.parts, found.areas) == (again.parts, again.areas)
    assert found.effective == pytest.approx(again.effective)
    assert found.calibration_error == pytest.approx(again.calibration_error)


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=30), st.floats(0.1, 10))
@quick
def test_the_effective_size_lies_between_one_and_all_and_has_no_unit(
    weights: list[float], unit: float
) -> None:
    def size(weights: list[float]) -> float:
        found = truth([AuditLine("a", "x", 1, 1, w, "left") for w in weights], {}).effective
        assert found is not None
        return found

    assert 1 - 1e-9 <= size(weights) <= len(weights) + 1e-9
    assert size(weights) == pytest.approx(sum(weights) ** 2 / sum(w * w for w in weights))
    assert size([unit * weight for weight in weights]) == pytest.approx(size(weights))


@given(audits(finite))
@quick
def test_numbers_no_round_writes_still_give_json_and_tables(
    rows: list[tuple[AuditLine, str | None]],
) -> None:
    """A lesson may come from anyone: its numbers are finite, and that is all that is known."""
    found = truth(*named(rows))
    assert json.loads(json.dumps(plain(1, found), allow_nan=False))["judged"] == len(rows)
    for name, area in found.areas.items():
        assert area is None or 0 <= area <= 1, name
    assert found.calibration_error is None or 0 <= found.calibration_error <= 1
    for head, lines in (round_rows([(1, found)]), class_rows([(1, found)])):
        assert {len(row) for row in lines} <= {len(head)}
