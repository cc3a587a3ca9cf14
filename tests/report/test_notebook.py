"""What a notebook shows of a round, a run and a classifier."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import selftrain
from selftrain import SelfTrainingClassifier, read_run
from selftrain.html import interval, label, shortened, sparkline, table, visible
from selftrain.training.loop import Round


def test_a_round_shows_its_numbers_and_the_verdict(rounds: list[Round]) -> None:
    shown = rounds[1]._repr_html_()
    assert "round 1" in shown
    assert f'<td class="n">{rounds[1].numbers["picked"]}</td>' in shown
    hostile = replace(rounds[1], accepted=False, why="<script>alert(1)</script>")._repr_html_()
    assert "refused" in hostile
    assert "<script" not in hostile


def test_a_run_shows_its_estimate_its_rounds_and_its_ladder(finished: Path) -> None:
    shown = read_run(finished)._repr_html_()
    assert "expected accuracy 0." in shown
    assert "<svg" in shown
    assert "majority" in shown
    assert shown.count("<table>") == 2


def test_a_fitted_classifier_shows_its_rounds_and_another_its_parameters(
    fitted: SelfTrainingClassifier,
) -> None:
    shown = fitted._repr_html_()
    assert "teacher" in shown
    assert "round 1" in shown
    assert fitted._repr_mimebundle_()["text/html"] == shown
    assert "SelfTrainingClassifier" in SelfTrainingClassifier()._repr_html_()


def test_a_run_is_a_public_value() -> None:
    assert {"read_run", "SavedRun"} <= set(selftrain.__all__)


def test_pieces_of_html_escape_what_they_are_given() -> None:
    assert "<i>" not in table(["<i>"], [["<i>"]])
    assert "<i>" not in label("<i>")
    assert "<i>" not in sparkline([0.1, 0.2], "<i>")


def test_texts_keep_what_languages_need_and_show_what_hides() -> None:
    assert visible("a\u200db \u200c é\n\tx") == "a\u200db \u200c é\n\tx"  # joiners, line ends
    assert visible("\x00\x7f\u2066\ud800") == "␀⟨007F⟩⟨2066⟩⟨D800⟩"
    assert shortened("a" * 401) == "a" * 400 + " … (401 characters)"


def test_drawings_without_numbers_are_empty() -> None:
    assert sparkline([None, 0.5], "one") == ""
    assert interval(None, None, None) == ""
