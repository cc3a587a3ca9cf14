"""The teacher reads the pool with dropout on (lines 5 and 7): T passes, as running sums."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import torch

from selftrain.data.rows import Example
from selftrain.errors import ModelError, require
from selftrain.method.scores import Tally, Votes, joined
from selftrain.model.batches import Row, grouped
from selftrain.model.classifier import Classifier
from selftrain.seeds import child
from selftrain.training.ahead import prepared
from selftrain.training.machine import Machine, randomness

CHUNK = 1024  # rows tokenised and sorted by length together
MOST_PARTS = 100_000


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


@dataclass(frozen=True, slots=True)
class Part:
    """One of several equal parts of a round's rows, which another process may annotate.

    A part is a whole number of chunks: then each row has the dropout noise it has in one process.
    """

    number: int
    """From 0 to ``of`` - 1."""
    of: int
    """How many parts there are."""

    def __post_init__(self) -> None:
        expected = f"I/N with I from 0 to N - 1, and N at most {MOST_PARTS:,}"
        valid = 0 <= self.number < self.of <= MOST_PARTS
        require(valid, "the part", str(self), expected, "--shard 0/8, then 1/8 … 7/8")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def chunks(self, rows: int) -> range:
        """The numbers of its chunks, where the round has so many rows.

        >>> [list(Part(number, of=2).chunks(2 * CHUNK + 1)) for number in (0, 1)]
        [[0], [1, 2]]
        """
        count = math.ceil(rows / CHUNK)
        return range(count * self.number // self.of, count * (self.number + 1) // self.of)

    def rows(self, rows: int) -> range:
        """The places of its rows; none, where there are more parts than chunks."""
        chunks = self.chunks(rows)
        return range(min(chunks.start * CHUNK, rows), min(chunks.stop * CHUNK, rows))

    def chunk_sizes(self, rows: int) -> list[int]:
        """The number of rows of each of its chunks."""
        places = self.rows(rows)
        return [min(CHUNK, places.stop - start) for start in places[::CHUNK]]


def votes_seed(seed: int, number: int) -> int:
    """The seed of the dropout noise in a round of a run with this seed."""
    return child(seed, "votes", number)


def annotate(
    teacher: Classifier,
    pool: Iterable[Example],
    passes: int,
    *,
    seed: int,
    machine: Machine,
    first_chunk: int = 0,
) -> Iterator[tuple[list[Example], Votes]]:
    """The votes of T dropout passes on each example, chunk by chunk.

    Below the layers with dropout everything is computed once for all passes. Dropout is drawn for a
    batch at a time, so the votes on a row depend on its chunk: the order of the pool alone decides
    the chunks. Several processes take chunks by turns, and all get all votes. ``first_chunk``
    is the number of the first chunk of a part, which gets the votes that it has in the whole.
    """
    teacher.to(machine.torch_device())
    ranks = machine.ranks

    def tokenised(chunk: tuple[int, list[Example]]) -> list[Row]:
        place, examples = chunk
        return teacher.encode(examples) if ranks.takes(place) else []

    def votes_of(chunk: tuple[tuple[int, list[Example]], Future[list[Row]]]) -> Votes:
        (place, _), rows = chunk
        with randomness(seed, "dropout", first_chunk + place):
            return _chunk_votes(teacher, rows.result(), passes, machine)

    # Outside of randomness: random numbers that the reader draws must not be undone.
    stream = prepared(enumerate(chunks(pool)), tokenised)
    for ((_, examples), _), votes in ranks.mapped(votes_of, stream):
        yield examples, votes


def chunks(pool: Iterable[Example]) -> Iterator[list[Example]]:
    """The rows of a pool that are annotated together, in order."""
    stream = iter(pool)
    while chunk := list(islice(stream, CHUNK)):
        yield chunk


@torch.no_grad()
def _chunk_votes(teacher: Classifier, rows: Sequence[Row], passes: int, machine: Machine) -> Votes:
    batches, back = grouped(rows, teacher.pad, machine.torch_device())
    parts: list[Votes] = []
    identical = True  # all passes, to the last bit
    for number in machine.progress(range(len(batches)), "annotating", len(batches)):
        batch = batches[number]
        state = teacher.lower(batch)
        with teacher.same_start(teacher.encoder, state):
            teacher.eval()
            answers = [teacher.upper(batch, state).logits.softmax(1)]
            teacher.train()
            answers += [teacher.upper(batch, state).logits.softmax(1) for _ in range(passes)]
        plain, *dropped = torch.stack(answers).cpu()  # together: a GPU is waited for once
        tally = Tally(plain)
        for answer in dropped:
            tally.add(answer)
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
