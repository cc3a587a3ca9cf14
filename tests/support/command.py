"""The command line from inside: what `selftrain …` says and leaves behind, in this process."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from selftrain.cli import main

WORDS = {"good": "great good fine yes film", "bad": "terrible bad dull no story"}
NAMED = 'method.name = "upet-head-adapter"\n'
SIZES = """\
method.rounds = 1
method.pool = 24
method.passes = 2
method.converged = 0
method.teacher.steps = 8
method.teacher.batch_size = 4
method.student.steps = 3
method.student.batch_size = 4
method.select.shares = [0.5]
"""
QUICK = NAMED + SIZES
"""The paper's method in seconds; a grid names its methods itself."""


FIT = "fit labelled.csv -u pool.csv -o run --config quick.toml --backbone {bert}"
EXCLUDES = {"method.select.count ": "method.select.shares "}


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What was said on stderr, line by line, without the blank ones and ``read``."""
        return [line for line in self.err.splitlines() if line and line not in self.read]

    @property
    def read(self) -> list[str]:
        """The lines that say which columns were taken."""
        return [line for line in self.err.splitlines() if ": text from `" in line]


def selftrain(line: str) -> Said:
    """Give a command as it is typed, after the word `selftrain`."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(shlex.split(line))
    assert isinstance(ended.value.code, int)
    return Said(ended.value.code, out.getvalue(), err.getvalue())


def sentences(count: int, first: int = 0) -> list[tuple[str, str]]:
    """Texts and labels, good and bad by turns, no text twice."""
    rows = []
    for number in range(first, first + count):
        label = ("good", "bad")[number % 2]
        words = Random(number).choices(WORDS[label].split(), k=4)
        rows.append((f"{' '.join(words)} {number}", label))
    return rows


def config(lines: str = "") -> str:
    """The quick config with lines of one's own, which replace ours."""
    names = [line.partition("=")[0] for line in lines.splitlines()]
    names += [EXCLUDES[name] for name in names if name in EXCLUDES]
    ours = [line for line in QUICK.splitlines() if line.partition("=")[0] not in names]
    return "\n".join([*ours, lines])


def csv(rows: Sequence[Sequence[str]], *names: str) -> str:
    return "".join(",".join(row) + "\n" for row in [names, *rows])


def write_files(folder: Path) -> None:
    """What a user of `fit` has: labelled and unlabelled texts, dev and test rows, a config."""
    texts = {
        "labelled.csv": csv(sentences(8), "text", "label"),
        "pool.csv": csv([(text,) for text, _ in sentences(30, first=100)], "text"),
        "dev.csv": csv(sentences(6, first=200), "text", "label"),
        "test.csv": csv(sentences(10, first=300), "text", "label"),
        "quick.toml": QUICK,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Every file of a folder with its bytes, and every folder in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }
