"""``estimate.json``: what is expected of the models of a run, and which labels look wrong.

It is written after the models, and belongs to them by their sha256: a model never waits for it, and
an estimate of other models is made again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from selftrain.disk import LARGEST_JSON, damaged, plain_file, refusals, remove, replacing, sha256
from selftrain.errors import RunError, check_format, parsed
from selftrain.runs.opinions import LARGEST_OPINIONS, OPINIONS, read_opinions, write_opinions
from selftrain.runs.read import answering, records
from selftrain.runs.record import MODEL, Record
from selftrain.runs.write import locked
from selftrain.training.estimate import Estimate, Opinion, RoundEstimate, judge
from selftrain.training.expected import (
    AGREEMENT,
    BELIEF,
    FROZEN_MARGIN,
    MARGIN,
    PRIOR_ROWS,
)
from selftrain.training.job import Job
from selftrain.training.loop import Round
from selftrain.training.machine import Machine

ESTIMATE = "estimate.json"
FORMAT = 1
AGAIN = "remove estimate.json: the same `selftrain fit` writes it again"
TENSORS = MODEL[1]


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of ``estimate.json``."""

    format: int
    models: dict[int, str]
    """The sha256 of the tensors of each round's model."""
    constants: tuple[float, ...]
    """Those of the estimate: one by others is made again."""
    estimate: Estimate
    opinions: str = ""
    """The sha256 of ``opinions.parquet``, which was written with it; empty in older estimates, and
    where there were too many rows for one."""


def estimated(folder: Path, job: Job, rounds: Sequence[Round], machine: Machine) -> Estimate | None:
    """The estimate of a finished run: read where there is one of these models, else written."""
    models = models_of(records(folder)[: len(rounds)])
    stored = read_estimate(folder)
    if stored is not None and (stored.models, stored.constants) == (models, constants()):
        found = stored.estimate
        if len(found.prior) == len(job.task.labels):  # an earlier version wrote none
            return found
    judged = judge(job, rounds, machine)
    with refusals(folder, "write"), locked(folder):
        if judged is None:
            remove(folder / ESTIMATE)
            remove(folder / OPINIONS)
            return None
        opinions = write_opinions(folder / OPINIONS, judged)
        stored = Stored(FORMAT, models, constants(), judged.estimate, opinions)
        with replacing(folder / ESTIMATE, private=True) as path:
            path.write_bytes(TypeAdapter(Stored).dump_json(stored, indent=2) + b"\n")
    return judged.estimate


def constants() -> tuple[float, ...]:
    """Those of an estimate."""
    return BELIEF, AGREEMENT, MARGIN, FROZEN_MARGIN, PRIOR_ROWS


def temperature_of(folder: Path, record: Record) -> float:
    """The temperature of the model of a round; 1 where no estimate of it was written."""
    found = _estimate_of(folder, record)
    return 1.0 if found is None else found.temperature


def round_estimate(folder: Path, number: int | None = None) -> RoundEstimate | None:
    """What is expected of the model of a round, or of the one that answers; None if nothing is."""
    if number is None:
        chosen = answering(folder)
        folder, number = chosen.folder, chosen.number
    return _estimate_of(folder, records(folder)[number])


def _estimate_of(folder: Path, record: Record) -> RoundEstimate | None:
    stored = read_estimate(folder)
    if stored is None or stored.models.get(record.number) != record.files.get(TENSORS):
        return None
    return stored.estimate.of(record.number)


def read_estimate(folder: Path) -> Stored | None:
    """The estimate in a run folder, which may come from anyone; None where there is none."""
    path = folder / ESTIMATE
    if not os.path.lexists(path):
        return None
    with refusals(path, "read"):
        raw = plain_file(path, LARGEST_JSON).read_bytes()
    check_format(raw, str(path), FORMAT, RunError)
    stored = parsed(Stored, raw, f"{path} is damaged", RunError, AGAIN, strict=True)
    if {each.number for each in stored.estimate.rounds} != stored.models.keys():
        raise damaged(path, "names other rounds than it estimates")
    return stored


def opinions_of(folder: Path, labels: Sequence[str]) -> tuple[list[Opinion], list[Opinion]]:
    """What the folds say of the labelled rows of a run, and of rows of its pool; else none."""
    stored = read_estimate(folder)
    if stored is None or not stored.opinions:
        return [], []
    path = folder / OPINIONS
    with refusals(path, "read"):
        if sha256(plain_file(path, LARGEST_OPINIONS)) != stored.opinions:
            raise damaged(path, "is not what was written: its sha256 differs")
    return read_opinions(path, labels)


def models_of(found: Sequence[Record]) -> dict[int, str]:
    """The sha256 of each round's tensors; a round whose training failed has none."""
    return {record.number: record.files[TENSORS] for record in found if not record.failed}
