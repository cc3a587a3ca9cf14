"""Progress on stderr: bars in a terminal or a notebook, elsewhere a line every half minute."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Texts and labels come from anyone: nothing in them is markup, an emoji's name or a control code.
talk = Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)

LINE_EVERY = 30.0  # seconds
SOON = 2.0  # seconds: what takes no longer needs no bar


def has_bars() -> bool:
    """Whether bars can move on stderr: it is a terminal, or a notebook with widgets.

    Not what rich calls a terminal: to it, ``FORCE_COLOR`` makes one of any file.
    """
    if talk.is_jupyter:
        return find_spec("ipywidgets") is not None
    return talk.file.isatty() and not talk.is_dumb_terminal


def is_watched() -> bool:
    """Whether a person looks on: stderr is a terminal, or this is a notebook."""
    return talk.is_jupyter or talk.file.isatty()


@dataclass(slots=True, eq=False)
class Doing:
    """Something that takes long: what it is, and how far it is."""

    what: str
    total: int | None
    """How many steps it has; None where no end is known."""
    started: float = field(default_factory=time.monotonic)
    done: int = 0
    bar: TaskID | None = None

    def line(self, now: float) -> str:
        """How far it is, and how long it still takes.

        >>> Doing("training", 400, started=0.0, done=100).line(now=40.0)
        'training: 100 of 400, about 2 min left'
        """
        spent = now - self.started
        if self.total is None or not self.done:
            return f"{self.what}: {span(spent)} so far"
        left = span(spent / self.done * (self.total - self.done))
        return f"{self.what}: {self.done} of {self.total}, about {left} left"


def span(seconds: float) -> str:
    """A length of time in short.

    >>> span(8.2), span(119), span(9000)
    ('8 s', '2 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Watch:
    """Shows whatever takes long: bars that leave nothing behind, or a line now and then.

    With ``later`` bars begin after two seconds of steps: what is quick shows nothing.
    """

    def __init__(self, *, quiet: bool = False, later: bool = False) -> None:
        self._doing: list[Doing] = []  # the innermost last
        self._bars = bars() if not quiet and has_bars() else None
        self._started = False
        self._later = later
        self._ended = threading.Event()
        self._lines = None
        if not quiet and self._bars is None:
            self._lines = threading.Thread(target=self._say_lines, daemon=True)

    def __enter__(self) -> Watch:
        if self._bars is not None and not self._later:
            self._start()
        if self._lines is not None:
            self._lines.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._bars is not None:
            self._bars.stop()
        if self._lines is not None:
            self._lines.join()

    def _start(self) -> None:
        assert self._bars is not None
        self._started = True
        self._bars.start()

    def _say_lines(self) -> None:
        while not self._ended.wait(LINE_EVERY):
            for doing in self._doing[-1:]:
                talk.print(doing.line(time.monotonic()))

    @contextmanager
    def busy(self, what: str, total: int | None = None) -> Iterator[Doing]:
        """Show that something runs; where no end is known, a bar only moves."""
        doing = Doing(what, total)
        self._doing.append(doing)
        if self._bars is not None:
            doing.bar = self._bars.add_task(what, total=total)
        try:
            yield doing
        finally:
            self._doing.remove(doing)
            if self._bars is not None and doing.bar is not None:
                self._bars.remove_task(doing.bar)

    def progress(self, steps: Iterable[int], what: str, total: int) -> Iterator[int]:
        """Show how far a loop over steps is: the ``progress`` of a ``Machine``."""
        with self.busy(what, total) as doing:
            for step in steps:
                yield step
                doing.done += 1
                self._show(doing)

    def _show(self, doing: Doing) -> None:
        if self._bars is None or doing.bar is None:
            return
        if not self._started and time.monotonic() - doing.started > SOON:
            self._start()
        self._bars.update(doing.bar, completed=doing.done)


def bars() -> Progress:
    """Bars with the time spent and the time left."""
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left", style="dim"),
        TimeRemainingColumn(),
        console=talk,
        transient=True,
        redirect_stdout=False,  # or data would go the way of talk, to stderr
        redirect_stderr=False,
    )
