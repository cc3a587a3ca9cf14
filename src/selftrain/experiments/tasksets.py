"""A folder of tasks as every comparison cuts it: rows to learn from, design rows, test rows.

The folder holds one folder for each task, with train and test as JSONL, gzipped or not, or as
Parquet, CSV or TSV. Labelled rows (k a class, by seed), the pool and the design rows come from
train; they are cut by a hash of each text, so the order of a file changes nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from selftrain.data.fewshot import sample
from selftrain.data.pool import remove_overlap
from selftrain.data.read import Columns, read_labelled
from selftrain.data.rows import Labelled, Notes, Split
from selftrain.data.split import make_split
from selftrain.data.task import Task
from selftrain.disk import sha256
from selftrain.errors import DataError
from selftrain.seeds import uniform

if TYPE_CHECKING:
    from selftrain.experiments.results import Shots  # a type alone: its module loads torch

DESIGN = 1000
"""Rows of train that every decision is taken on; none of a task with fewer than twice as many."""
ENDINGS = (".jsonl", ".jsonl.gz", ".parquet", ".csv", ".tsv")


@dataclass(frozen=True, slots=True)
class Taskset:
    """One task's rows. Test rows are read by ``test``, for a closing evaluation alone."""

    folder: Path
    task: Task
    rows: tuple[Labelled, ...]
    """To learn from: a few of them with their label, the rest without."""
    design: tuple[Labelled, ...]

    @classmethod
    def read(cls, data: Path, task: Task) -> Taskset:
        """The train rows of a task, cut."""
        folder = data / task.name
        rows = by_hash(_read(folder, "train", task))
        cut = DESIGN if len(rows) >= 2 * DESIGN else 0
        return cls(folder, task, tuple(rows[cut:]), tuple(rows[:cut]))

    def test(self, most: int | None = None) -> tuple[Labelled, ...]:
        """The test rows, or so many of them, the same for every seed."""
        return tuple(by_hash(_read(self.folder, "test", self.task))[:most])

    def split(self, shots: Shots, seed: int, notes: Notes | None = None) -> Split:
        """The labelled rows of a seed; the rest is the pool, without texts that are design rows.

        With all labels there is no pool: nothing is left to be unlabelled.
        """
        notes = notes or Notes()
        if shots == "full":
            return Split(self.rows, ())
        few, rest = sample(self.rows, shots, seed, notes=notes)
        pool = remove_overlap(rest, self.design, notes, "design")
        return make_split(few, pool, notes=notes)


def by_hash(rows: list[Labelled]) -> list[Labelled]:
    """The rows in an order that no file decides."""
    return sorted(rows, key=lambda row: uniform(0, row.example.uid))


def fingerprint(data: Path, task: Task) -> str:
    """A hash of a task's files: other rows, even in another order only, give another."""
    found = filter(None, (_file(data / task.name, part) for part in ("train", "test")))
    stats = [(path, path.stat()) for path in found]
    return _hash(*((path, stat.st_mtime_ns, stat.st_size) for path, stat in stats))


@cache
def _hash(*files: tuple[Path, int, int]) -> str:
    """Of files as they are at that time and size: a grid asks again and again."""
    whole = hashlib.sha256()
    for path, _, _ in files:
        whole.update(bytes.fromhex(sha256(path)))
    return whole.hexdigest()


def find(folder: Path, part: str) -> Path:
    """The file of a part, train or test, whatever its format."""
    path = _file(folder, part)
    if path is None:
        raise DataError(
            f"{folder} has no {part} file",
            f"a task is a folder with train and test: {folder.name}/{part}.jsonl",
        )
    return path


def _file(folder: Path, part: str) -> Path | None:
    paths = (folder / f"{part}{ending}" for ending in ENDINGS)
    return next((path for path in paths if path.is_file()), None)


def _read(folder: Path, part: str, task: Task) -> list[Labelled]:
    columns = Columns(text="text_a", pair="text_b") if task.pair else Columns(text="text")
    return read_labelled(find(folder, part), columns, notes=Notes())
