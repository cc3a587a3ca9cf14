"""A run from the command line: fit, evaluate, predict, and Ctrl-C in between."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import command
from command import FIT, selftrain
from selftrain.cli.talk import talk
from selftrain.runs import train as experiment
from selftrain.runs import watch

PREDICT = "predict run test.csv --backbone"
EVALUATE = "evaluate run test.csv --backbone"


def test_fit_says_a_line_a_round_and_prints_nothing(folder: Path, bert: Path) -> None:
    said = selftrain(FIT.format(bert=bert) + " --dev dev.csv")
    assert (said.code, said.out) == (0, "")
    assert first_words(said) == ["teacher", "round", "model:", "expected"]
    assert all(" dev " in line for line in said.lines[:2])
    assert said.lines[2].startswith("model: run, round ")
    ladder = said.lines.index(next(line for line in said.lines if line.startswith("ladder ")))
    simple = ["majority", "tf-idf", "frozen", "frozen self-trained"]
    for line, name in zip(said.lines[ladder + 1 :], simple, strict=False):
        assert line.startswith(f"  {name} ")
    assert all(len(line) <= 80 for line in said.lines[ladder : ladder + 6])


def first_words(said: command.Said) -> list[str]:
    """The first word of each line before the ladder, and before labels to check."""
    words = [line.split()[0] for line in said.lines]
    return [word for word in words[: words.index("ladder")] if word != "check"]


def test_fit_says_which_columns_it_took(folder: Path, bert: Path) -> None:
    (folder / "pool.csv").write_text("ID;Body\n" + "".join(f"{n};text, {n}\n" for n in range(9)))
    said = selftrain(FIT.format(bert=bert) + " --rounds 0 --pool-text Body")
    assert said.code == 0
    assert said.read == [
        "labelled.csv: text from `text`, label from `label`",
        "pool.csv: text from `Body`, id from `ID`",
    ]
    assert said.lines[0] == "pool.csv: fields separated by `;`"


def test_fit_on_a_finished_run_says_so_and_shows_its_rounds_again(life: Path, bert: Path) -> None:
    before = command.snapshot(life)
    said = selftrain(FIT.format(bert=bert) + " --dev dev.csv")
    assert said.code == 0
    assert said.lines[0] == "run is finished: these are its rounds"
    assert first_words(said)[-4:] == ["teacher", "round", "model:", "expected"]
    assert command.snapshot(life) == before


def test_fit_resumes_after_the_last_finished_round(life: Path, bert: Path) -> None:
    model = life / "run" / "rounds" / "1" / "model.safetensors"
    whole = model.read_bytes()
    shutil.rmtree(model.parent)
    said = selftrain(FIT.format(bert=bert) + " --dev dev.csv")
    assert said.lines[0] == "run resumes after round 0"
    assert model.read_bytes() == whole


def test_fit_with_more_rounds_adds_them(life: Path, bert: Path) -> None:
    model = life / "run" / "rounds" / "1" / "model.safetensors"
    whole = model.read_bytes()
    said = selftrain(FIT.format(bert=bert) + " --dev dev.csv --rounds 2")
    assert said.lines[0] == "run resumes after round 1"
    assert first_words(said)[-5:] == ["teacher", "round", "round", "model:", "expected"]
    assert model.read_bytes() == whole
    fewer = selftrain(FIT.format(bert=bert) + " --dev dev.csv --rounds 1")
    assert fewer.code == 1
    assert "method.rounds was 2, is now 1" in fewer.err


def test_fit_warns_that_a_run_resumes_on_another_machine(life: Path, bert: Path) -> None:
    path = life / "run" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "threads": 64}))
    said = selftrain(FIT.format(bert=bert) + " --dev dev.csv")
    assert said.code == 0
    assert said.lines[0].startswith("warning: the run was started with threads 64")


def test_fit_with_test_rows_prints_their_scores(folder: Path, bert: Path) -> None:
    said = selftrain(FIT.format(bert=bert) + " --rounds 0 --test test.csv --json")
    facts = json.loads(said.out)
    assert facts["run"] == "run"
    assert [each["number"] for each in facts["rounds"]] == [0]
    assert facts["test"]["rows"] == 10
    assert facts["test"] == json.loads(selftrain(f"{EVALUATE} {bert} --json").out)


@pytest.mark.usefixtures("life")
def test_evaluate_prints_a_table_and_nothing_else(bert: Path) -> None:
    said = selftrain(f"{EVALUATE} {bert}")
    assert (said.code, said.err) == (0, "")
    for name in ("test.csv", "accuracy", "macro_f1", "f1 good", "calibration_error", "rows"):
        assert name in said.out
    for name in ("mean confidence", "true label", "answered good"):
        assert name in said.out


def test_predict_prints_csv_or_json_lines_and_writes_what_the_name_says(
    life: Path, bert: Path
) -> None:
    printed = selftrain(f"{PREDICT} {bert}")
    assert (printed.code, printed.err) == (0, "")
    rows = list(csv.DictReader(printed.out.splitlines()))
    assert list(rows[0]) == ["row", "label", "p_bad", "p_good", "certainty"]
    assert len(rows) == 10

    lines = selftrain(f"{PREDICT} {bert} --json --with-text").out.splitlines()
    answers = [json.loads(line) for line in lines]
    assert [each["label"] for each in answers] == [row["label"] for row in rows]
    assert answers[0]["text"] == command.sentences(1, first=300)[0][0]

    wrote = "written: answers.csv, 10 rows\n"
    assert selftrain(f"{PREDICT} {bert} -o answers.csv") == (0, "", wrote)
    assert (life / "answers.csv").read_text() == printed.out


@pytest.mark.usefixtures("life")
def test_bare_probabilities_are_given_on_request_and_the_labels_stay(bert: Path) -> None:
    """Calibrated by the estimate, or not: other probabilities, the same labels and accuracy."""
    calibrated, bare = (
        [json.loads(line) for line in selftrain(f"{PREDICT} {bert} --json {raw}").out.splitlines()]
        for raw in ("", "--raw")
    )
    assert [row["label"] for row in calibrated] == [row["label"] for row in bare]
    assert [row["p_good"] for row in calibrated] != [row["p_good"] for row in bare]
    scores, bare_scores = (
        json.loads(selftrain(f"{EVALUATE} {bert} --json {raw}").out) for raw in ("", "--raw")
    )
    assert scores["accuracy"] == bare_scores["accuracy"]
    assert scores["calibration_error"] != bare_scores["calibration_error"]


@pytest.mark.usefixtures("life")
def test_predict_leaves_out_labels_it_is_not_sure_of_and_counts_them(bert: Path) -> None:
    said = selftrain(f"{PREDICT} {bert} --abstain 1")
    assert said.lines == ["none of 10 texts has a label"]
    assert {row["label"] for row in csv.DictReader(said.out.splitlines())} == {""}
    assert (
        selftrain(f"{PREDICT} {bert} --abstain 0.01")
        .lines[0]
        .startswith("10 of 10 texts have a label (100%); about ")
    )
    wrong = selftrain(f"{PREDICT} {bert} --abstain 80")
    assert wrong.code == 1
    assert "a probability from 0 to 1" in wrong.err


@pytest.mark.usefixtures("life")
def test_any_round_answers_and_the_last_accepted_one_if_none_is_named(bert: Path) -> None:
    teacher, student, default = (
        selftrain(f"{PREDICT} {bert} {which}").out for which in ("--round 0", "--round 1", "")
    )
    assert teacher != student == default
    assert selftrain(f"{EVALUATE} {bert} --json --round 1").out == (
        selftrain(f"{EVALUATE} {bert} --json").out
    )
    absent = selftrain(f"{PREDICT} {bert} --round 7")
    assert absent.code == 1
    assert "run has no round 7; its last one is 1" in absent.err


@pytest.mark.usefixtures("life")
@pytest.mark.parametrize("given", ["predict run test.csv", "evaluate run test.csv --json"])
def test_bars_on_a_terminal_leave_the_data_alone(
    given: str, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """stderr is a terminal, stdout is not: `selftrain predict … > answers.csv`."""
    line = f"{given} --backbone {bert}"
    plain = selftrain(line)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(watch, "has_bars", lambda: True)
    monkeypatch.setattr(talk, "is_interactive", True)
    monkeypatch.setattr("selftrain.runs.watch.has_bars", lambda: True)
    shown = selftrain(line)
    assert shown.out == plain.out
    assert "loading" in shown.err
    assert plain.err == ""


# ── Ctrl-C ───────────────────────────────────────────────────────────────────────────────────


def test_ctrl_c_keeps_the_rounds_that_are_whole(
    folder: Path, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = experiment.self_train

    def interrupted(*arguments: Any, **more: Any) -> Iterator[Any]:
        yield next(real(*arguments, **more))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(experiment, "self_train", interrupted)
        said = selftrain(FIT.format(bert=bert))
    assert (said.code, said.out) == (130, "")
    assert said.lines[-2:] == ["the same command resumes from the last finished round", "stopped"]
    assert selftrain(FIT.format(bert=bert)).lines[0] == "run resumes after round 0"


def test_ctrl_c_before_the_first_round_leaves_nothing(
    folder: Path, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> Iterator[Any]:
        raise KeyboardInterrupt

    before = command.snapshot(folder)
    monkeypatch.setattr(experiment, "self_train", interrupted)
    assert selftrain(FIT.format(bert=bert)).code == 130
    assert command.snapshot(folder) == before
