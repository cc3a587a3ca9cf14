"""One cell of a comparison: a method on a task with one seed, as a line of JSON.

``selftrain bench`` writes a line for each finished cell; tables, figures and tests of "better than"
read them and nothing else. A file may come from anyone: a line that is not one of ours is an error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from filelock import FileLock
from pydantic import Field, FiniteFloat, TypeAdapter

from selftrain.errors import DataError, RunError, parsed
from selftrain.training.metrics import MOST, Bin, Several, Share

FORMAT = 1
REFERENCE = "reference"  # in place of a recipe: it has nothing to decide
HINT = "give a cells.jsonl that selftrain bench wrote"
LARGEST = 64 * 2**20  # bytes of a file of cells: some hundred thousand of them
Count = Annotated[int, Field(ge=0, le=MOST)]
Shots = Several | Literal["full"]


class Key(NamedTuple):
    """What makes a cell this one and no other."""

    task: str
    method: str
    recipe: str
    preset: str
    """Empty for a reference: it is the same in all."""
    backbone: str
    shots: Shots
    seed: int
    on: str
    most: int | None

    @property
    def twin(self) -> Key:
        """What it has in common with a cell that differs in its name alone, or its preset's."""
        return self._replace(method="", preset="")


@dataclass(frozen=True, slots=True)
class Result:
    """What one method reached on one task with one seed. Scores are shares from 0 to 1."""

    task: str
    method: str
    """Its name in the comparison: a recipe, a reference, or a recipe with something changed."""
    recipe: str
    """A hash of all that the method decides: cells are put together only where it is the same."""
    preset: str
    backbone: str
    shots: Shots
    """Labelled rows of each class."""
    seed: int
    on: Literal["test", "design"]
    rows: Several
    """How many rows were scored."""
    accuracy: Share
    """Of the round that was kept."""
    macro_f1: Share
    f1: dict[str, Share]
    """By class."""
    calibration_error: Share
    most: Count | None = None
    """At most so many rows were to be scored; None: all there are."""
    bins: tuple[Bin, ...] = ()
    by_round: tuple[Share | None, ...] = ()
    """Accuracy of the teacher and of each round; None where a round has no model."""
    kept: Count = 0
    """The round that was kept."""
    refused: tuple[Count, ...] = ()
    """Rounds that were not accepted, or broke off: the model before them stayed."""
    rounds: Count | None = None
    """So many were asked for; None for a reference, and where it is not known."""
    tuned: tuple[Count, ...] = ()
    """Parameters trained in the teacher, then in a student; without rounds, the teacher's alone."""
    total: Count | None = None
    """Parameters of the last model, frozen ones too."""
    seconds: FiniteFloat | None = None
    """Training and annotating, added up over the rounds; None for a reference."""
    device: str = ""
    """Where it was trained, as its run folder says; and with how many threads."""
    threads: Count | None = None
    also_in_train: Count = 0
    """Scored rows whose text is also labelled or in the pool."""
    run: str | None = None
    """The run folder, seen from the file of cells; None for a reference. By now it may hold more
    rounds than ``by_round``, if it was asked for them since."""
    data: str = ""
    """A hash of the task's files; nothing where it is not known."""
    weights: str = ""
    """A hash of the backbone's."""
    version: str = ""
    commit: str = ""
    """Of the checkout that computed it, with a + where files differed; nothing if there is none."""
    format: int = FORMAT

    @property
    def stayed(self) -> tuple[int, ...]:
        """The rounds after which the model before them stayed: refused, or broken off.

        Older cells tell those after the kept round alone.
        """
        last = len(self.by_round)
        return tuple(sorted({*self.refused, *range(self.kept + 1, last)} & {*range(last)}))

    @property
    def broke_off(self) -> bool:
        """Whether a student's training broke off: its score is that of the model before it."""
        return None in self.by_round

    @property
    def key(self) -> Key:
        """What it is found by."""
        key = Key(*(getattr(self, name) for name in Key._fields))
        return key._replace(preset="") if self.recipe == REFERENCE else key


def append(path: Path, result: Result) -> None:
    """One more line, on disk when this returns; half a line that a kill left is taken off first.

    Several processes may append: what looks like half a line is never one that is being written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(asdict(result), allow_nan=False) + "\n"
    where = f"a cell of {result.method} cannot be kept"
    hint = "remove its run folder: the cell is computed again"
    parsed(Result, line.encode(), where, RunError, hint)  # somebody else may have written the run
    with FileLock(f"{path}.lock"), path.open("a+b") as file:
        file.seek(0)
        whole = _whole(file.read())
        file.truncate(len(whole))
        ended = not whole or whole.endswith(b"\n")
        file.write(line.encode() if ended else b"\n" + line.encode())
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[Result]:
    """Every cell of a file, in order; where one stands twice, the later one counts."""
    found: dict[object, Result] = {}
    for result in _lines(path):
        found.pop(result.key, None)
        found[result.key] = result
    return list(found.values())


def _whole(raw: bytes) -> bytes:
    """A file's bytes without half a line at its end; a line that lacks only its break is whole."""
    end = raw.rfind(b"\n") + 1
    try:
        json.loads(raw[end:])
    except (ValueError, RecursionError):
        return raw[:end]
    return raw


def _lines(path: Path) -> Iterator[Result]:
    try:
        if path.stat().st_size > LARGEST:
            raise DataError(f"{path} has more than {LARGEST:,} bytes: no file of cells", HINT)
        text = _whole(path.read_bytes()).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}", HINT) from None
    kind = TypeAdapter(Result)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        result = parsed(kind, line.encode(), f"{path}, line {number}", DataError, HINT)
        if result.format != FORMAT:
            raise DataError(
                f"{path}, line {number} has format {result.format}; "
                f"this version reads format {FORMAT}",
                "take the version of selftrain that wrote it",
            )
        yield result
