"""`selftrain methods`, `check` and `doctor`: what they print."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from command import selftrain


def test_methods_are_listed_and_given_in_full() -> None:
    listed, given = selftrain("methods"), selftrain("methods --json")
    assert (listed.code, given.err) == (0, "")
    assert "cest is a reconstruction" in listed.err
    assert "-wo- and one of: res-all, res-uniform, certainty" in listed.err
    plain = json.loads(given.out)
    for each in plain:
        assert each["name"] in listed.out
    assert {"upet-head-adapter", "upet-prompt-prefix", "head-ft"} <= {m["name"] for m in plain}


def test_what_methods_print_can_be_given_back_as_a_config(folder: Path, bert: Path) -> None:
    """Every entry of the JSON is an entry of the config's [method] table."""
    from selftrain.method.changes import method_of

    for preset in ("laptop", "paper"):
        for plain in json.loads(selftrain(f"methods --preset {preset} --json").out):
            changes = {key: value for key, value in plain.items() if key != "student"}
            assert method_of(changes, preset).name == plain["name"]


def test_check_shows_the_tokens_of_every_label_word(bert: Path) -> None:
    words = "--word good=great --word bad=terrible"
    line = f'check --backbone {bert} --template "{{text}} It was {{mask}} ." {words}'
    assert selftrain(line).code == 0
    found = json.loads(selftrain(f"{line} --json").out)
    assert [(each["label"], each["pieces"], each["ok"]) for each in found] == [
        ("bad", ["terrible"], True),
        ("good", ["great"], True),
    ]


def test_check_reads_the_template_of_a_pair(bert: Path) -> None:
    line = 'check --template "{a} ? {mask} , {b}" --word same=yes --word other=no'
    assert selftrain(f"{line} --backbone {bert}").code == 0


def test_check_prints_the_verdict_on_every_word_before_it_fails(bert: Path) -> None:
    line = 'check --template "{text} {mask}" --word a=great --word b=dullness --word c=no'
    said = selftrain(f"{line} --backbone {bert} --json")
    assert said.code == 1
    assert [each["ok"] for each in json.loads(said.out)] == [True, False, True]


def test_doctor_prints_what_a_bug_report_needs() -> None:
    facts = json.loads(selftrain("doctor --json").out)
    assert facts["selftrain"] == version("selftrain")
    listed = selftrain("doctor")
    assert (listed.code, listed.err) == (0, "")
    assert all(value in listed.out for value in facts.values())


def test_a_table_in_a_pipe_is_not_folded() -> None:
    assert "upet-prompt-ptuning" in selftrain("methods").out
    widths = {len(line) for line in selftrain("doctor").out.splitlines()}
    assert len(widths) == 1
