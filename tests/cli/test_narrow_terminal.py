"""At 80 columns nothing that a person must type is cut."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer

import command
from cells import UPET, seeds
from selftrain.cli import app, main
from selftrain.cli.talk import show
from selftrain.experiments import results

WIDTH = 80
CUT = re.compile(r"\w…")
"""A word without its end; `N,N,…` in a help page is meant."""


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Give a command on a terminal of 80 columns: what it prints there."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("TERM", "dumb")

    def give(line: str) -> str:
        screen = Terminal()
        with redirect_stdout(screen), pytest.raises(SystemExit) as ended:
            main(shlex.split(line))
        assert ended.value.code == 0
        return screen.getvalue()

    return give


def check_whole(page: str) -> None:
    assert page
    assert not CUT.search(page), page
    assert all(len(line) <= WIDTH for line in page.splitlines())


def test_every_method_is_named_on_one_line(terminal: Callable[[str], str]) -> None:
    page = terminal("methods")
    check_whole(page)
    shown = [line.split()[0] for line in page.splitlines() if line.strip()]
    for method in json.loads(command.selftrain("methods --json").out):
        assert method["name"] in shown
    assert "passes" in page  # the last column


@pytest.mark.usefixtures("life")
def test_tables_of_a_run_are_whole(terminal: Callable[[str], str], bert: Path) -> None:
    file = "a-file-with-a-rather-long-name-for-a-terminal.csv"
    gold = command.csv(command.sentences(30, first=100), "text", "label")
    Path(file).write_text(gold, "utf-8")
    page = terminal(f"audit run {file}")
    check_whole(page)
    assert "good" in page
    page = terminal(f"evaluate run {file} --backbone {bert}")
    check_whole(page)
    assert file in page
    assert "calibration_error" in page


def test_doctor_and_check_are_whole(terminal: Callable[[str], str], bert: Path) -> None:
    check_whole(terminal("doctor"))
    words = "--word a-class-with-a-very-long-name-indeed=great --word other=terrible"
    page = terminal(f'check --backbone {bert} --template "{{text}} {{mask}}" {words}')
    check_whole(page)
    assert "a-class-with-a-very-long-name-indeed" in page


def test_a_table_of_cells_is_whole(terminal: Callable[[str], str], tmp_path: Path) -> None:
    file = tmp_path / "cells.jsonl"
    for result in [*seeds("majority", 0.5, 0.5), *seeds(UPET, 0.80, 0.82), *seeds("ust", 0.7)]:
        results.append(file, result)
    tables = terminal(f"table main {file}")
    assert not CUT.search(tables), tables
    assert "UPET Head-Adapter" in tables


def test_many_columns_wrap_and_lose_no_character(
    monkeypatch: pytest.MonkeyPatch, terminal: Callable[[str], str]
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    names = [f"column-{letter}" for letter in "abcdefghijkl"]
    show(["method", *names], [["upet-prompt-adapter", *(["0.123"] * len(names))]], numeric=True)
    page = screen.getvalue()
    check_whole(page)
    assert "upet-prompt-adapter" in page
    letters = "".join(page.split())
    assert all(letters.count(letter) >= 1 for letter in "abcdefghijkl")
    assert letters.count("0.") + letters.count("123") >= len(names)


# ── help ─────────────────────────────────────────────────────────────────────────────────────


def commands(group: Any, words: str = "") -> Iterator[tuple[str, Any]]:
    for name, each in group.commands.items():
        place = f"{words} {name}".strip()
        yield place, each
        if hasattr(each, "commands"):
            yield from commands(each, place)


EVERY = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", ["", *EVERY])
def test_short_and_long_help_are_one_page_with_every_option(
    words: str, terminal: Callable[[str], str]
) -> None:
    page = terminal(f"{words} -h")
    assert page == terminal(f"{words} --help")
    check_whole(page)
    for option in EVERY[words].params if words else ():
        names = option.opts if option.param_type_name == "option" else [option.metavar or ""]
        assert all(name in page for name in names)
