"""Printing: stdout carries data, stderr messages."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console

from selftrain.errors import SelftrainError
from selftrain.escape import printable
from selftrain.runs.watch import Watch, talk

__all__ = ["Watch"]

if TYPE_CHECKING:
    from rich.table import Table

    from selftrain.data.rows import Notes
    from selftrain.training.ranks import Ranks

LONGEST_NAME = 40  # characters of a name that is never wrapped


def say(text: str) -> None:
    """One line on stderr."""
    talk.print(printable(text))


class LogLines(logging.Handler):
    """Prints every record of our log as a line on stderr; a warning starts with that word."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        warning = record.levelno >= logging.WARNING
        say(f"warning: {record.getMessage()}" if warning else record.getMessage())


def warn(notes: Notes | Iterable[str]) -> None:
    """Print each warning on a line, with its count where it has one."""
    for note in notes:
        text = note if isinstance(note, str) else f"{note[0]}: {note[1]}"
        say(f"warning: {text}")


def duration(seconds: float) -> str:
    """A length of time in words.

    >>> duration(40), duration(600), duration(9000)
    ('about a minute', 'about 10 minutes', 'about 2.5 hours')
    """
    if seconds < 90:
        return "about a minute"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} minutes"
    return f"about {seconds / 3600:.1f} hours"


# ── data, on stdout ──


def show(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    numeric: bool = False,
) -> None:
    """A table on stdout; without lines between the columns if the terminal is too narrow."""
    body = [[printable(cell) for cell in row] for row in rows]
    names = [printable(name) for name in head]
    title = None if title is None else printable(title)
    width = None if sys.stdout.isatty() else 1_000  # a pipe has no width: nothing is folded
    console = Console(markup=False, emoji=False, highlight=False, width=width)
    lined = table(names, body, title=title, numeric=numeric)
    fits = lined.__rich_measure__(console, console.options.update(max_width=1_000)).maximum
    narrow = fits > console.width
    console.print(
        table(names, body, title=title, numeric=numeric, narrow=True) if narrow else lined
    )


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    numeric: bool = False,
    narrow: bool = False,
) -> Table:
    """A table for a terminal; if numeric, all columns after the first are aligned right.

    The first column holds names: if narrow, it stays on one line and the others wrap. Nothing
    is cut.
    """
    from rich import box
    from rich.table import Table

    grid = Table(title=title, title_justify="left")
    if narrow:
        grid.box, grid.padding = box.SIMPLE_HEAD, (0, 1, 0, 0)
        grid.show_edge = grid.pad_edge = False
    body = [list(row) for row in rows]
    for place, name in enumerate(head):
        longest = max(map(cell_len, (row[place] for row in body)), default=0)
        grid.add_column(
            name,
            justify="right" if numeric and place > 0 else "left",
            overflow="fold",
            no_wrap=narrow and place == 0 and longest <= LONGEST_NAME,
        )
    for row in body:
        grid.add_row(*row)
    return grid


def show_json(value: object) -> None:
    """Plain values on stdout."""
    print(json_of(value, indent=2))


def json_of(value: object, indent: int | None = None) -> str:
    r"""JSON as people read it, with the codes that a terminal would obey written as numbers.

    >>> print(json_of("café \x9b2J"))
    "café \u009b2J"
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return re.sub(r"[^\n -~]", _readable, text)


def _readable(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


FEW_CLASSES = 6
"""Up to here a confusion matrix fits a terminal; of more classes the largest errors are shown."""
LARGEST_ERRORS = 10


def show_evaluation(result: Mapping[str, Any], title: str) -> None:
    """An evaluation as tables on stdout: scores, then errors by confidence and by class."""
    scores = [
        (name, f"{value:.0f}" if name == "rows" else f"{value:.3f}")
        for name, value in result.items()
        if isinstance(value, float)
    ]
    if "expected" in result:
        accuracy, low, high = (result["expected"][name] for name in ("accuracy", "low", "high"))
        beside = ("expected without test rows", f"{accuracy:.2f} ({low:.2f} to {high:.2f})")
        scores.insert(1, beside)  # below the accuracy that was measured
    show((title, ""), scores, numeric=True)
    bins = [
        (f"{each['confidence']:.2f}", f"{each['accuracy']:.2f}", f"{each['rows']}")
        for each in result["reliability"]
    ]
    show(("mean confidence", "right", "rows"), bins, numeric=True)
    show(*confusion_table(result["confusion"]), numeric=True)


def confusion_table(
    counts: Mapping[str, Mapping[str, int]],
) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Head and rows of a confusion matrix; of many classes the most frequent errors."""
    if len(counts) <= FEW_CLASSES:
        rows = [(label, *map(str, row.values())) for label, row in counts.items()]
        return ("true label", *(f"answered {label}" for label in counts)), [*rows]
    wrong = [
        (label, answer, number)
        for label, row in counts.items()
        for answer, number in row.items()
        if number and answer != label
    ]
    largest = sorted(wrong, key=lambda each: -each[2])[:LARGEST_ERRORS]
    return ("true label", "answered as", "rows"), [(a, b, str(n)) for a, b, n in largest]


@contextmanager
def one_voice(ranks: Ranks) -> Iterator[Ranks]:
    """Where several processes train, the first speaks; an error of another says whose it is."""
    if ranks.first:
        yield ranks
        return
    talk.quiet = True
    try:
        yield ranks
    except SelftrainError as error:
        error.message = f"process {ranks.index + 1} of {ranks.count}: {error.message}"
        raise
    finally:
        talk.quiet = False


# ── progress, on stderr ──


@contextmanager
def resumable(watch: Watch) -> Iterator[None]:
    """Show that training runs; after Ctrl-C say how to resume it."""
    with watch.busy("self-training"):
        try:
            yield
        except KeyboardInterrupt:
            say("the same command resumes from the last finished round")
            raise
