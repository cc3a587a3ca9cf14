"""A folder of tasks, each split into rows to learn from, design rows and test rows.

The folder has one folder for each task, with train and test as JSONL, gzipped or not, or as
Parquet, CSV or TSV. Labelled rows (k of each class, by seed), the pool and the design rows come
from train. A hash of each text decides where it goes, so the order of a file changes nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from selftrain.data.fewshot import sample
from selftrain.data.pool import remove_overlap
from selftrain.data.read import Columns, Reading, read_labelled
from selftrain.data.rows import Labelled, Notes, Split
from selftrain.data.split import make_split
from selftrain.data.task import Task
from selftrain.disk import sha256
from selftrain.errors import DataError
from selftrain.seeds import uniform

if TYPE_CHECKING:
    from selftrain.experiments.results import Shots  # a type alone: its module loads torch

DESIGN = 1000
"""Rows of train on which decisions are made; none for a task with fewer than twice as many."""
ENDINGS = (".jsonl", ".jsonl.gz", ".parquet", ".csv", ".tsv")


@dataclass(frozen=True, slots=True)
class Taskset:
    """The rows of one task. Only ``test`` reads test rows, for the final evaluation."""

    folder: Path
    task: Task
    rows: tuple[Labelled, ...]
    """To learn from: a few of them with their label, the others as the pool."""
    design: tuple[Labelled, ...]

    @classmethod
    def read(cls, data: Path, task: Task) -> Taskset:
        """Read the train rows of a task and set design rows aside."""
        folder = data / task.name
        rows = by_hash(_read(folder, "train", task))
        design = DESIGN if len(rows) >= 2 * DESIGN else 0
        return cls(folder, task, tuple(rows[design:]), tuple(rows[:design]))

    def test(self, max_rows: int | None = None) -> tuple[Labelled, ...]:
        """The test rows, at most ``max_rows`` of them; the same for every seed."""
        return tuple(by_hash(_read(self.folder, "test", self.task))[:max_rows])

    def split(self, shots: Shots, seed: int, notes: Notes | None = None) -> Split:
        """The labelled rows of a seed and the pool, from which texts of design rows are removed.

        With all labels there is no pool.
        """
        notes = notes or Notes()
        if shots == "full":
            return Split(self.rows, ())
        labelled, others = sample(self.rows, shots, seed, notes=notes)
        pool = remove_overlap(others, self.design, notes, "design")
        return make_split(labelled, pool, notes=notes)


def by_hash(rows: list[Labelled]) -> list[Labelled]:
    """The rows in an order that does not depend on the file."""
    return sorted(rows, key=lambda row: uniform(0, row.example.uid))


def fingerprint(data: Path, task: Task) -> str:
    """A hash of a task's files: other rows, or another order, give another hash."""
    files = filter(None, (_file(data / task.name, part) for part in ("train", "test")))
    stats = [(path, path.stat()) for path in files]
    return _hash(*((path, stat.st_mtime_ns, stat.st_size) for path, stat in stats))


@cache
def _hash(*files: tuple[Path, int, int]) -> str:
    """Of files with these times and sizes: a grid asks many times."""
    combined = hashlib.sha256()
    for path, _, _ in files:
        combined.update(bytes.fromhex(sha256(path)))
    return combined.hexdigest()


def find(folder: Path, part: str) -> Path:
    """The file of a part, train or test, in any known format."""
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
    as_written = Reading(keep_na=True, exact_labels=True)  # the task says which labels there are
    return read_labelled(find(folder, part), columns, as_written, notes=Notes())
