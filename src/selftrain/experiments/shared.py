"""What several methods define alike is computed once: the round-0 teacher, and its first votes.

A teacher depends on task, rows, backbone, seed and its own tuning; the votes of round 1 on that,
and on how much of the pool is drawn, the passes and where they differ. Every draw is named by seed
and round, so a run that takes them from here ends with the same bits as one that computes them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from selftrain.data.rows import Example
from selftrain.disk import replacing, short_hash
from selftrain.method.scores import Votes, joined
from selftrain.method.spec import Method
from selftrain.model.classifier import Classifier
from selftrain.model.pel import layers_of
from selftrain.runs.manifest import Manifest
from selftrain.runs.train import train
from selftrain.seeds import child
from selftrain.training.annotate import CHUNK, annotate
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
        """Where those of a job are stored: named by a hash of all that decides them."""
        method = job.method
        teacher = Manifest.of(replace(job, method=teacher_alone(method))).asked()
        votes = {
            "teacher": teacher,
            "pool": method.pool,
            "passes": method.passes,
            "dropout_layers": method.dropout_layers,
        }
        return cls(folder, method, job.seed, _key(teacher), _key(votes))

    @property
    def separate(self) -> bool:
        """Whether nothing is shared: what a trunk remembers depends on the students beside it."""
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
        """Like ``annotate``, but the votes of round 1 are stored, and read again."""
        if self.separate or seed != child(self.seed, "votes", 1):
            yield from annotate(teacher, pool, passes, seed=seed, machine=machine)
            return
        rows, by = list(pool), teacher.digest()
        found = read_votes(self.votes_path, rows, len(teacher.labels), passes, by=by)
        if found is None:
            started = time.perf_counter()
            parts = [
                votes for _, votes in annotate(teacher, rows, passes, seed=seed, machine=machine)
            ]
            found = joined(parts)
            seconds = time.perf_counter() - started
            write_votes(self.votes_path, rows, found, seconds=seconds, by=by)
        for start in range(0, len(rows), CHUNK):
            yield rows[start : start + CHUNK], piece(found, start, start + CHUNK)

    def spared(self, rounds: Sequence[Round]) -> float:
        """Seconds that round 1 did not take because its votes were there.

        Another method had made them, or this one before it was killed.
        """
        about = read_about(self.votes_path)
        if self.separate or len(rounds) < 2 or about is None:
            return 0.0
        if about.by != rounds[0].model.digest():  # of another teacher since, by newer code, say
            return 0.0
        took: float = rounds[1].numbers.get("seconds annotating", 0.0)
        return 0.0 if took >= about.seconds else about.seconds


def teacher_alone(method: Method) -> Method:
    """The method's teacher, without a student: how many rows it would annotate decides nothing."""
    teacher = Method("teacher", method.teacher, (), rounds=0)
    return replace(teacher, tapt=method.tapt, pool=method.pool) if method.tapt else teacher


def piece(votes: Votes, start: int, end: int) -> Votes:
    """The votes on some rows in a row."""
    parts = {name: getattr(votes, name)[start:end] for name in PARTS}
    return Votes(**parts, passes=votes.passes)


@dataclass(frozen=True, slots=True)
class About:
    """What a file of votes says of itself."""

    rows: str
    """A hash of whom they are on, in order."""
    passes: Annotated[int, Field(ge=1)]
    seconds: Annotated[FiniteFloat, Field(ge=0)]
    by: str
    """The digest of the teacher that gave them."""


def write_votes(
    path: Path, rows: Sequence[Example], votes: Votes, *, seconds: float, by: str
) -> None:
    """Keep the votes on a pool, with a hash of whom they are on."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    tensors = {name: getattr(votes, name).contiguous() for name in PARTS}
    about = {
        "rows": _names(rows),
        "passes": str(votes.passes),
        "seconds": f"{seconds:.3f}",
        "by": by,
    }
    with replacing(path) as place:  # under a name of its own: another worker may write the same
        save_file(tensors, place, about)


def read_about(path: Path) -> About | None:
    """What a file says of its votes; None where there is none, or it says nothing sensible."""
    try:
        with safe_open(regular(path), "pt") as file:
            return about_of(file)
    except UNREADABLE:
        return None


def read_votes(
    path: Path, rows: Sequence[Example], classes: int, passes: int, *, by: str | None = None
) -> Votes | None:
    """The votes that were kept on exactly these rows and passes; None where there are none.

    ``by``: those of this teacher alone. A folder may have another than it had, or newer code.
    """
    shapes = {name: [len(rows), classes] for name in PARTS} | {"entropy": [len(rows)]}
    try:
        with safe_open(regular(path), "pt") as file:
            about = about_of(file)
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            found = {name: (part.get_shape(), part.get_dtype()) for name, part in slices.items()}
            fits = (about.rows, about.passes) == (_names(rows), passes)
            whole = found == {name: (shape, "F64") for name, shape in shapes.items()}
            if not (fits and whole and by in (None, about.by)):
                return None
            parts = {name: file.get_tensor(name) for name in PARTS}
    except UNREADABLE:
        return None
    finite = all(bool(part.isfinite().all()) for part in parts.values())
    return Votes(**parts, passes=passes) if finite else None


def regular(path: Path) -> Path:
    """The path, if a file stands there: a pipe would be waited for."""
    if not path.is_file():
        raise FileNotFoundError(path)
    return path


def about_of(file: Any) -> About:
    """What an open file says of its votes."""
    return TypeAdapter(About).validate_python(file.metadata() or {})


def _names(rows: Sequence[Example]) -> str:
    return hashlib.sha256(json.dumps([row.uid for row in rows]).encode()).hexdigest()


def _key(value: Any) -> str:
    return short_hash(value, 20)
