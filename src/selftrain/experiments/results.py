"""One result of a comparison: a method on a task with one seed, as a line of JSON.

``selftrain bench`` appends a line to ``cells.jsonl`` for each cell of its grid; tables, figures and
significance tests read nothing else. A file may come from anyone: a wrong line is an error.
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

from selftrain.errors import DataError, RunError, check_format, parsed
from selftrain.training.metrics import MOST, Bin, Several, Share

FORMAT = 2
REFERENCE = "reference"  # in place of a recipe's hash: it has no settings
HINT = "give a cells.jsonl that selftrain bench wrote"
LARGEST = 64 * 2**20  # bytes of a file of cells: some hundred thousand of them
Count = Annotated[int, Field(ge=0, le=MOST)]
Shots = Several | Literal["full"]


class Key(NamedTuple):
    """What tells one cell from another."""

    task: str
    method: str
    recipe: str
    preset: str
    """Empty for a reference, which is the same in all presets."""
    backbone: str
    shots: Shots
    seed: int
    scored_on: str
    max_rows: int | None

    @property
    def twin(self) -> Key:
        """The key without names: equal for two cells that compute the same thing."""
        return self._replace(method="", preset="")


@dataclass(frozen=True, slots=True)
class Result:
    """The scores of one method on one task with one seed, as shares from 0 to 1."""

    task: str
    method: str
    """Its name in the comparison: a recipe, a reference, or a recipe with something changed."""
    recipe: str
    """A hash of the method's settings; tables average only over cells that have the same."""
    preset: str
    backbone: str
    shots: Shots
    """Labelled rows of each class."""
    seed: int
    scored_on: Literal["test", "design"]
    rows: Several
    """How many rows were scored."""
    accuracy: Share
    """Of the final round."""
    macro_f1: Share
    f1: dict[str, Share]
    """By class."""
    calibration_error: Share
    max_rows: Count | None = None
    """The limit on scored rows; None: no limit."""
    bins: tuple[Bin, ...] = ()
    by_round: tuple[Share | None, ...] = ()
    """Accuracy of the teacher and of each round; None where a round has no model."""
    final_round: Count = 0
    """The last accepted round, whose model is scored; 0 is the teacher."""
    refused: tuple[Count, ...] = ()
    """Rounds that were not accepted, or broke off."""
    rounds: Count | None = None
    """The number of rounds in the settings; None for a reference, and where it is unknown."""
    tuned: tuple[Count, ...] = ()
    """Parameters trained in the teacher, then in a student; without rounds, the teacher's alone."""
    total: Count | None = None
    """Parameters of the last model, frozen ones too."""
    seconds: FiniteFloat | None = None
    """Training and annotating, added up over the rounds; None for a reference."""
    device: str = ""
    """Where it was trained, from the manifest of its run; empty where it is unknown."""
    threads: Count | None = None
    """With how many threads the run began."""
    also_in_train: Count = 0
    """Scored rows whose text is also labelled or in the pool."""
    run: str | None = None
    """The run folder, relative to the file of cells; None for a reference. A later command may have
    added rounds to it that ``by_round`` does not have."""
    data: str = ""
    """A hash of the task's files; empty where it is unknown."""
    weights: str = ""
    """A hash of the backbone's weights."""
    version: str = ""
    """Of selftrain."""
    commit: str = ""
    """Of the checkout that computed it, with a + where files differed; empty if there is none."""
    format: int = FORMAT

    @property
    def rejected(self) -> tuple[int, ...]:
        """The rounds whose student did not replace its teacher: refused, or broken off.

        Older results list only those after the final round.
        """
        count = len(self.by_round)
        after_final = range(self.final_round + 1, count)
        return tuple(sorted({*self.refused, *after_final} & {*range(count)}))

    @property
    def broke_off(self) -> bool:
        """Whether a student's training broke off; the score is then that of an earlier model."""
        return None in self.by_round

    @property
    def key(self) -> Key:
        """What this result is found by."""
        key = Key(*(getattr(self, name) for name in Key._fields))
        return key._replace(preset="") if self.recipe == REFERENCE else key


def append(path: Path, result: Result) -> None:
    """Append a line, on disk when this returns; half a line that a kill left is removed first.

    Several processes may append: the lock keeps each from seeing another's half-written line.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(asdict(result), allow_nan=False) + "\n"
    where = f"a cell of {result.method} cannot be kept"
    hint = "remove its run folder: the cell is computed again"
    parsed(Result, line.encode(), where, RunError, hint)  # somebody else may have written the run
    with FileLock(f"{path}.lock"), path.open("a+b") as file:
        file.seek(0)
        complete = _complete(file.read())
        file.truncate(len(complete))
        ended = not complete or complete.endswith(b"\n")
        file.write(line.encode() if ended else b"\n" + line.encode())
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[Result]:
    """Every result of a file, in order; of two with the same key, the later one counts."""
    by_key: dict[Key, Result] = {}
    for result in _lines(path):
        by_key.pop(result.key, None)
        by_key[result.key] = result
    return list(by_key.values())


def _complete(raw: bytes) -> bytes:
    """A file's bytes without half a line at the end; a line may lack its line break."""
    end = raw.rfind(b"\n") + 1
    try:
        json.loads(raw[end:])
    except (ValueError, RecursionError):
        return raw[:end]
    return raw


def _lines(path: Path) -> Iterator[Result]:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise DataError(f"{path} has more than {LARGEST:,} bytes: no file of cells", HINT)
        text = _complete(raw).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}", HINT) from None
    kind = TypeAdapter(Result)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        check_format(line.encode(), f"{path}, line {number}", FORMAT, DataError)
        result = parsed(kind, line.encode(), f"{path}, line {number}", DataError, HINT)
        yield result
