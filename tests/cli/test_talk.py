"""What reaches a terminal: no codes of a stranger, and no name cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import command
from command import selftrain
from selftrain.cli.talk import confusion_table, json_of, show
from selftrain.escape import printable


def test_codes_that_move_a_terminals_cursor_are_not_passed_on() -> None:
    assert printable("caf\u00e9 \x1b[2J\r\u202e") == "caf\u00e9 \\x1b[2J\\r\\u202e"


def test_json_has_no_codes_and_the_same_values() -> None:
    value = {"caf\u00e9 \x9b": ["\u202e\x7f\x1b\n", "\U000e0001\ud800", "\U0001f600", 1.5]}
    for indent in (None, 2):
        text = json_of(value, indent)
        assert json.loads(text) == value
        assert text.replace("\n", "").isprintable()
        assert "caf\u00e9" in text
        assert "\U0001f600" in text


def test_a_table_sends_no_codes_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show(["head\x1b"], [["cell\x1b"]], title="title\x1b")
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert all(f"{part}\\x1b" in told for part in ("head", "cell", "title"))


def test_a_label_cannot_paint_the_screen(folder: Path) -> None:
    rows = [*command.sentences(8), ("a film", "\x1b[31m[bold]:bomb:")]
    (folder / "labelled.csv").write_text(command.csv(rows, "text", "label"), encoding="utf-8")
    said = selftrain("fit labelled.csv -u pool.csv -o run")
    assert said.lines[0].startswith(r"error: class `\x1b[31m[bold]:bomb:` has 1 labelled example")


def test_of_many_classes_the_most_frequent_errors_are_shown() -> None:
    labels = [f"c{number}" for number in range(8)]
    counts = {label: dict.fromkeys(labels, 0) | {label: 9} for label in labels}
    counts["c1"]["c2"], counts["c5"]["c0"] = 3, 4
    head, rows = confusion_table(counts)
    assert head == ("true label", "answered as", "rows")
    assert rows == [("c5", "c0", "4"), ("c1", "c2", "3")]


def test_of_few_classes_the_whole_matrix_is_shown() -> None:
    head, rows = confusion_table({"ham": {"ham": 5, "spam": 1}, "spam": {"ham": 0, "spam": 2}})
    assert head == ("true label", "answered ham", "answered spam")
    assert rows == [("ham", "5", "1"), ("spam", "0", "2")]
