"""`fit --keep`: a person chooses the model that answers, and every command agrees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import command
from command import FIT, selftrain
from selftrain.runs.read import PAGES

KEEP = FIT + " --dev dev.csv --keep "


def scores(line: str) -> dict[str, object]:
    said = selftrain(f"evaluate {line} --json")
    assert said.code == 0, said.err
    return dict(json.loads(said.out))


@pytest.mark.parametrize(
    ("rung", "same_as"),
    [
        ("frozen", "run/rungs/frozen test.csv --round 0"),
        ("frozen-self-trained", "run/rungs/frozen test.csv"),
        ("teacher", "run test.csv --round 0"),
    ],
)
def test_the_kept_model_answers_in_predict_and_evaluate_and_nothing_is_trained_again(
    life: Path, bert: Path, rung: str, same_as: str
) -> None:
    before = command.snapshot(life / "run")
    said = selftrain(KEEP.format(bert=bert) + rung)
    assert said.code == 0, said.err
    name = rung.replace("-", " ", 1)
    assert f"model: run, {name}, as you chose" in said.err
    assert f"\n* {name} " in said.err
    assert "simpler" not in said.err, "who chose needs no advice"
    assert "within the interval" not in said.err
    after = command.snapshot(life / "run")
    assert json.loads(after.pop("keep.json") or b"") == {"format": 1, "rung": rung}
    for name in PAGES:  # they show the model that answers
        assert after.pop(name) != before.pop(name)
    assert after == before
    given, model = f"--backbone {bert}", same_as.split(maxsplit=1)[0]
    assert scores(f"run test.csv {given}") == scores(f"{same_as} {given}")
    number = " --round 0" if "--round" in same_as else ""
    assert (
        selftrain(f"predict run test.csv {given}").out
        == selftrain(f"predict {model} test.csv {given}{number}").out
    )


def test_the_same_command_leaves_a_choice_and_last_takes_it_back(life: Path, bert: Path) -> None:
    selftrain(KEEP.format(bert=bert) + "frozen")
    again = selftrain(FIT.format(bert=bert) + " --dev dev.csv --json")
    assert (json.loads(again.out)["kept"], json.loads(again.out)["model"]) == ("frozen", "frozen")
    back = selftrain(KEEP.format(bert=bert) + "last --json")
    facts = json.loads(back.out)
    number = facts["final_round"]
    assert facts["kept"] is None
    assert facts["model"] == (f"round {number}" if number else "teacher")
    assert f"model: run, round {number}\n" in back.err
    assert not (life / "run" / "keep.json").exists()


def test_a_refused_round_is_kept_by_its_number_with_a_warning(life: Path, bert: Path) -> None:
    path = life / "run" / "rounds" / "1" / "round.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps({**facts, "accepted": False, "why": "it lost a class"}))
    said = selftrain(KEEP.format(bert=bert) + "1")
    assert said.code == 0, said.err
    assert "warning: round 1 was refused: it lost a class" in said.err
    given = f"--backbone {bert}"
    assert scores(f"run test.csv {given}") == scores(f"run test.csv --round 1 {given}")


@pytest.mark.parametrize("rung", ["majority", "tf-idf", "frozzen", "7", "-3"])
def test_a_rung_that_cannot_be_kept_is_refused_before_training(
    folder: Path, bert: Path, rung: str
) -> None:
    said = selftrain(KEEP.format(bert=bert) + rung)
    assert (said.code, said.out) == (1, "")
    assert "error: " in said.err
    assert "hint: " in said.err
    assert not (folder / "run").exists()


def test_test_rows_measure_every_rung_and_the_kept_model_is_scored(
    folder: Path, bert: Path
) -> None:
    line = FIT.format(bert=bert) + " --rounds 0 --test test.csv --keep frozen --json"
    facts = json.loads(selftrain(line).out)
    measured = {rung["name"]: rung["measured"] for rung in facts["ladder"]}
    assert list(measured) == ["majority", "tf-idf", "frozen", "frozen self-trained", "teacher"]
    assert all(isinstance(share, float) for share in measured.values())
    assert facts["test"]["accuracy"] == measured["frozen"]
    assert facts["test"] == scores(f"run test.csv --backbone {bert}")


def test_a_run_of_two_labels_a_class_says_why_nothing_is_expected(folder: Path, bert: Path) -> None:
    rows = command.csv(command.sentences(4), "text", "label")
    (folder / "labelled.csv").write_text(rows, "utf-8")
    said = selftrain(FIT.format(bert=bert) + " --rounds 0")
    assert said.code == 0, said.err
    assert said.lines[-2] == (
        "no expected accuracy: no folds, because `bad` has 2 labels; 4 of each class are needed"
    )
