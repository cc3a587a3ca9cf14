"""The plan of a run before it starts: the seconds of each stage, memory and disk."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from selftrain.data.rows import Labelled
from selftrain.data.split import fewest_labels
from selftrain.method.spec import Method
from selftrain.training.calibration import Speed
from selftrain.training.cost import (
    Counts,
    Stage,
    Work,
    drawn,
    estimate_work,
    ladder_work,
    stages,
    tuned_share,
)
from selftrain.training.draw import different_draws
from selftrain.training.job import Job, new_model
from selftrain.training.machine import Machine
from selftrain.training.preflight import size_of

SAVED_A_SECOND = 400e6  # bytes of a model: written, hashed and synced
LESSON_ROW = 50  # bytes of a row in the audit of a round, as measured
ROUND_FILES = 4096  # bytes of the other files of a round
FLOAT = 4  # bytes
SAVES = ("teacher", "student", "head")
"""The stages after which a model is saved."""
CLOSING = ("estimate", "ladder", "test")
"""The stages that end a run, whichever round is its last."""


@dataclass(frozen=True, slots=True)
class TimedStage:
    """A stage of a run, and how long it takes."""

    name: str
    round: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will take on this machine."""

    method: Method
    rows: Mapping[str, int]
    """How many rows are labelled, how many the pool has, and how many a round draws."""
    stages: tuple[TimedStage, ...]
    """In their order; those of a finished round are left out."""
    counts: Counts
    speed: Speed
    finished: int
    """The last round that is on disk already; -1 where none is."""
    memory: int | None
    """The peak of the process in bytes; None where the system does not say."""
    disk: int
    """The bytes of the run folder, with the states that lie there while it runs."""

    @property
    def seconds(self) -> float:
        """All stages together."""
        return sum(stage.seconds for stage in self.stages)

    def round_seconds(self, number: int) -> float:
        """The stages of a round, without those that end a run."""
        return sum(
            stage.seconds
            for stage in self.stages
            if stage.round == number and stage.name not in CLOSING
        )

    def closing_seconds(self, number: int) -> float:
        """What ends a run whose last round is this one: estimate, ladder, and the test rows."""
        work = (
            *estimate_work(self.method, self.counts, number, finished=self.finished),
            *ladder_work(self.method, self.counts, number),
        )
        tests = (stage.seconds for stage in self.stages if stage.name == "test")
        return self.speed.seconds(Stage("estimate", number, work)) + sum(tests)

    @property
    def pool_seconds(self) -> float:
        """One pass over every row of the pool: what its answers take once the run is finished."""
        return self.speed.seconds(Stage("reading", 0, (Work(self.rows["pool"], "pool"),)))

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "method": self.method.name,
            "rounds": self.method.total_rounds,
            "rows": dict(self.rows),
            "stages": [asdict(stage) for stage in self.stages],
            "seconds": self.seconds,
            "pool_pass_seconds": self.pool_seconds,
            "memory_bytes": self.memory,
            "disk_bytes": self.disk,
        }


def plan_of(
    job: Job,
    speed: Speed,
    machine: Machine,
    *,
    test: Sequence[Labelled] = (),
    finished: int = -1,
) -> Plan:
    """The plan of a run whose rounds up to ``finished`` are on disk."""
    split, method = job.split, job.method
    classes = len(job.task.labels)
    pool = size_of(split.unlabelled)
    rarest = fewest_labels(split.labelled)[1]
    counts = Counts(speed.lesson_rows, pool, len(split.dev), classes, len(test), rarest)
    models = {number: model_bytes(job, number) for number in range(method.total_rounds + 1)}
    timed = []
    for stage in stages(method, job.backbone, counts, finished=finished):
        saving = models[stage.number] / SAVED_A_SECOND if stage.name in SAVES else 0.0
        timed.append(TimedStage(stage.name, stage.number, speed.seconds(stage) + saving))
    rows = {"labelled": len(split.labelled), "pool": pool, "drawn": drawn(method, counts)}
    lessons = method.total_rounds * (rows["drawn"] * LESSON_ROW + ROUND_FILES) + ROUND_FILES
    return Plan(
        method,
        rows,
        tuple(stage for stage in timed if stage.seconds),
        counts,
        speed,
        finished,
        peak_memory(later_bytes(job, rows["drawn"], models[0])),
        sum(models.values()) + lessons + stored_states(job, counts, speed, machine),
    )


def model_bytes(job: Job, number: int) -> int:
    """The bytes of the model of a round, as it is saved: of a probe round the head alone."""
    method = job.method
    head_alone = number > 0 and method.is_probe(number)
    if head_alone:
        return FLOAT * (job.backbone.width + 1) * len(job.task.labels)
    tune = method.student[0] if number else method.teacher
    with torch.device("meta"):
        state = new_model(job, tune, seed=0).state()
    return sum(tensor.numel() * tensor.element_size() for tensor in state.values())


def stored_states(job: Job, counts: Counts, speed: Speed, machine: Machine) -> int:
    """The bytes of frozen layers' states, which lie on disk while a run lasts."""
    method = job.method
    readers = [method.teacher, *(method.student[:1] if method.rounds else ())]
    if all(tuned_share(tune, job.backbone) == 1 for tune in readers):
        return 0
    rows = drawn(method, counts) * len(different_draws(method))
    size = rows * speed.tokens.get("pool", 0.0) * job.backbone.width * FLOAT
    return min(int(size), machine.cache_mb * 1_000_000)


def later_bytes(job: Job, drawn_rows: int, teacher: int) -> int:
    """The memory of a run that a calibration before it has not taken.

    Both train a model beside another one. A run keeps vectors; with students also the teacher's
    gradients, and a copy of the student.
    """
    vectors = drawn_rows * job.backbone.width * FLOAT
    return vectors + (2 * teacher if job.method.rounds else 0)


def peak_memory(later: int) -> int | None:
    """The peak of this process so far, and what comes later."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    import sklearn.linear_model  # noqa: F401  (a run loads it: its memory counts)

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit + later
