"""What is said, and where: stdout carries data, stderr talk."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from selftrain.escape import printable

if TYPE_CHECKING:
    from rich.progress import TaskID

    from selftrain.data.rows import Notes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


# Texts and labels come from anyone: nothing in them is markup, an emoji's name or a control code.
talk = Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """One line on stderr."""
    talk.print(printable(text))


class LogLines(logging.Handler):
    """Every record of our own log is one line on stderr; a warning says that it is one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        warning = record.levelno >= logging.WARNING
        say(f"warning: {record.getMessage()}" if warning else record.getMessage())


@contextmanager
def log_shown() -> Iterator[None]:
    """Within it the log of this package is shown on stderr."""
    ours, handler = logging.getLogger("selftrain"), LogLines()
    level = ours.level
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        ours.removeHandler(handler)
        ours.setLevel(level)


def warn(notes: Notes | Iterable[str]) -> None:
    """What was put right, or will differ from what was asked, each on a line of its own."""
    for note in notes:
        said = note if isinstance(note, str) else f"{note[0]}: {note[1]}"
        say(f"warning: {said}")


def show(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    figures: bool = False,
) -> None:
    """A table on stdout."""

    clean = ([printable(cell) for cell in row] for row in rows)
    title = None if title is None else printable(title)
    made = table([printable(name) for name in head], clean, title=title, figures=figures)
    width = None if sys.stdout.isatty() else 1_000  # a pipe has no width: nothing is folded
    Console(markup=False, emoji=False, highlight=False, width=width).print(made)


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


def show_scores(scores: Mapping[str, float], title: str) -> None:
    """What ``evaluate`` found, on stdout."""
    rows = [
        (name, f"{value:.0f}" if name == "rows" else f"{value:.3f}")
        for name, value in scores.items()
    ]
    show((title, ""), rows, figures=True)


class Watch:
    """Bars on stderr for whatever takes long; they leave nothing behind, and a pipe sees none."""

    def __init__(self, *, quiet: bool = False) -> None:
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=talk,
            transient=True,
            redirect_stdout=False,  # or data would go the way of talk, to stderr
            redirect_stderr=False,
            disable=quiet or not talk.is_terminal,
        )

    def __enter__(self) -> Watch:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    @contextmanager
    def busy(self, what: str, total: int | None = None) -> Iterator[TaskID]:
        """A bar for as long as something goes on; one that only moves, where no end is known."""
        task = self._bars.add_task(what, total=total)
        try:
            yield task
        finally:
            self._bars.remove_task(task)

    def progress(self, steps: Iterable[int], what: str, total: int) -> Iterator[int]:
        """The steps as they are taken: what a ``Machine`` wants."""
        with self.busy(what, total) as task:
            for step in steps:
                yield step
                self._bars.advance(task)


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    figures: bool = False,
) -> Table:
    """A table for a terminal; where it holds figures, all but its first column stand right."""
    from rich.table import Table

    made = Table(title=title, title_justify="left")
    for place, name in enumerate(head):
        made.add_column(name, justify="right" if figures and place else "left")
    for row in rows:
        made.add_row(*row)
    return made
