"""Kinds of runs that a report must know: refused, kept, unfinished, without an estimate, wide."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import small_run
from finished_run import finish
from selftrain.data.rows import Labelled, Split
from selftrain.errors import RunError
from selftrain.model.backbone import Backbone
from selftrain.report import report
from selftrain.report.advice import steps, worries
from selftrain.report.facts import ClassFacts, Confusion, Facts, facts_of
from selftrain.report.page import page_of
from selftrain.runs.ladders import keep
from selftrain.runs.saved import read_run
from selftrain.runs.train import train
from selftrain.training.job import Job
from selftrain.training.label_check import Doubt


@pytest.fixture(scope="session")
def facts(finished: Path, gold: list[Labelled]) -> Facts:
    return facts_of(read_run(finished), gold)


def changed(path: Path, **more: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}))


def test_the_facts_are_those_of_the_run(facts: Facts, finished: Path) -> None:
    run = read_run(finished)
    assert run.estimate is not None
    expected = run.estimate.of(run.answering.number).expected
    assert facts.expected is not None
    assert (facts.expected.accuracy, facts.expected.low) == (expected.accuracy, expected.low)
    assert [each.number for each in facts.rounds] == [each.number for each in run.records]
    assert [each.labels for each in facts.classes] == [4, 4]
    assert sum(each.rows for each in facts.confusions) == facts.labelled_rows == 8
    assert facts.run.finished
    assert facts.lesson is not None
    assert facts.lesson.rows == sum(sum(each) for each in facts.lesson.confidence.values())
    assert facts.thresholds[0].share == 1


def test_a_refused_round_is_shown_with_the_guards_reason(run: Path) -> None:
    changed(run / "rounds" / "2" / "round.json", accepted=False, why="it lost a class")
    page = report(run)
    assert "refused: it lost a class" in page.html
    assert any("The guard refused 1 of" in line for line in page.numbers["worries"])


def test_a_run_whose_every_round_was_refused_is_its_teacher(run: Path) -> None:
    for path in sorted((run / "rounds").iterdir())[1:]:
        changed(path / "round.json", accepted=False, why="worse")
    page = report(run)
    assert page.numbers["model"]["name"] == "teacher"
    assert any("The guard refused every round" in line for line in page.numbers["worries"])


def test_the_model_that_a_person_keeps_is_the_one_of_the_page(run: Path) -> None:
    keep(run, "frozen-self-trained")
    page = report(run)
    assert page.numbers["model"]["rung"] == "frozen-self-trained"
    assert "frozen self-trained" in page.html
    assert "as you chose" in page.html
    assert page.numbers["verdict"] == ()
    keep(run, "teacher")
    facts = facts_of(read_run(run))
    assert facts.model.name == "teacher"
    assert facts.pool_reliability == ()  # those on disk are of the last accepted round


def test_an_unfinished_run_says_so_and_what_to_do(run: Path) -> None:
    numbers = sorted(int(path.name) for path in (run / "rounds").iterdir())
    shutil.rmtree(run / "rounds" / str(numbers[-1]))
    page = report(run)
    assert page.numbers["expected"] is None
    assert not page.numbers["run"]["finished"]
    assert any("is not finished" in line for line in page.numbers["worries"])
    assert page.numbers["next"][0]["why"].startswith("Finish the run")


def test_a_run_that_has_no_round_yet_is_one_line(run: Path) -> None:
    shutil.rmtree(run / "rounds")
    with pytest.raises(RunError, match="has no whole round yet"):
        report(run)


def test_a_run_without_rounds_or_estimate_has_a_page(
    backbone: Backbone, gold: list[Labelled], tmp_path: Path
) -> None:
    few = tuple(gold[:4])
    method = replace(small_run.METHOD, rounds=0)
    job = Job(small_run.TASK, Split(few, small_run.split().unlabelled), method, backbone, 7)
    folder = finish(tmp_path / "run", job)
    facts = facts_of(read_run(folder), few)
    assert "4 of each class are needed" in facts.no_estimate
    page = page_of(facts)
    assert "Not known" in page.html
    assert "No round learnt from the pool" in page.html
    assert any("Few labels" in line for line in page.numbers["worries"])


def test_a_run_that_was_killed_before_its_estimate_has_a_page(
    backbone: Backbone, tmp_path: Path
) -> None:
    job = small_run.job(backbone, replace(small_run.METHOD, rounds=1))
    for _ in train(tmp_path / "run", job, small_run.MACHINE):
        pass
    page = report(tmp_path / "run")
    assert page.numbers["expected"] is None
    assert page.numbers["ladder"] == ()
    assert "no ladder" in page.html


def test_an_estimate_of_an_earlier_version_has_no_confusions(run: Path) -> None:
    changed(run / "estimate.json", opinions="")
    facts = facts_of(read_run(run))
    assert facts.expected is not None
    assert (facts.confusions, facts.labelled_rows) == ((), None)
    assert "no answers of check models" in page_of(facts).html


def test_five_hundred_classes_are_folded_and_counted(facts: Facts) -> None:
    names = [f"class {number}" for number in range(500)]
    classes = tuple(
        ClassFacts(name, 16, 1 / 500, None, (500 - at) / 125_250, 1 / 500, 0.5)
        for at, name in enumerate(names)
    )
    wrong = tuple(Confusion(name, names[at - 1], 3) for at, name in enumerate(names))
    page = page_of(replace(facts, classes=classes, confusions=wrong))
    assert "480 more classes in report.json" in page.html
    assert "480 more confusions in report.json" in page.html
    assert "class 19<" in page.html
    assert "class 20<" not in page.html.partition('id="errors"')[0]
    assert len(page.html) < 120_000
    assert len(page.numbers["classes"]) == 500


# ── what to worry about, and what to do ──


def worries_of(facts: Facts, **more: Any) -> str:
    return "\n".join(worries(replace(facts, **more)))


def shares(facts: Facts, pool: Sequence[float]) -> tuple[ClassFacts, ...]:
    parts = zip(facts.classes, pool, strict=True)
    return tuple(replace(each, labels=16, pool_by_answers=share) for each, share in parts)


def test_a_label_that_looks_wrong_is_a_worry_with_its_row(facts: Facts) -> None:
    doubts = (Doubt(7, "u", "good", "bad", 0.93), Doubt(3, "v", "bad", "good", 0.6))
    assert "1 of your labels looks wrong: labelled row 7." in worries_of(facts, doubts=doubts)
    assert "look wrong" not in worries_of(facts, doubts=doubts[1:])


def test_a_pool_of_other_shares_than_the_labels_is_a_worry(facts: Facts) -> None:
    skewed = worries_of(facts, classes=shares(facts, (0.9, 0.1)))
    assert "class shares 50:50, the pool probably 90:10" in skewed
    assert "--prior" in skewed
    assert "the pool probably" not in worries_of(facts, classes=shares(facts, (0.55, 0.45)))


def test_a_model_hardly_better_than_the_most_frequent_class_is_a_worry(facts: Facts) -> None:
    assert facts.expected is not None
    expected = replace(facts.expected, accuracy=0.55)
    ladder = tuple(replace(each, accuracy=0.5) for each in facts.ladder)
    assert "hardly better" in worries_of(facts, expected=expected, ladder=ladder)


def test_an_interval_that_was_measured_with_another_method_is_a_hint(facts: Facts) -> None:
    assert "take the interval as a hint" in worries_of(facts)
    usual = replace(facts.run, method="supcon", backbone="minilm")
    assert "take the interval as a hint" not in worries_of(facts, run=usual)


def test_a_simpler_model_that_is_as_good_can_be_kept_by_a_command(facts: Facts) -> None:
    ladder = tuple(replace(each, accuracy=0.8) for each in facts.ladder)
    commands = [step.command for step in steps(replace(facts, ladder=ladder), texts=False)]
    assert any("--keep frozen" in command for command in commands)


def test_a_folder_with_a_blank_in_its_name_is_quoted_in_commands(facts: Facts) -> None:
    odd = replace(facts, run=replace(facts.run, name="my run; rm"))
    assert all("'my run; rm'" in step.command for step in steps(odd, texts=False) if step.command)
