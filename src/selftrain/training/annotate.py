"""The teacher reads the pool with dropout on (lines 5 and 7): T passes, as running sums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol

import torch

from selftrain.data.rows import Example
from selftrain.errors import ModelError
from selftrain.method.scores import Tally, Votes, joined
from selftrain.model.batches import grouped
from selftrain.model.classifier import Classifier
from selftrain.training.machine import Machine, randomness

CHUNK = 1024  # rows tokenised and sorted by length together


class Annotate(Protocol):
    """Where the votes on a pool come from: dropout passes of a teacher, or a file of votes."""

    def __call__(
        self,
        teacher: Classifier,
        pool: Iterable[Example],
        passes: int,
        *,
        seed: int,
        machine: Machine,
    ) -> Iterator[tuple[list[Example], Votes]]:
        """The votes on each example, chunk by chunk."""


def annotate(
    teacher: Classifier,
    pool: Iterable[Example],
    passes: int,
    *,
    seed: int,
    machine: Machine,
    first: int = 0,
) -> Iterator[tuple[list[Example], Votes]]:
    """The votes of T dropout passes on each example, chunk by chunk.

    Below the layers with dropout everything is computed once for all passes. Dropout is drawn for a
    batch at a time, so the votes on a row depend on its chunk: the order of the pool alone decides
    the chunks. Several processes take chunks by turns, and all get all votes. ``first`` rows, a
    whole number of chunks, stand before a part of a pool, which then gets the votes that it has in
    the whole pool.
    """
    teacher.to(machine.torch_device())

    def votes_of(chunk: tuple[int, list[Example]]) -> Votes:
        number, examples = chunk
        with randomness(seed, "dropout", number):
            return _chunk_votes(teacher, examples, passes, machine)

    # Outside of randomness: random numbers that the reader draws must not be undone.
    for (_, examples), votes in machine.ranks.mapped(
        votes_of, enumerate(chunks(pool), first // CHUNK)
    ):
        yield examples, votes


def chunks(pool: Iterable[Example]) -> Iterator[list[Example]]:
    """The rows of a pool that are annotated together, in order."""
    stream = iter(pool)
    while chunk := list(islice(stream, CHUNK)):
        yield chunk


@torch.no_grad()
def _chunk_votes(
    teacher: Classifier, chunk: Sequence[Example], passes: int, machine: Machine
) -> Votes:
    batches, back = grouped(teacher.encode(chunk), teacher.pad, machine.torch_device())
    parts: list[Votes] = []
    identical = True  # all passes, to the last bit
    for number in machine.progress(range(len(batches)), "annotating", len(batches)):
        batch = batches[number]
        state = teacher.lower(batch)
        with teacher.same_start(teacher.encoder, state):
            teacher.eval()
            tally = Tally(teacher.upper(batch, state).logits.softmax(1).cpu())
            teacher.train()
            for _ in range(passes):
                tally.add(teacher.upper(batch, state).logits.softmax(1).cpu())
        identical = identical and tally.identical
        parts.append(tally.votes())
    teacher.eval()
    if passes > 1 and identical:
        raise ModelError(
            f"{passes} dropout passes of `{teacher.backbone.name}` agree to the last bit: "
            "there is no dropout to measure certainty with",
            "set a rate in the method: dropout = 0.1",
        )
    return joined(parts, back)
