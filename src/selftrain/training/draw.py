"""Rows drawn from the pool, uniformly and never by gold label (line 4 of Algorithm 1)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from selftrain.data.draws import Draw
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
    pool, wanted = job.split.unlabelled, draw_of_round(job.method, job.seed, number)
    if wanted is not None:
        return _drawn(job, wanted)
    if isinstance(pool, Pool) and not pool.in_memory:
        return pool
    return draw(pool, None, seed=child(job.seed, "pool", number))


def draw_of_round(method: Method, seed: int, number: int) -> Draw | None:
    """What a round draws from the pool; None where it takes all of it."""
    size = None if method.pool == "all" else method.pool
    if method.probe is not None and number:
        return Draw(child(seed, "pool"), min(size or MAX_VECTORS, MAX_VECTORS))
    return None if size is None else Draw(child(seed, "pool", number), size)


def different_draws(method: Method) -> range:
    """Numbers of rounds that between them draw all rows that a run reads."""
    rounds = method.total_rounds
    return range(1, 1 + (rounds if method.probe is None else min(rounds, 1)))


def slice_rows(job: Job) -> list[Example]:
    """The fixed pool rows on which teacher and student are compared.

    With probe rounds they are among the rows of the rounds: smaller draws are parts of larger ones.
    """
    if job.method.probe is not None:
        pool = pool_of_round(job, 1)
        assert isinstance(pool, list)
        return pool[: slice_draw(job.method, job.seed).size]
    return _drawn(job, slice_draw(job.method, job.seed))


def slice_draw(method: Method, seed: int) -> Draw:
    """The draw of the fixed rows."""
    size = GUARDED_SLICE_ROWS if method.guard == "folds" else SLICE_ROWS
    return Draw(child(seed, "slice"), size)


def draws_of(method: Method, seed: int) -> Iterator[Draw]:
    """All that a run draws from its pool, the fixed rows first."""
    if method.probe is None:
        yield slice_draw(method, seed)
    adapts = [] if method.tapt is None else [0]
    for number in (*adapts, *different_draws(method)):
        wanted = draw_of_round(method, seed, number)
        if wanted is not None:
            yield wanted


def _drawn(job: Job, wanted: Draw) -> list[Example]:
    """The rows of a draw; a pool that is not in memory drew them as it was cleaned."""
    pool = job.split.unlabelled
    if isinstance(pool, Pool) and not pool.in_memory:
        return pool.draw(wanted, draws_of(job.method, job.seed))
    return draw(pool, wanted.size, seed=wanted.seed)


def draw(pool: Iterable[Example], size: int | None, *, seed: int) -> list[Example]:
    """Rows drawn uniformly; the order of the pool changes nothing. None draws all of them."""

    def key(example: Example) -> tuple[float, str]:
        return uniform(seed, example.uid), example.uid

    return sorted(pool, key=key) if size is None else heapq.nsmallest(size, pool, key=key)
