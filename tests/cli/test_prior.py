"""Answers for other class shares, and the estimate beside the truth."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from command import FIT, selftrain
from selftrain.errors import ConfigError
from selftrain.runs.prior import given

PREDICT = "predict run test.csv --json --backbone"
EVALUATE = "evaluate run test.csv --json --backbone"


def rows(line: str) -> list[dict[str, Any]]:
    said = selftrain(line)
    assert said.code == 0, said.err
    return [json.loads(each) for each in said.out.splitlines()]


def stored(run: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((run / "estimate.json").read_text())
    return facts


def bayes(p_bad: float, wanted: tuple[float, float], believed: tuple[float, float]) -> float:
    bad, good = p_bad * wanted[0] / believed[0], (1 - p_bad) * wanted[1] / believed[1]
    return bad / (bad + good)


@pytest.mark.parametrize("prior", ["pool", "good=0.97,bad=0.03"])
def test_answers_for_other_class_shares_are_bayes_of_calibrated_probabilities(
    life: Path, bert: Path, prior: str
) -> None:
    estimate = stored(life / "run")["estimate"]["rounds"][-1]
    assert sum(estimate["belief"]) == pytest.approx(1)
    assert sum(estimate["prior"]) == pytest.approx(1)
    wanted = estimate["prior"] if prior == "pool" else (0.03, 0.97)
    before = rows(f"{PREDICT} {bert} --round 1")
    after = rows(f"{PREDICT} {bert} --round 1 --prior {prior}")
    for one, other in zip(before, after, strict=True):
        expected = bayes(one["p_bad"], wanted, estimate["belief"])
        assert other["p_bad"] == pytest.approx(expected, abs=1e-4)
        assert other["label"] == ("bad" if other["p_bad"] > 0.5 else "good")
    assert before == rows(f"{PREDICT} {bert} --round 1 --prior model")


@pytest.mark.usefixtures("life")
def test_other_shares_change_answers_and_a_line_says_so(bert: Path) -> None:
    said = selftrain(f"{PREDICT} {bert} --prior good=0.9999,bad=0.0001")
    assert {json.loads(line)["label"] for line in said.out.splitlines()} == {"good"}
    assert said.lines[0].startswith("answers corrected to class shares 0:100; the model believes ")
    scores = json.loads(selftrain(f"{EVALUATE} {bert} --prior good=0.9999,bad=0.0001").out)
    assert scores["accuracy"] == 0.5, "five of ten test rows are good"
    assert "expected" not in scores, "the estimate is one of the model's own answers"


def test_evaluate_shows_the_estimate_beside_the_truth(life: Path, bert: Path) -> None:
    expected = stored(life / "run")["estimate"]["rounds"][0]["expected"]
    scores = json.loads(selftrain(f"{EVALUATE} {bert} --round 0").out)
    assert scores["expected"] == expected
    table = selftrain(f"evaluate run test.csv --backbone {bert} --round 0").out.splitlines()
    at = next(place for place, line in enumerate(table) if "│ accuracy" in line)
    shown = f"{expected['accuracy']:.2f} ({expected['low']:.2f} to {expected['high']:.2f})"
    assert shown in table[at + 1]
    (life / "run" / "estimate.json").unlink()
    assert "expected" not in json.loads(selftrain(f"{EVALUATE} {bert} --round 0").out)
    assert "expected" not in selftrain(f"evaluate run test.csv --backbone {bert}").out


@pytest.mark.parametrize("command", [PREDICT, EVALUATE])
def test_without_an_estimate_other_shares_are_refused(life: Path, bert: Path, command: str) -> None:
    (life / "run" / "estimate.json").unlink()
    said = selftrain(f"{command} {bert} --prior pool")
    assert (said.code, said.out) == (1, "")
    assert said.lines == [
        "error: run has no estimate of the class shares that this model believes",
        "hint: give the same `selftrain fit` again, which writes one if the labels allow it; "
        "or --prior model",
    ]


def test_an_earlier_estimate_still_calibrates_and_the_same_fit_adds_the_shares(
    life: Path, bert: Path
) -> None:
    path = life / "run" / "estimate.json"
    now, facts = rows(f"{PREDICT} {bert}"), stored(life / "run")
    facts["constants"] = facts["constants"][:3]
    for each in facts["estimate"]["rounds"]:
        del each["belief"], each["prior"]
    path.write_text(json.dumps(facts))
    assert rows(f"{PREDICT} {bert}") == now
    assert "no estimate of the class shares" in selftrain(f"{PREDICT} {bert} --prior pool").err
    assert selftrain(FIT.format(bert=bert) + " --dev dev.csv").code == 0
    assert selftrain(f"{PREDICT} {bert} --prior pool").code == 0


@pytest.mark.parametrize(
    "shares", [[0.0, 1.0], [1.0], [0.2, 0.3, 0.5], [-1e-10, 1.0], [math.nan, 0.5], ["a", "b"]]
)
def test_shares_of_a_stranger_are_not_trusted(life: Path, bert: Path, shares: list[Any]) -> None:
    facts = stored(life / "run")
    for each in facts["estimate"]["rounds"]:
        each["belief"] = shares
    (life / "run" / "estimate.json").write_text(json.dumps(facts))
    said = selftrain(f"{PREDICT} {bert} --prior pool")
    assert said.code == 1
    assert "estimate.json" in said.lines[0]


@pytest.mark.usefixtures("life")
def test_bare_probabilities_are_not_corrected(bert: Path) -> None:
    for command in (PREDICT, EVALUATE):
        said = selftrain(f"{command} {bert} --raw --prior pool")
        assert said.code == 1
        assert "--raw asks for bare ones" in said.lines[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pol", "--prior is 'pol'; expected `model`, `pool` or a share for each class"),
        ("good=0.2,bda=0.8", "--prior names `bda`; the model knows `good`, `bad`"),
        ("good=0.2,bad=much", "--prior gives `bad` the share 'much'"),
        ("good=0,bad=1", "the share of `good` is 0.0; expected 0 to 1"),
        ("good=nan,bad=0.5", "the share of `good` is nan"),
        ("good=0.2", "--prior gives no share for `bad`"),
        ("good=0.2,bad=0.7", "the sum of --prior is 0.9; expected 1"),
    ],
)
def test_shares_that_cannot_be_meant_are_named(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        given(text, ("good", "bad"))
    assert raised.value.message.startswith(problem)


def test_shares_may_be_rounded_and_a_name_may_have_an_equals_sign() -> None:
    thirds = given("a=0.33,b=0.33,x=y=0.33", ("a", "b", "x=y"))
    assert thirds == pytest.approx([1 / 3] * 3)
