"""Runs with all that `fit` leaves behind, without the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import small_run
from selftrain.data.rows import Example, Labelled, Split
from selftrain.data.task import Task
from selftrain.runs.estimates import estimated
from selftrain.runs.ladders import laddered
from selftrain.runs.train import train
from selftrain.training.job import Job
from selftrain.training.ladder import Models


def finish(folder: Path, job: Job) -> Path:
    """Train a job to its end, with everything that `fit` writes but the report."""
    rounds = list(train(folder, job, small_run.MACHINE))
    models = Models(rounds, estimated(folder, job, rounds, small_run.MACHINE))
    laddered(folder, job, models, [], small_run.MACHINE)
    return folder


def renamed(names: Sequence[str], *, pair: bool = False) -> tuple[Task, Split]:
    """The small task with other names of its classes, and pairs of texts if asked."""
    by_name = dict(zip(small_run.WORDS, names, strict=True))
    split = small_run.split()

    def example(row: Example) -> Example:
        return replace(row, pair=row.text[::-1] if pair else None)

    gold = tuple(Labelled(example(row.example), by_name[row.label]) for row in split.labelled)
    rows = [example(row) for row in split.unlabelled]
    return Task("small", tuple(names), pair=pair), Split(gold, rows)
