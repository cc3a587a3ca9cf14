"""Progress: bars in a terminal alone, elsewhere a line now and then, and the time left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO

import pytest
from rich.console import Console

from selftrain.runs import watch
from selftrain.runs.watch import Doing, Watch, span


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def steps(shown: Watch, seconds: float = 0.0) -> list[int]:
    """Three steps, each so long."""

    def slow() -> Iterator[int]:
        for number in range(3):
            time.sleep(seconds)
            yield number

    return list(shown.progress(slow(), "training", 3))


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    """A stderr that is no terminal."""
    monkeypatch.setattr(watch, "LINE_EVERY", 0.05)
    return StringIO()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(watch, "talk", Console(stderr=True, force_interactive=True))
    return Terminal()


def test_without_a_terminal_a_line_comes_now_and_then(pipe: StringIO) -> None:
    with redirect_stderr(pipe), Watch() as shown:
        assert steps(shown, 0.12) == [0, 1, 2]
    lines = pipe.getvalue().splitlines()
    assert any(line.startswith("training: 1 of 3, about ") for line in lines)
    assert any(line.startswith("training: 2 of 3, about ") for line in lines)
    assert all("\x1b" not in line and "━" not in line for line in lines)


def test_what_has_no_steps_says_how_long_it_has_taken(pipe: StringIO) -> None:
    with redirect_stderr(pipe), Watch() as shown, shown.busy("reading"):
        time.sleep(0.12)
    assert set(pipe.getvalue().splitlines()) == {"reading: 0 s so far"}


def test_what_is_quick_says_nothing(pipe: StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LINE_EVERY", 30.0)
    started = time.monotonic()
    with redirect_stderr(pipe), Watch() as shown:
        steps(shown)
    assert pipe.getvalue() == ""
    assert time.monotonic() - started < 5  # the end does not wait for the next line


@pytest.mark.parametrize("name", ["FORCE_COLOR", "TTY_COMPATIBLE", "CLICOLOR_FORCE"])
def test_a_wish_for_colours_brings_no_bars_into_a_file(
    name: str, pipe: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    monkeypatch.setattr(watch, "talk", Console(stderr=True, highlight=False))
    with redirect_stderr(pipe), Watch() as shown:
        assert not watch.has_bars()
        steps(shown, 0.03)
    assert "\x1b" not in pipe.getvalue()


def test_a_terminal_has_bars_with_the_time_left_and_keeps_none(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Watch() as shown:
        assert watch.has_bars()
        steps(shown, 0.15)
    assert "training" in terminal.getvalue()
    assert "left" in terminal.getvalue()
    assert "of 3" not in terminal.getvalue()


def test_bars_that_come_later_do_not_come_for_what_is_quick(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with redirect_stderr(terminal), Watch(later=True) as shown:
        steps(shown)
    assert "training" not in terminal.getvalue()
    monkeypatch.setattr(watch, "SOON", 0.05)
    with redirect_stderr(terminal), Watch(later=True) as shown:
        steps(shown, 0.15)
    assert "training" in terminal.getvalue()


def test_a_quiet_watch_says_nothing_anywhere(pipe: StringIO) -> None:
    with redirect_stderr(pipe), Watch(quiet=True) as shown:
        assert steps(shown, 0.06) == [0, 1, 2]
    assert pipe.getvalue() == ""


def test_steps_within_steps_show_the_inner_ones_and_an_error_ends_them(pipe: StringIO) -> None:
    def broken() -> Iterator[int]:
        time.sleep(0.12)
        yield 1
        time.sleep(0.12)
        raise ZeroDivisionError

    with redirect_stderr(pipe), Watch() as shown:
        with pytest.raises(ZeroDivisionError), shown.busy("self-training"):
            list(shown.progress(broken(), "training", 2))
        time.sleep(0.12)
    lines = pipe.getvalue().splitlines()
    assert lines
    assert all(line.startswith("training") for line in lines)


def test_the_time_left_follows_from_the_steps_so_far() -> None:
    assert (
        Doing("training", 10, started=0, done=4).line(8.0) == "training: 4 of 10, about 12 s left"
    )
    assert Doing("training", 10, started=0).line(8.0) == "training: 8 s so far"
    assert [span(99), span(101), span(5400)] == ["99 s", "2 min", "1.5 h"]
