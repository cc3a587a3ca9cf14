"""The command line before it works: exit codes, errors, pipes, and what it loads."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
from importlib.metadata import version
from io import StringIO
from pathlib import Path

import pytest

import command
from command import selftrain

# ── before anything heavy is loaded ──────────────────────────────────────────────────────────

HEAVY = ("torch", "transformers", "numpy", "sklearn", "accelerate", "pyarrow")
LIGHT = f"""\
import sys
from selftrain.cli import main

for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit as ended:
        heavy = [name for name in {HEAVY} if name in sys.modules]
        print("code", ended.code, heavy, file=sys.stderr)
"""


def test_help_and_bad_paths_columns_and_folders_load_nothing_heavy(folder: Path) -> None:
    lines = {
        "--help": 0,
        "fit --help": 0,
        "--version": 0,
        "fit nowhere.csv -u pool.csv -o run": 1,
        "fit labelled.csv -u pool.csv -o run --text review": 1,
        "fit labelled.csv -u pool.csv -o .": 1,
        "fit labelled.csv -u nowhere.csv -o run": 1,
        "fit labelled.csv -u labelled.csv -o run --label topic": 1,
        "predict nowhere test.csv": 1,
        "evaluate nowhere test.csv": 1,
        "bench nowhere -o grid": 1,
        "bench . -o grid --task sst2": 1,
        "sweep . -o search --tasks agnews": 1,
    }
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, *lines], capture_output=True, text=True, check=True
    )
    said = [line for line in done.stderr.splitlines() if line.startswith("code")]
    assert said == [f"code {code} []" for code in lines.values()], done.stderr


# ── words and exit codes ─────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_stdout_is_one_line_and_a_hint() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "selftrain", "methods"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if line] == [
        "error: cannot write: No space left on device",
        "hint: make room, then give the command again",
    ]


@pytest.mark.parametrize("line", ["methods", "fit labelled.csv -u pool.csv -o run"])
def test_a_closed_stdout_is_one_line_and_a_hint_before_anything_is_done(
    line: str, folder: Path
) -> None:
    closed = f"{shlex.quote(sys.executable)} -m selftrain {line} >&-"
    done = subprocess.run(["sh", "-c", closed], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert [each for each in done.stderr.splitlines() if each] == [
        "error: standard output is closed",
        "hint: give it a place: selftrain … > answers.csv",
    ]
    assert not (folder / "run").exists()


def test_a_closed_stderr_leaves_the_data_as_it_is() -> None:
    closed = f"{shlex.quote(sys.executable)} -m selftrain methods --json 2>&- <&-"
    done = subprocess.run(["sh", "-c", closed], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout == selftrain("methods --json").out


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried …"),
        RuntimeError("CUDA out of memory. Tried to allocate 20 MiB"),
    ],
)
def test_a_lack_of_memory_is_one_line_and_a_hint(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starved() -> dict[str, str]:
        raise error

    monkeypatch.setattr("selftrain.cli.doctor.facts", starved)
    said = selftrain("doctor")
    assert said.code == 1
    assert said.lines[0] == "error: there is not enough memory"
    assert "batch_size" in said.lines[1]


def test_a_reader_that_has_enough_ends_a_command_without_a_word() -> None:
    ours = f"{shlex.quote(sys.executable)} -m selftrain"
    line = f"{{ {ours} --help; echo code $? >&2; }} | :"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.stderr == "code 1\n"


def test_a_pipe_is_written_in_utf8_whatever_the_locale_says() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-m", "selftrain", "methods"],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONIOENCODING": encoding},
        ).stdout.decode("utf-8")
        for encoding in ("latin-1", "utf-8")
    ]
    assert told[0] == told[1]
    assert "\u2502" in told[0]


def test_version_is_that_of_the_package() -> None:
    assert selftrain("--version") == (0, f"{version('selftrain')}\n", "")


def test_without_a_command_the_help_page_is_printed() -> None:
    said = selftrain("")
    assert (said.code, said.err) == (0, "")
    assert said.out == selftrain("--help").out
    for name in ("demo", "fit", "predict", "evaluate", "methods", "check", "doctor"):
        assert name in said.out


@pytest.mark.parametrize(
    ("line", "problem", "hint"),
    [
        ("learn", "No such command 'learn'", "selftrain --help"),
        ("predict", "Missing argument", "selftrain predict --help"),
        ("fit a.csv -o run", "Missing option '--unlabelled'", "selftrain fit --help"),
        ("methods --jsn", "No such option", "selftrain methods --help"),
        ("fit a.csv -u b.csv -o run --rounds two", "Invalid value", "selftrain fit --help"),
    ],
)
def test_a_command_that_cannot_be_read_is_exit_code_2_and_a_hint(
    line: str, problem: str, hint: str
) -> None:
    said = selftrain(line)
    assert (said.code, said.out) == (2, "")
    assert said.lines[0].startswith(f"error: {problem}")
    assert said.lines[-1] == f"hint: {hint}"


def test_a_bug_of_ours_shows_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> dict[str, str]:
        raise ZeroDivisionError

    monkeypatch.setattr("selftrain.cli.doctor.facts", broken)
    with pytest.raises(ZeroDivisionError):
        command.main(["doctor"])


class Gone(StringIO):
    """A pipe whose reader has seen enough: `selftrain … | head`."""

    def write(self, text: str, /) -> int:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def test_a_reader_who_has_seen_enough_ends_the_command_in_silence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Gone())
    with pytest.raises(SystemExit):
        command.main(["methods", "--json"])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "line", ["demo", "bench folder", "table main cells.jsonl", "figure rounds cells.jsonl -o x.png"]
)
def test_rows_that_nobody_scores_are_refused_before_anything_is_read(line: str) -> None:
    said = selftrain(f"{line} --on dev")
    assert (said.code, said.out) == (2, "")
    assert "'dev' is not one of 'test', 'design'" in said.err


def test_a_shell_completes_commands() -> None:
    asked = {"COMP_WORDS": "selftrain pre", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "selftrain"],
        env={**os.environ, **asked, "_SELFTRAIN_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["predict"]
