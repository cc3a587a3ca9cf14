"""Every command's help has an example that can be typed; the shell completes names and options."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from command import selftrain as typed
from selftrain.cli import app


def commands(command: Any, path: str) -> Iterator[Any]:
    """A command and all below it, each with its words."""
    yield pytest.param(command, path, id=path)
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{path} {name}")


COMMANDS = list(commands(typer.main.get_command(app), "selftrain"))


def examples(command: Any) -> list[str]:
    """The paragraphs of a help page that are commands of ours."""
    paragraphs = re.split(r"\n\s*\n", command.help or "")
    lines = [" ".join(each.split()) for each in paragraphs]
    return [line for line in lines if line.startswith("selftrain ")]


@pytest.mark.parametrize(("command", "path"), COMMANDS)
def test_the_help_of_a_command_has_an_example_of_it(command: Any, path: str) -> None:
    assert any(f"{line} ".startswith(f"{path} ") for line in examples(command))
    shown = typed(f"{path.removeprefix('selftrain')} --help")
    assert shown.code == 0
    lines = [line.strip(" │") for line in shown.out.splitlines()]
    assert any(line.startswith(path) for line in lines)


@pytest.mark.parametrize(("command", "path"), COMMANDS)
def test_an_example_of_a_help_page_is_read_without_a_complaint(command: Any, path: str) -> None:
    for line in examples(command):
        below, words = typer.main.get_command(app), shlex.split(line)[1:]
        while hasattr(below, "commands"):
            below, words = below.commands[words[0]], words[1:]
        below.make_context(below.name, words)  # a wrong option or value raises


@pytest.mark.parametrize(
    ("line", "place", "expected"),
    [("selftrain pub", 1, "publish"), ("selftrain fit --publ", 2, "--publish")],
)
def test_the_shell_completes_commands_and_options(line: str, place: int, expected: str) -> None:
    """As bash asks: by variables, for the program that `python -m selftrain` is too."""
    asked = {"_SELFTRAIN_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(place)}
    done = subprocess.run(
        [sys.executable, "-m", "selftrain"],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [expected]


def test_python_m_selftrain_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "selftrain", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == typed("--version").out
