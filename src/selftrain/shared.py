"""What several methods define alike is computed once: the round-0 teacher, and its first votes.

A teacher depends on task, rows, backbone, seed and its own tuning; the votes of round 1 on that,
and on how much of the pool is drawn, the passes and where they differ. Every draw is named by seed
and round, so a run that takes them from here ends with the same bits as one that computes them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from selftrain.annotate import CHUNK, annotate
from selftrain.backbone import Backbone
from selftrain.classifier import Classifier
from selftrain.data import Example, Split
from selftrain.disk import replacing
from selftrain.experiment import train
from selftrain.loop import Round
from selftrain.machine import Machine
from selftrain.manifest import Manifest
from selftrain.method import Method
from selftrain.scores import Votes, joined
from selftrain.seeds import child
from selftrain.task import Task

PARTS = ("plain", "mean", "wins", "variance", "entropy")


@dataclass(frozen=True, slots=True)
class Shared:
    """The teacher and the first votes of one method, in a folder that many methods use."""

    folder: Path
    method: Method
    seed: int
    teacher_key: str
    votes_key: str

    @classmethod
    def of(
        cls,
        folder: Path,
        task: Task,
        split: Split,
        method: Method,
        backbone: Backbone,
        seed: int,
    ) -> Shared:
        """Where those of a method are kept: named by a hash of all that decides them."""
        taught = Manifest.of(task, split, alone(method), backbone=backbone, seed=seed).asked()
        voted = {
            "teacher": taught,
            "pool": method.pool,
            "passes": method.passes,
            "passes_in": method.passes_in,
        }
        return cls(folder, method, seed, _key(taught), _key(voted))

    def teacher(self, task: Task, split: Split, *, backbone: Backbone, on: Machine) -> Round:
        """Round 0, trained at the first call."""
        place = self.folder / "teachers" / self.teacher_key
        rounds = train(
            place, task, split, alone(self.method), backbone=backbone, seed=self.seed, on=on
        )
        return next(iter(list(rounds)))

    @property
    def votes_path(self) -> Path:
        """The file of the first votes."""
        return self.folder / "votes" / f"{self.votes_key}.safetensors"

    def annotate(
        self, teacher: Classifier, pool: Iterable[Example], passes: int, *, seed: int, on: Machine
    ) -> Iterator[tuple[list[Example], Votes]]:
        """As ``annotate`` does it; the votes of round 1 are kept, and taken from what was kept."""
        if seed != child(self.seed, "votes", 1):
            yield from annotate(teacher, pool, passes, seed=seed, on=on)
            return
        rows = list(pool)
        found = read_votes(self.votes_path, rows, len(teacher.labels))
        if found is None:
            started = time.perf_counter()
            parts = [votes for _, votes in annotate(teacher, rows, passes, seed=seed, on=on)]
            found = joined(parts)
            write_votes(self.votes_path, rows, found, time.perf_counter() - started)
        for start in range(0, len(rows), CHUNK):
            yield rows[start : start + CHUNK], piece(found, start, start + CHUNK)

    def spared(self, rounds: Sequence[Round]) -> float:
        """Seconds of annotating that round 1 did not take because its votes were there."""
        if len(rounds) < 2 or not self.votes_path.exists():
            return 0.0
        with safe_open(self.votes_path, "pt") as file:
            taken = float((file.metadata() or {}).get("seconds", "0"))
        return max(0.0, taken - float(rounds[1].figures.get("seconds annotating", taken)))


def alone(method: Method) -> Method:
    """The method's teacher, without a student: how many rows it would annotate decides nothing."""
    teacher = Method("teacher", method.teacher, (), rounds=0)
    return replace(teacher, adapt=method.adapt, pool=method.pool) if method.adapt else teacher


def piece(votes: Votes, start: int, end: int) -> Votes:
    """The votes on some rows in a row."""
    parts = {name: getattr(votes, name)[start:end] for name in PARTS}
    return Votes(**parts, passes=votes.passes)


def write_votes(path: Path, rows: Sequence[Example], votes: Votes, seconds: float) -> None:
    """Keep the votes on a pool, with a hash of whom they are on."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    tensors = {name: getattr(votes, name).contiguous() for name in PARTS}
    about = {"rows": _names(rows), "passes": str(votes.passes), "seconds": f"{seconds:.3f}"}
    with replacing(path) as place:  # under a name of its own: another worker may write the same
        save_file(tensors, place, about)


def read_votes(path: Path, rows: Sequence[Example], classes: int) -> Votes | None:
    """The votes that were kept on exactly these rows; None where there are none."""
    try:
        with safe_open(path, "pt") as file:
            about = file.metadata() or {}
            parts = {name: file.get_tensor(name) for name in PARTS}
    except (OSError, SafetensorError):
        return None
    shapes = {name: [len(rows), classes] for name in PARTS} | {"entropy": [len(rows)]}
    whole = all(
        list(parts[name].shape) == shapes[name] and parts[name].dtype == torch.float64
        for name in PARTS
    )
    if not whole or about.get("rows") != _names(rows) or not about.get("passes", "").isdigit():
        return None
    return Votes(**parts, passes=int(about["passes"]))


def _names(rows: Sequence[Example]) -> str:
    return hashlib.sha256(json.dumps([row.uid for row in rows]).encode()).hexdigest()


def _key(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:20]
