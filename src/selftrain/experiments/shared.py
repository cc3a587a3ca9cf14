"""Methods with the same teacher settings reuse one trained teacher, and its votes of round 1.

A teacher depends on task, rows, backbone, seed and the settings of its tune. The votes of round 1
also depend on the size of the pool, the passes and the layers with dropout. Every random draw is
named by seed and round, so a run that reuses them ends with the same bits as one that computes
them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from selftrain.data.fewshot import order_fingerprint
from selftrain.data.rows import Example
from selftrain.disk import replacing, short_hash
from selftrain.method.scores import Votes, joined
from selftrain.method.spec import Method
from selftrain.model.classifier import Classifier
from selftrain.model.pel import layers_of
from selftrain.runs.manifest import Manifest
from selftrain.runs.train import train
from selftrain.training.annotate import CHUNK, annotate, votes_seed
from selftrain.training.job import Job
from selftrain.training.loop import Round
from selftrain.training.machine import Machine

PARTS = ("plain", "mean", "wins", "variance", "entropy")
UNREADABLE = (OSError, SafetensorError, ValidationError)


@dataclass(frozen=True, slots=True)
class Shared:
    """The teacher and the first votes of one method, in a folder that many methods use."""

    folder: Path
    method: Method
    seed: int
    teacher_key: str
    votes_key: str

    @classmethod
    def of(cls, folder: Path, job: Job) -> Shared:
        """The teacher and votes of a job: named by a hash of all that decides them."""
        method = job.method
        teacher = Manifest.of(replace(job, method=teacher_alone(method))).configuration()
        votes = {
            "teacher": teacher,
            "pool": method.pool,
            "passes": method.passes,
            "dropout_layers": method.dropout_layers,
        }
        return cls(folder, method, job.seed, short_hash(teacher, 20), short_hash(votes, 20))

    @property
    def separate(self) -> bool:
        """Whether nothing is shared: stored states of frozen layers depend on the student too."""
        return layers_of(self.method.teacher.tuning) is not None

    def teacher_of(self, job: Job, machine: Machine) -> Callable[[], Round] | None:
        """A function that gives round 0, trained at its first call; None where it is not shared."""
        place = self.folder / "teachers" / self.teacher_key

        def teacher() -> Round:
            (round_,) = train(place, replace(job, method=teacher_alone(job.method)), machine)
            return round_

        return None if self.separate else teacher

    @property
    def votes_path(self) -> Path:
        """The file of the first votes."""
        return self.folder / "votes" / f"{self.votes_key}.safetensors"

    def annotate(
        self,
        teacher: Classifier,
        pool: Iterable[Example],
        passes: int,
        *,
        seed: int,
        machine: Machine,
    ) -> Iterator[tuple[list[Example], Votes]]:
        """Like ``annotate``, but the votes of round 1 are written to disk and read again."""
        if self.separate or seed != votes_seed(self.seed, 1):
            yield from annotate(teacher, pool, passes, seed=seed, machine=machine)
            return
        rows, digest = list(pool), teacher.digest()
        votes = read_votes(self.votes_path, rows, len(teacher.labels), passes, by=digest)
        if votes is None:
            started = time.perf_counter()
            chunks = annotate(teacher, rows, passes, seed=seed, machine=machine)
            votes = joined([part for _, part in chunks])
            seconds = time.perf_counter() - started
            write_votes(self.votes_path, rows, votes, seconds=seconds, by=digest)
        for start in range(0, len(rows), CHUNK):
            yield rows[start : start + CHUNK], part_of(votes, start, start + CHUNK)

    def seconds_saved(self, rounds: Sequence[Round]) -> float:
        """Seconds that round 1 saved because its votes were on disk.

        Another method computed them, or this one before it was killed.
        """
        about = read_about(self.votes_path)
        annotated = self.method.probe is None  # probe rounds ask the head alone
        if self.separate or not annotated or len(rounds) < 2 or about is None:
            return 0.0
        if about.by != rounds[0].model.digest():  # votes of another teacher, from newer code, say
            return 0.0
        annotating: float = rounds[1].numbers.get("seconds annotating", 0.0)
        return 0.0 if annotating >= about.seconds else about.seconds


def teacher_alone(method: Method) -> Method:
    """The method's teacher without a student: what it annotates later does not change it."""
    teacher = Method("teacher", method.teacher, (), rounds=0)
    return replace(teacher, tapt=method.tapt, pool=method.pool) if method.tapt else teacher


def part_of(votes: Votes, start: int, end: int) -> Votes:
    """The votes on consecutive rows."""
    parts = {name: getattr(votes, name)[start:end] for name in PARTS}
    return Votes(**parts, passes=votes.passes)


@dataclass(frozen=True, slots=True)
class About:
    """The metadata of a file of votes."""

    rows: str
    """A hash of the rows, in order."""
    passes: Annotated[int, Field(ge=1)]
    seconds: Annotated[FiniteFloat, Field(ge=0)]
    by: str
    """The digest of the teacher that gave them."""


def write_votes(
    path: Path, rows: Sequence[Example], votes: Votes, *, seconds: float, by: str
) -> None:
    """Write the votes on a pool, with a hash of its rows."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    tensors = {name: getattr(votes, name).contiguous() for name in PARTS}
    about = {
        "rows": order_fingerprint(rows),
        "passes": str(votes.passes),
        "seconds": f"{seconds:.3f}",
        "by": by,
    }
    with replacing(path) as place:  # a temporary name: another worker may write the same votes
        save_file(tensors, place, about)


def read_about(path: Path) -> About | None:
    """The metadata of a file of votes; None if there is no such file, or it is damaged."""
    try:
        with safe_open(regular(path), "pt") as file:
            return about_of(file)
    except UNREADABLE:
        return None


def read_votes(
    path: Path, rows: Sequence[Example], classes: int, passes: int, *, by: str | None = None
) -> Votes | None:
    """The stored votes on exactly these rows and passes; None if there are none.

    With ``by``, only the votes of the teacher with this digest.
    """
    shapes = {name: [len(rows), classes] for name in PARTS} | {"entropy": [len(rows)]}
    try:
        with safe_open(regular(path), "pt") as file:
            about = about_of(file)
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            stored = {name: (part.get_shape(), part.get_dtype()) for name, part in slices.items()}
            same_rows = (about.rows, about.passes) == (order_fingerprint(rows), passes)
            complete = stored == {name: (shape, "F64") for name, shape in shapes.items()}
            if not (same_rows and complete and by in (None, about.by)):
                return None
            parts = {name: file.get_tensor(name) for name in PARTS}
    except UNREADABLE:
        return None
    finite = all(bool(part.isfinite().all()) for part in parts.values())
    return Votes(**parts, passes=passes) if finite else None


def regular(path: Path) -> Path:
    """The path, if it is a regular file: opening a pipe would block."""
    if not path.is_file():
        raise FileNotFoundError(path)
    return path


def about_of(file: Any) -> About:
    """The metadata of an open file of votes."""
    return TypeAdapter(About).validate_python(file.metadata() or {})
