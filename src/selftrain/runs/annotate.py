"""A round of a run that several processes annotate: each a part, and one trains from all of them.

The processes share a folder and nothing else. Votes are stored, not candidates: the selection then
reads the same stream as in one process, and its result is the same to the last bit.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from selftrain.data.rows import Example
from selftrain.errors import ConfigError, RunError
from selftrain.method.scores import Votes
from selftrain.method.spec import Method
from selftrain.model.build import with_dropout_in
from selftrain.model.classifier import Classifier
from selftrain.runs.manifest import NOISE, Manifest, differences
from selftrain.runs.parts import (
    any_part,
    complete_cards,
    is_finished,
    next_round,
    prepare_folder,
    votes_of,
    write_part,
)
from selftrain.runs.read import ROUNDS, load, read_manifest
from selftrain.runs.write import machine_warnings
from selftrain.training.annotate import Part, annotate, votes_seed
from selftrain.training.draw import pool_of_round, slice_rows
from selftrain.training.job import Job
from selftrain.training.machine import Machine
from selftrain.training.memory import frozen_layers_remembered
from selftrain.training.preflight import size_of


def check_has_parts(method: Method) -> None:
    """Raise for a method whose rounds one process annotates: its draw is bounded."""
    if method.probe is not None:
        raise ConfigError(
            f"the rounds of `{method.name}` read one draw of at most 65,536 rows: "
            "one machine is enough, and there are no parts",
            "leave out --parts and --ray, or choose --method upet-head-adapter",
        )


def check_same_run(run: Path, job: Job, machine: Machine) -> Sequence[str]:
    """Raise unless a job is that of the run; return warnings where the machine is another."""
    manifest, given = read_manifest(run), Manifest.of(job, machine)
    for place, before, after in differences(manifest.configuration(), given.configuration()):
        kind, _, name = place.partition(".")
        raise RunError(
            f"the {name} rows are not those that {run} was started with"
            if kind == "data"
            else f"{run} has another configuration: {place} is {before!r:.60}, given {after!r:.60}",
            "give the files and options of its `selftrain fit`: labelled, pool, --dev, --test",
        )
    same = {name: getattr(manifest, name) for name in NOISE}  # no vote depends on them
    return machine_warnings(manifest, replace(given, **same))


def annotate_part(job: Job, run: Path, parts: Path, part: Part, machine: Machine) -> bool:
    """Annotate a part of the round that a run trains next; False where that part is on disk."""
    if is_finished(parts, next_round(run)[0], part):
        return False
    with annotator(job, run, parts, machine) as annotate_one:
        return annotate_one(part)


@contextmanager
def annotator(
    job: Job, run: Path, parts: Path, machine: Machine
) -> Iterator[Callable[[Part], bool]]:
    """Within it, a function that annotates parts of the next round; the teacher is loaded once."""
    origin, teacher_number = next_round(run)
    prepare_folder(parts)
    machine = machine if machine.cache else replace(machine, cache=parts)  # that disk has space
    teacher, method = load(run, teacher_number, backbone=job.backbone), job.method
    mc_model = with_dropout_in(teacher, method.dropout_layers)
    pool = pool_of_round(job, origin.round)
    rows = _Rows(pool)

    def annotate_one(part: Part) -> bool:
        if is_finished(parts, origin, part):
            return False
        votes = annotate(
            mc_model,
            rows.at(part.rows(len(pool))),
            method.passes,
            seed=votes_seed(job.seed, origin.round),
            machine=machine,
            first_chunk=part.chunks(len(pool)).start,
        )
        write_part(parts, origin, part, votes, len(pool))
        return True

    with frozen_layers_remembered(job, slice_rows(job), machine):
        yield annotate_one


class _Rows:
    """Rows of a pool by place. Places that only go forward read the pool once."""

    def __init__(self, pool: Iterable[Example]) -> None:
        self._pool = pool
        self._rows = iter(pool)
        self._place = 0

    def at(self, places: range) -> Iterator[Example]:
        if places.start < self._place:
            self._rows, self._place = iter(self._pool), 0
        skipped, self._place = places.start - self._place, places.stop
        return islice(self._rows, skipped, skipped + len(places))


@dataclass(frozen=True, slots=True)
class StoredVotes:
    """Annotates a round from its part files; a run stops before a round that has none."""

    run: Path
    parts: Path

    def __call__(
        self,
        teacher: Classifier,
        pool: Iterable[Example],
        passes: int,
        *,
        seed: int,  # noqa: ARG002  (the noise is in the votes)
        machine: Machine,  # noqa: ARG002
    ) -> Iterator[tuple[list[Example], Votes]]:
        """The stored votes on each example, chunk by chunk, in the order of the pool."""
        origin, _ = next_round(self.run)
        count, rows, classes = size_of(pool), iter(pool), len(teacher.labels)
        for card in complete_cards(self.parts, origin):
            yield from votes_of(self.parts, card, rows, count, classes, passes)

    @property
    def hint(self) -> str:
        """How a run that was stopped goes on."""
        run, parts = (shlex.quote(str(place)) for place in (self.run, self.parts))
        return (
            f"selftrain annotate {run} labelled.csv --unlabelled pool.csv --shard 0/8 -o {parts} "
            "annotates the first of 8 parts"
        )

    def why_stop(self, number: int) -> str:
        """Why the round of this number is not trained; empty where it is, or is on disk."""
        done = os.path.lexists(self.run / ROUNDS / str(number))
        over = number > read_manifest(self.run).total_rounds
        if done or over or any_part(self.parts, number):
            return ""
        return f"stopped after round {number - 1}: {self.parts} has no part of round {number}"
