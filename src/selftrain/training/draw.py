"""Rows drawn from the pool, uniformly and never by gold label (line 4 of Algorithm 1)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from selftrain.data.pool import Pool
from selftrain.data.rows import Example
from selftrain.method.spec import Method
from selftrain.seeds import child, uniform
from selftrain.training.job import Job

SLICE_ROWS = 256
GUARDED_SLICE_ROWS = 2048
"""With a guard that weighs beliefs: a mean over few rows would be too noisy."""
MAX_VECTORS = 65_536
"""Rows of which probe rounds store a vector, at most: nothing is as big as the pool."""


def pool_of_round(job: Job, number: int) -> list[Example] | Pool:
    """D_u', the pool rows of a round (line 4).

    With probe rounds all rounds read the same rows, so that each text is encoded once.

    A round that takes all of a pool too long for memory reads it in the order of its source:
    sorting would load it. Dropout is drawn chunk by chunk, so there the order of the source decides
    which noise a row gets.
    """
    pool = job.split.unlabelled
    size = None if job.method.pool == "all" else job.method.pool
    if job.method.probe is not None and number:
        return draw(pool, min(size or MAX_VECTORS, MAX_VECTORS), seed=child(job.seed, "pool"))
    if size is None and isinstance(pool, Pool) and not pool.in_memory:
        return pool
    return draw(pool, size, seed=child(job.seed, "pool", number))


def different_draws(method: Method) -> range:
    """Numbers of rounds that between them draw all rows that a run reads."""
    rounds = method.total_rounds
    return range(1, 1 + (rounds if method.probe is None else min(rounds, 1)))


def slice_rows(job: Job) -> list[Example]:
    """The fixed pool rows on which teacher and student are compared.

    With probe rounds they are among the rows of the rounds: smaller draws are parts of larger ones.
    """
    size = GUARDED_SLICE_ROWS if job.method.guard == "folds" else SLICE_ROWS
    if job.method.probe is not None:
        pool = pool_of_round(job, 1)
        assert isinstance(pool, list)
        return pool[:size]
    return draw(job.split.unlabelled, size, seed=child(job.seed, "slice"))


def draw(pool: Iterable[Example], size: int | None, *, seed: int) -> list[Example]:
    """Rows drawn uniformly; the order of the pool changes nothing. None draws all of them."""

    def key(example: Example) -> tuple[float, str]:
        return uniform(seed, example.uid), example.uid

    return sorted(pool, key=key) if size is None else heapq.nsmallest(size, pool, key=key)
