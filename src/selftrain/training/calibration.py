"""How fast this machine is with the texts of a run: some are read, and a few steps are trained.

It takes a few seconds. The model is thrown away, nothing is written, and no random state of the
process moves: a run after it has the same bits as a run without it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from random import Random
from statistics import fmean

from torch import Tensor

from selftrain.data.rows import Example, Labelled, Lesson
from selftrain.method.spec import Method, Tune
from selftrain.model.classifier import Classifier
from selftrain.model.pel import AnyTuning, Probe, placeholders
from selftrain.training.class_names import class_name_rows
from selftrain.training.cost import Stage, Texts, Work, row_cost, tuned_share
from selftrain.training.draw import pool_of_round
from selftrain.training.fit import History, course_of, head_fixed, optimise, step_loss
from selftrain.training.job import Job, new_model
from selftrain.training.machine import Machine, randomness
from selftrain.training.preflight import FIRST_TEXTS
from selftrain.training.steps import Table, steps_of

READ_TOKENS = 4096
"""Of the texts that are read: eight batches on a CPU."""
FEW = 8
"""Texts that are read first: where they take long, no more are."""
STEPS = 4  # of a tuning on texts of a kind; the first warms up and does not count
MOST_SECONDS = 3.0
"""After this no further step of a tuning starts, but two always run; texts that would take longer
to read are not read."""
LESSON_ROWS = 256  # of the pool
NAMED_ROWS = 256
"""Among more labelled rows those made of class names hardly count, and asking for them is slow."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What a token costs on this machine, and how many tokens the texts of a run have."""

    reading: float
    """Seconds for a token that is read."""
    training: Mapping[tuple[AnyTuning, Texts], float]
    """Seconds for a token that is trained, for each row read that ``cost`` counts. Part of a step
    takes as long for short texts as for long ones, so the texts count too."""
    tokens: Mapping[Texts, float]
    """The mean number in a row."""
    lesson_rows: int
    """Rows that the teacher learns: the labelled ones, and those made of class names."""

    def seconds(self, stage: Stage) -> float:
        """How long a stage takes."""
        return sum(map(self._seconds, stage.work))

    def _seconds(self, work: Work) -> float:
        tokens = self.tokens.get(work.texts, 0.0) + work.placeholders
        if work.tuning is None:
            return work.rows * tokens * self.reading
        return work.rows * tokens * self.training[work.tuning, work.texts]


def calibrate(job: Job, machine: Machine, test: Sequence[Labelled] = ()) -> Speed:
    """Measure the speed of this machine with the texts and the tunings of a job."""
    method = job.method
    model = new_model(job, method.teacher, seed=0).to(machine.torch_device())
    drawn = pool_of_round(job, 1)
    pool = drawn if isinstance(drawn, list) else list(islice(drawn, FIRST_TEXTS))
    lesson = lesson_of(model, job)
    lessons: dict[Texts, Lesson] = {"gold": lesson, "pool": made_up_lesson(job, pool)}
    texts: dict[Texts, Iterable[Example]] = {
        "gold": (row.example for row in lesson.gold),
        "pool": pool,
        "scored": (row.example for row in job.split.dev),
        "test": (row.example for row in test),
    }
    lengths = {name: lengths_of(model, list(each)) for name, each in texts.items()}
    sample = sampled(pool or [row.example for row in lesson.gold], model)
    return Speed(
        reading=seconds_a_read_token(model, sample),
        training={
            (tune.tuning, kind): seconds_a_trained_token(job, tune, lessons[kind], machine)
            for kind, tune in stepped(method)
        },
        tokens={
            name: fmean(each) - placeholders(method.teacher.tuning)
            for name, each in lengths.items()
            if each
        },
        lesson_rows=len(lesson.gold),
    )


def stepped(method: Method) -> Iterator[tuple[Texts, Tune]]:
    """What a method trains by steps, and on which texts; each tuning and kind of texts once."""
    found: dict[tuple[AnyTuning, Texts], Tune] = {(method.teacher.tuning, "gold"): method.teacher}
    for tune in method.student if method.rounds else ():
        found.setdefault((tune.tuning, "pool"), tune)
    if method.tapt is not None:
        adapted = replace(method.teacher, batch_size=method.tapt.batch_size)
        found.setdefault((method.teacher.tuning, "pool"), adapted)
    for (tuning, kind), tune in found.items():
        if not isinstance(tuning, Probe):
            yield kind, tune


def made_up_lesson(job: Job, pool: Sequence[Example]) -> Lesson:
    """A lesson of a student with labels by turns: its batches have the sizes of a real one."""
    labels = job.task.labels
    rows = [
        Labelled(example, labels[place // 2 % len(labels)])
        for place, example in enumerate(pool[:LESSON_ROWS])
    ]
    return Lesson(job.split.labelled, tuple(rows[::2]), tuple(rows[1::2]))


def lesson_of(model: Classifier, job: Job) -> Lesson:
    """What the teacher learns: the labelled rows, and those made of class names."""
    gold = job.split.labelled
    named = job.method.teacher.class_names and len(gold) <= NAMED_ROWS
    return Lesson((*gold, *(class_name_rows(model, gold) if named else ())))


def lengths_of(model: Classifier, examples: Sequence[Example]) -> list[int]:
    """The tokens of each example."""
    return [len(row.ids) for row in model.encode(examples)]


def sampled(examples: Sequence[Example], model: Classifier) -> list[Example]:
    """Some of the examples, of every length, with about ``READ_TOKENS`` tokens in all."""
    lengths = lengths_of(model, examples)
    order = sorted(range(len(examples)), key=lambda place: (lengths[place], place))
    step = max(1, round(sum(lengths) / READ_TOKENS))
    return [examples[place] for place in order[step // 2 :: step]]


def seconds_a_read_token(model: Classifier, examples: Sequence[Example]) -> float:
    """Seconds for a token that is read.

    On a slow or busy machine a part of the examples, of every length too, is enough.
    """
    few = examples[:: len(examples) // FEW + 1]
    model.read(few)  # warms up
    seconds = seconds_reading(model, few)
    if seconds * len(examples) / len(few) > MOST_SECONDS:
        return seconds / sum(lengths_of(model, few))
    fastest = min(seconds_reading(model, examples) for _ in range(2))
    return fastest / sum(lengths_of(model, examples))


def seconds_reading(model: Classifier, examples: Sequence[Example]) -> float:
    """How long the model takes to read these."""
    started = time.perf_counter()
    model.read(examples)
    return time.perf_counter() - started


# ── steps ────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Watched:
    """When each step started, and how many tokens it had."""

    started: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    @property
    def long_enough(self) -> bool:
        """Whether no further step is needed."""
        spent = self.started[-1] - self.started[0] if self.started else 0.0
        return len(self.started) > 2 and spent > MOST_SECONDS

    @property
    def seconds_a_token(self) -> float:
        """Of the fastest step after the first: a moment's disturbance is no part of it."""
        lasted = [after - before for before, after in pairwise(self.started)]
        steps = zip(lasted[1:], self.tokens[1:], strict=True)
        return min(seconds / tokens for seconds, tokens in steps)


def seconds_a_trained_token(job: Job, tune: Tune, lesson: Lesson, machine: Machine) -> float:
    """Seconds for a token that is trained, for each row read that ``cost`` counts.

    A few real steps of this tune on rows of the lesson. The layers below a tuned part are computed
    in each of them; in a run they are stored.
    """
    model = new_model(job, tune, seed=0).to(machine.torch_device())
    table = Table.of(model, lesson)
    batches = steps_of(table, tune, Random(0))  # noqa: S311
    watched = Watched()

    def loss_of_step(_number: int) -> Tensor | None:
        if watched.long_enough:
            return None
        watched.started.append(time.perf_counter())
        step = next(batches)
        watched.tokens.append(sum(len(table.rows[place].ids) for place in step.rows))
        return step_loss(model, table, step, tune, History())

    course = replace(course_of(model, tune, 100 * STEPS), steps=STEPS)  # at a low rate
    with randomness(0, "calibration"), head_fixed(model, tune):
        optimise(model, course, loss_of_step, Machine(machine.device, machine.threads))
    watched.started.append(time.perf_counter())  # the end of the last step
    tuned = tuned_share(tune, job.backbone)
    return watched.seconds_a_token / (tuned * row_cost(tune.tuning) + (1 - tuned))
