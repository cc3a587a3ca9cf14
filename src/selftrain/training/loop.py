"""Algorithm 1 of the paper: teacher, votes, lesson, student, and round again.

A generator: it yields each round and does nothing else. The command line prints, the run folder
saves, a notebook plots, all by iterating; to stop early is to ``break``.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from selftrain.data.rows import AuditLine, Example, Lesson
from selftrain.errors import TrainingError
from selftrain.method.selection import RoundDraw
from selftrain.method.spec import Method
from selftrain.model.build import copy, with_dropout_in
from selftrain.model.classifier import Classifier
from selftrain.seeds import child
from selftrain.training.annotate import Annotate, annotate
from selftrain.training.draw import pool_of_round, probe_rows
from selftrain.training.fit import Fitted, fit
from selftrain.training.guard import Verdict, no_class_lost
from selftrain.training.job import Job, new_model
from selftrain.training.machine import Machine
from selftrain.training.memory import frozen_layers_remembered
from selftrain.training.neighbours import with_neighbours
from selftrain.training.tapt import pretrain

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Round:
    """What one round gave. Round 0 is the teacher, trained on the gold labels alone."""

    number: int
    """0 for the teacher, then 1, 2 and so on."""
    model: Classifier
    """The student of the round; in round 0 the teacher."""
    lesson: Lesson
    """The rows that the model was trained on, and the audit of the pool."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """Counts, means and seconds of the round, by name."""
    accepted: bool = True
    """Whether the model becomes the next teacher."""
    why: str = ""
    """Why it was refused, or why the loop ends here; empty otherwise."""
    last: bool = False
    """Whether the loop ends here before its last round: converged, or the training failed."""

    @property
    def failed(self) -> bool:
        """Whether the training failed: no other refused round ends the loop.

        Its model is that of the last accepted round.
        """
        return self.last and not self.accepted


def self_train(
    job: Job,
    *,
    done: Sequence[Round] = (),
    annotate: Annotate = annotate,
    guard: Callable[..., Verdict] = no_class_lost,
    machine: Machine | None = None,
) -> Iterator[Round]:
    """Algorithm 1 of the paper; continues after ``done``, the rounds already finished."""
    machine = machine or Machine()
    if finished(done, job.method):
        return
    probe = Probe(probe_rows(job))
    with frozen_layers_remembered(job, probe.rows, machine):
        if not done:
            done = [train_teacher(job, machine)]  # lines 1, 2
            yield done[0]
        teacher = last_accepted(done).model
        for number in range(len(done), job.method.rounds + 1):  # line 3
            started = time.perf_counter()
            lesson = lesson_of(job, teacher, number, annotate, machine)  # lines 4, 5, 7-9
            numbers = lesson_numbers(lesson) | seconds(started, " annotating")
            warn_of_missing_classes(job, number, numbers)
            try:
                student, fits = train_student(job, teacher, lesson, number, machine)  # 6, 10-12
            except TrainingError as error:
                numbers |= seconds(started)
                yield Round(number, teacher, lesson, numbers, False, error.message, last=True)
                return
            before, after = probe.answers(teacher), probe.answers(student)
            verdict = guard(job.task.labels, before, after)
            changed = fmean(a != b for a, b in zip(before, after, strict=True))
            numbers |= {"changed": changed, "fit": [asdict(fitted) for fitted in fits]}
            if verdict.accept:
                teacher = probe.remember(copy(student), after)  # line 13
            last = verdict.accept and changed < job.method.converged
            why = (
                f"converged: {changed:.1%} of {len(after)} labels changed" if last else verdict.why
            )
            numbers |= seconds(started)
            yield Round(number, student, lesson, numbers, verdict.accept, why, last)
            if last:
                return


def last_accepted(rounds: Sequence[Round]) -> Round:
    """The last accepted round: its model is the next teacher, and in the end the result."""
    return [round_ for round_ in rounds if round_.accepted][-1]


def finished(rounds: Sequence[Round], method: Method) -> bool:
    """Whether a run with these rounds has no round left to train."""
    return bool(rounds) and (rounds[-1].last or rounds[-1].number >= method.rounds)


# ── the stages of a round ────────────────────────────────────────────────────────────────────


def train_teacher(job: Job, machine: Machine) -> Round:
    """Round 0: the teacher, trained on the gold labels alone (lines 1 and 2)."""
    started = time.perf_counter()
    teacher = new_model(job, job.method.teacher, child(job.seed, "teacher"))  # line 1
    numbers: dict[str, Any] = {}
    if job.method.tapt is not None:
        pool = pool_of_round(job, 0)
        loss = pretrain(teacher, pool, job.method.tapt, seed=job.seed, machine=machine)
        numbers = {} if loss is None else {"adapted": loss}
    gold = Lesson(gold=job.split.labelled)
    fitted = fit(
        teacher, gold, job.method.teacher, seed=child(job.seed, "fit", 0), machine=machine
    )  # line 2
    return Round(0, teacher, gold, numbers | {"fit": [asdict(fitted)], **seconds(started)})


def lesson_of(
    job: Job, teacher: Classifier, number: int, annotate: Annotate, machine: Machine
) -> Lesson:
    """The lesson from the teacher's votes on a draw of the pool (lines 4, 5 and 7-9)."""
    pool = pool_of_round(job, number)  # line 4
    mc_model = with_dropout_in(teacher, job.method.dropout_layers)
    votes = annotate(
        mc_model,
        pool,
        job.method.passes,
        seed=child(job.seed, "votes", number),
        machine=machine,
    )
    lesson = job.method.select(  # lines 5, 7-9
        votes,
        job.task.labels,
        job.split.labelled,
        RoundDraw(len(pool), number, job.seed),
        folder=machine.cache,
    )
    return with_neighbours(lesson, teacher, job.method.student)


def train_student(
    job: Job, teacher: Classifier, lesson: Lesson, number: int, machine: Machine
) -> tuple[Classifier, list[Fitted]]:
    """A student, trained on the lesson in every stage of the method (lines 6 and 10-12)."""
    first = job.method.student[0]
    if first.starts_from == "teacher":
        student = copy(teacher)
    else:
        student = new_model(job, first, child(job.seed, "student", number))  # line 6
    fits = [  # lines 10-12
        fit(student, lesson, tune, seed=child(job.seed, "fit", number, stage), machine=machine)
        for stage, tune in enumerate(job.method.student)
    ]
    return student, fits


class Probe:
    """The answers of models on a few fixed pool rows; the teacher's are computed once."""

    def __init__(self, rows: Sequence[Example]) -> None:
        self.rows = rows
        self._known: tuple[Classifier, list[str]] | None = None

    def answers(self, model: Classifier) -> list[str]:
        """The label that the model gives to each row."""
        if self._known is not None and self._known[0] is model:
            return self._known[1]
        classes = model.probabilities(self.rows).argmax(1).tolist()
        return [model.labels[c] for c in classes]

    def remember(self, model: Classifier, answers: list[str]) -> Classifier:
        """Store the answers of a model, so that it is not asked again; returns the model."""
        self._known = (model, answers)
        return model


# ── numbers of a round ───────────────────────────────────────────────────────────────────────


def lesson_numbers(lesson: Lesson) -> dict[str, Any]:
    """Counts and means of a lesson, by name."""
    classes: Counter[str] = Counter()
    easy: list[AuditLine] = []
    for line in lesson.audit:  # once: a long audit is read from a file
        classes[line.label] += 1
        if line.role == "easy":
            easy.append(line)
    return {
        "pool": sum(classes.values()),
        "picked": len(lesson.easy),
        "hard": len(lesson.hard),
        "confidence": fmean(line.confidence for line in easy),
        "certainty": fmean(line.certainty for line in easy),
        "classes": dict(sorted(classes.items())),
        "classes picked": dict(sorted(Counter(line.label for line in easy).items())),
    }


def warn_of_missing_classes(job: Job, number: int, numbers: Mapping[str, Any]) -> None:
    """Log each class that the teacher gave to no text of the pool."""
    for label in job.task.labels:
        if label not in numbers["classes"]:
            log.warning(f"round {number}: no text of the pool was taken for `{label}`")


def seconds(started: float, doing: str = "") -> dict[str, float]:
    """The seconds since then, under a name for what took them."""
    return {f"seconds{doing}": time.perf_counter() - started}
