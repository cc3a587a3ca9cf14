"""The command line: words and exit codes only.

stdout carries data, stderr messages. Heavy rooms are imported inside the commands, so that help is
instant and a bad path or column is reported before torch is loaded. Exit codes: 0 done, 1 an error
with a hint, 2 a command that cannot be read, 130 stopped with Ctrl-C, 143 ended by SIGTERM.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from selftrain.cli import (
    annotate,
    answer,
    audit,
    bench,
    demo,
    export,
    figures,
    fit,
    interop,
    look,
    publish,
    report,
    review,
    serve,
    sweep,
    tables,
)
from selftrain.cli.bundles import Once
from selftrain.cli.talk import LogLines, say
from selftrain.errors import SelftrainError, out_of_memory
from selftrain.runs.lines import logged_to

app = typer.Typer(
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},  # every command inherits them
)
for command in (
    demo.demo,
    fit.fit,
    annotate.annotate,
    answer.predict,
    answer.evaluate,
    report.report,
    export.export,
    publish.publish,
    serve.serve,
    audit.audit,
    review.review,
    interop.export_labels,
    bench.bench,
    tables.table,
    sweep.sweep,
    look.methods,
    look.check,
    look.doctor,
):
    app.command(cls=Once)(command)
app.command("import", cls=Once)(interop.import_labels)  # as a function it is a word of Python
app.add_typer(figures.figure, name="figure")

STOPPED = 130  # the exit code of a program ended by Ctrl-C; typer's too


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command; our own errors become one line and a hint, anything else shows its trace."""
    open_streams()
    speak_utf8()
    let_waiting_threads_sleep()
    try:
        with logged_to(LogLines()), cleaning_up():
            code = app(arguments, prog_name="selftrain", standalone_mode=False)
        sys.stdout.flush()  # here, where an error of the system can still be reported
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python tries once more
        fail(f"cannot write: {error.strerror}", "make room, then give the command again", 1)
    except SelftrainError as error:
        fail(error.message, error.hint, 1)
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        fail("there is not enough memory", LESS_MEMORY, 1)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command_path = context.command_path if context else "selftrain"
        fail(error.format_message(), f"{command_path} --help", 2)
    if code == STOPPED:
        say("stopped")
    sys.exit(code or 0)


def open_streams() -> None:
    """Refuse a closed stdout, and give talk that nobody hears a place to go.

    The first file opened would take the number of a closed stream, and get what is printed.
    """
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  (while it runs)
    if sys.stdout is None:
        fail("standard output is closed", "give it a place: selftrain … > answers.csv", 1)


LESS_MEMORY = (
    "close other programs, or take less: a smaller batch_size, pool or backbone; "
    "a run resumes from its last finished round"
)


def speak_utf8() -> None:
    """Write UTF-8 to files and pipes, and to a terminal what it can show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""How a process is asked to end: by the system, or by a terminal that is closed."""
WAIT_SETTINGS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
"""The variables by which a user chooses how threads of GNU OpenMP wait."""
SHORT_SPIN = "1000"
"""Turns of a loop before a waiting thread sleeps; GNU OpenMP itself takes 300,000."""


def let_waiting_threads_sleep() -> None:
    """Let a thread of torch that waits for the others sleep soon, unless the user chose how.

    By itself it spins for milliseconds. On a busy machine it then takes the core from the thread
    it waits for, again and again in each step. To sleep at once (``OMP_WAIT_POLICY=passive``)
    costs a quarter more time on an idle machine; a short spin costs next to nothing
    (benchmarks/busy_neighbour.py). How a thread waits does not change what it computes. Fewer
    threads would change the last bits, by how busy the machine happens to be.
    OpenMP reads the variable once, as torch is loaded: this comes before.
    """
    if not any(name in os.environ for name in WAIT_SETTINGS):
        os.environ["GOMP_SPINCOUNT"] = SHORT_SPIN


@contextmanager
def cleaning_up() -> Iterator[None]:
    """Let a command that is ended from outside remove its half-written files first.

    By itself Python ends at once. The exit code is the one that a shell gives: 143 for SIGTERM.
    """
    if threading.current_thread() is not threading.main_thread():  # no other may set a handler
        yield
        return
    unset = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in unset:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in unset:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def fail(problem: str, hint: str, code: int) -> NoReturn:
    """Print what went wrong and what to try, and exit."""
    say(f"error: {problem}")
    say("")
    say(f"hint: {hint}")
    sys.exit(code)


@app.callback(invoke_without_command=True)
def top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """A text classifier you can check, from a few labels and many unlabelled texts.

    selftrain fit labelled.csv --unlabelled pool.csv -o run
    """
    if version:
        from importlib.metadata import version as version_of

        print(version_of("selftrain"))
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
