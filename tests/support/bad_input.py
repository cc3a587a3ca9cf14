"""A command that goes wrong: what is typed, what is spoilt before, and what must be said."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from command import config, csv, selftrain, sentences, snapshot


@dataclass(frozen=True)
class Case:
    """A command, what is spoilt before it is given, and what the error line must hold."""

    command: str
    said: str
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    config: str = ""
    """Lines added to the config file."""
    spoil: Callable[[Path], object] = lambda folder: None
    """Done to the folder, which then holds a finished run named `done`."""
    hint: str = ""


def labelled(*rows: tuple[str, str]) -> dict[str, str]:
    return {"labelled.csv": csv([*sentences(8), *rows], "text", "label")}


def pairs(*rows: tuple[str, str, str]) -> str:
    return csv(rows, "text", "pair", "label")


def check_refused(case: Case, folder: Path, bert: Path, done: Path) -> None:
    """One line and a hint, exit code 1, and nothing half-written."""
    for file, content in case.files.items():
        (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "quick.toml").write_text(config(case.config), encoding="utf-8")
    if "done" in case.command:
        shutil.copytree(done, folder / "done")
        case.spoil(folder)
    before = snapshot(folder)

    said = selftrain(case.command.format(bert=bert))

    errors = [line for line in said.lines if line.startswith("error: ")]
    hints = [line for line in said.lines if line.startswith("hint: ")]
    assert said.code == 1, said.err
    assert len(errors) == len(hints) == 1, said.err
    assert case.said in errors[0]
    assert case.hint in hints[0]
    assert "Traceback" not in said.err
    assert said.out == "" or case.command.startswith("check")
    assert snapshot(folder) == before
