"""The output of frozen layers is computed once for each row of a run, and stored.

A tuning of the top layers leaves the layers below as they are, so the state of a row below them is
the same in every round. Which rows a run reads is known before it starts: this module reserves
space for their states, and frees it when the run ends.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice

from selftrain.data.rows import Example
from selftrain.method.spec import Tune
from selftrain.model.batches import Row
from selftrain.model.classifier import Classifier
from selftrain.model.fast.trunk import Memory
from selftrain.model.pel import layers_of
from selftrain.training.draw import different_draws, pool_of_round
from selftrain.training.job import Job, new_model
from selftrain.training.machine import Machine

log = logging.getLogger(__name__)

ENCODED_TOGETHER = 1024  # rows


@contextmanager
def frozen_layers_remembered(
    job: Job, slice_rows: Sequence[Example], machine: Machine
) -> Iterator[None]:
    """Within it the frozen layers read each row of the run once; afterwards nothing stays."""
    memories = plan(job, slice_rows, machine)
    try:
        yield
    finally:
        for memory in memories:
            memory.forget()


def plan(job: Job, slice_rows: Sequence[Example], machine: Machine) -> list[Memory]:
    """Reserve space for the states of every row that the models of a run read."""
    trained = job.method.student[:1] if job.method.rounds else ()
    students = [tune for tune in trained if tune.starts_from != "teacher"]
    readers: dict[Memory, list[tuple[Classifier, Tune]]] = {}
    for tune in (job.method.teacher, *students):
        if layers_of(tune.tuning) is None:
            continue  # all layers change: nothing to remember, and no model to build
        model = new_model(job, tune, seed=0)
        if model.trunk is not None and model.trunk.memory is not None:
            readers.setdefault(model.trunk.memory, []).append((model, tune))
    for memory, models in readers.items():
        rows = (encoded(model, rows_of(job, slice_rows)) for model, _ in models)
        size = memory.plan(
            chain.from_iterable(rows),
            job.backbone.width,
            limit=machine.cache_mb * 1_000_000,
            folder=machine.cache,
            half=all(tune.states == "fp16" for _, tune in models),
        )
        if size >= 1e6:
            log.info(space_line(memory, size))
    return list(readers)


def rows_of(job: Job, slice_rows: Sequence[Example]) -> Iterator[Example]:
    """Every example that the models of a run read."""
    yield from (row.example for row in job.split.labelled)
    yield from slice_rows
    for number in different_draws(job.method):
        yield from pool_of_round(job, number)


def space_line(memory: Memory, size: int) -> str:
    """How much disk a memory takes, and whether all rows fit."""
    shortage = "; not all fit: the others are computed each time" if memory.short else ""
    return (
        f"frozen layers are computed once for {memory.planned:,} texts: "
        f"{size / 1e6:,.0f} MB of disk meanwhile{shortage}"
    )


def encoded(model: Classifier, examples: Iterable[Example]) -> Iterator[Row]:
    """The token rows of many examples, tokenised chunk by chunk."""
    stream = iter(examples)
    while chunk := list(islice(stream, ENCODED_TOGETHER)):
        yield from model.encode(chunk)
