"""The tasks of a data folder as every script here cuts them: rows to learn from, design, test.

DATA holds one folder for each task with train.jsonl(.gz) and test.jsonl. The labelled rows
(16 a class by seed), the pool and the design rows come from train.
"""

from __future__ import annotations

from pathlib import Path

from selftrain.data import Columns, Labeled, Notes, Split, make_split, read_labelled, remove_overlap
from selftrain.fewshot import sample
from selftrain.seeds import uniform
from selftrain.task import Task

SEEDS = (12, 21, 42, 87, 100)
SHOTS = 16
DESIGN = 1000  # rows of train that every decision is taken on
TEST = 1000  # at most this many test rows, the same for every seed, chosen by hash


def train_rows(data: Path, task: Task) -> tuple[list[Labeled], list[Labeled]]:
    """Rows to learn from and design rows, cut by a hash of the text."""
    rows = _by_hash(_read(data / task.name, "train", task))
    return rows[DESIGN:], rows[:DESIGN]


def test_rows(data: Path, task: Task) -> list[Labeled]:
    """The test rows: for a closing table, never for a decision."""
    return _by_hash(_read(data / task.name, "test", task))[:TEST]


def few_shot(rows: list[Labeled], design: list[Labeled], seed: int) -> Split:
    """The labelled rows of a seed; the rest is the pool, without texts that are design rows."""
    few, rest = sample(rows, SHOTS, seed)
    return make_split(few, remove_overlap(rest, design, Notes(), "design"), notes=Notes())


def _read(folder: Path, part: str, task: Task) -> list[Labeled]:
    path = next(p for p in (folder / f"{part}.jsonl", folder / f"{part}.jsonl.gz") if p.exists())
    columns = Columns(text="text_a", pair="text_b") if task.pair else Columns(text="text")
    return read_labelled(path, columns, notes=Notes())


def _by_hash(rows: list[Labeled]) -> list[Labeled]:
    return sorted(rows, key=lambda row: uniform(0, row.example.uid))
