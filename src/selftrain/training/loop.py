"""Algorithm 1 of the paper: teacher, votes, lesson, student, and round again.

A generator: it yields each round and does nothing else. The command line prints, the run folder
saves, a notebook plots, all by iterating; to stop early is to ``break``.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from markupsafe import Markup

from selftrain import html
from selftrain.data.rows import AuditLine, Lesson
from selftrain.errors import NoNumberError, TrainingError, in_percent, listing
from selftrain.method.selection import RoundDraw
from selftrain.method.spec import Method
from selftrain.model.build import copy, with_copied_head, with_dropout_in
from selftrain.model.classifier import Classifier
from selftrain.seeds import child
from selftrain.training.annotate import Annotate, annotate, votes_seed
from selftrain.training.draw import pool_of_round, slice_rows
from selftrain.training.fit import Fitted, fit
from selftrain.training.guard import Guard
from selftrain.training.job import Job, new_model
from selftrain.training.machine import Machine
from selftrain.training.memory import frozen_layers_remembered
from selftrain.training.neighbours import with_neighbours
from selftrain.training.probe import fit_probe
from selftrain.training.readings import Readings
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
    encoder_of: int | None = None
    """The round whose encoder the model shares, with a head of its own; None has its own."""
    readings: Readings | None = field(default=None, repr=False, compare=False)
    """What models of this run say of the pool, for its estimate; None of a round from disk."""

    @property
    def encoder(self) -> int:
        """The number of the round that trained the encoder of the model."""
        return self.number if self.encoder_of is None else self.encoder_of

    @property
    def failed(self) -> bool:
        """Whether the training failed: no other refused round ends the loop.

        Its model is that of the last accepted round.
        """
        return self.last and not self.accepted

    def _repr_html_(self) -> str:
        numbers = {
            name: f"{value:.3f}" if isinstance(value, float) else str(value)
            for name, value in self.numbers.items()
            if isinstance(value, int | float)
        }
        verdict = "accepted" if self.accepted else "refused"
        title = f"round {self.number}, {verdict}" if self.number else "teacher"
        why = Markup("<p>{}</p>").format(html.shortened(self.why)) if self.why else ""
        rows = [[name, value] for name, value in numbers.items()]
        return str(Markup("{}{}").format(html.table([title, ""], rows), why))


def self_train(
    job: Job,
    *,
    done: Sequence[Round] = (),
    annotate: Annotate = annotate,
    guard: Guard | None = None,
    machine: Machine | None = None,
) -> Iterator[Round]:
    """Algorithm 1 of the paper; continues after ``done``, the rounds already finished."""
    machine = machine or Machine()
    if finished(done, job.method):
        return
    rows = slice_rows(job)
    with frozen_layers_remembered(job, rows, machine):
        if not done:
            done = [train_teacher(job, machine)]  # lines 1, 2
            yield done[0]
        teacher, readings = last_accepted(done), Readings(job, rows, done, machine)
        for number in range(len(done), job.method.total_rounds + 1):  # line 3
            started = time.perf_counter()
            lesson = lesson_of(job, teacher, number, annotate, readings)  # lines 4, 5, 7-9
            numbers = lesson_numbers(lesson) | seconds(started, " annotating")
            warn_of_classes(job, number, numbers)
            try:
                student, fits = train_student(job, teacher, lesson, number, readings)  # 6, 10-12
                numbers |= {"fit": [asdict(fitted) for fitted in fits]}
                shared = encoder_of(teacher, student)
                round_ = Round(number, student, lesson, numbers, encoder_of=shared)
                round_ = judged(job, teacher, round_, readings, guard or readings.guard)
            except (TrainingError, NoNumberError) as error:
                numbers |= seconds(started)
                yield Round(number, teacher.model, lesson, numbers, False, error.message, last=True)
                return
            round_ = replace(round_, numbers={**round_.numbers, **seconds(started)})
            if round_.accepted:
                teacher = replace(round_, model=copied(round_))  # line 13
                readings.forget_others(teacher)
            yield round_
            if round_.last:
                return


def last_accepted(rounds: Sequence[Round]) -> Round:
    """The last accepted round: its model is the next teacher, and in the end the result."""
    return [round_ for round_ in rounds if round_.accepted][-1]


def finished(rounds: Sequence[Round], method: Method) -> bool:
    """Whether a run with these rounds has no round left to train."""
    return bool(rounds) and (rounds[-1].last or rounds[-1].number >= method.total_rounds)


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
    job: Job, teacher: Round, number: int, annotate: Annotate, readings: Readings
) -> Lesson:
    """The lesson from the teacher's votes on a draw of the pool (lines 4, 5 and 7-9)."""
    pool, machine = readings.drawn(number), readings.machine  # line 4
    votes = readings.annotate(teacher, annotate)(
        with_dropout_in(teacher.model, job.method.dropout_layers),
        pool,
        job.method.passes,
        seed=votes_seed(job.seed, number),
        machine=machine,
    )
    lesson = job.method.selection(number)(  # lines 5, 7-9
        votes,
        job.task.labels,
        job.split.labelled,
        RoundDraw(len(pool), number, job.seed, job.method.turn(number)),
        folder=machine.cache,
    )
    return with_neighbours(lesson, teacher.model, job.method.student)


def train_student(
    job: Job, teacher: Round, lesson: Lesson, number: int, readings: Readings
) -> tuple[Classifier, list[Fitted]]:
    """A student, trained on the lesson in every stage of the method (lines 6 and 10-12)."""
    if job.method.probe is not None and job.method.is_probe(number):
        student = with_copied_head(teacher.model)
        fitted = fit_probe(student, lesson, job.method.probe, readings.vectors(teacher))
        readings.machine.ranks.copy_first(student.head_state().values())
        return student, [fitted]
    first = job.method.student[0]
    if first.starts_from == "teacher":
        student = copy(teacher.model)
    else:
        student = new_model(job, first, child(job.seed, "student", number))  # line 6
    fits = [  # lines 10-12
        fit(
            student,
            lesson,
            tune,
            seed=child(job.seed, "fit", number, stage),
            machine=readings.machine,
        )
        for stage, tune in enumerate(job.method.student)
    ]
    return student, fits


def encoder_of(teacher: Round, student: Classifier) -> int | None:
    """The round whose encoder the student has; None where it trained its own."""
    return teacher.encoder if student.encoder is teacher.model.encoder else None


def judged(job: Job, teacher: Round, student: Round, readings: Readings, guard: Guard) -> Round:
    """The round of a student, accepted or refused, and whether it is the last."""
    answers = readings.compared(teacher, student)
    verdict = guard(job.task.labels, answers)
    changed = fmean(a != b for a, b in zip(answers.before, answers.after, strict=True))
    converged = job.method.probe is None and changed < job.method.converged
    last = verdict.accept and converged
    why = (
        f"converged: {changed:.1%} of {len(answers.after)} labels changed" if last else verdict.why
    )
    numbers = {**student.numbers, "changed": changed, **verdict.numbers}
    numbers |= readings.prior(answers.after)
    # Another processor may round a number differently: where several train, the first decides.
    accepted, why, last = readings.machine.ranks.of_first((verdict.accept, why, last))
    student = replace(student, numbers=numbers, readings=readings)
    return replace(student, accepted=accepted, why=why, last=last)


def copied(round_: Round) -> Classifier:
    """A copy of a round's model; of a probe round the head alone, its encoder stays shared."""
    return copy(round_.model) if round_.encoder_of is None else with_copied_head(round_.model)


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


UNEVEN = 0.15
"""How far from equal the class shares of a pool may be before equal quotas are warned of."""


def warn_of_classes(job: Job, number: int, numbers: Mapping[str, Any]) -> None:
    """Log each class that the teacher gave to no text, and equal quotas on an uneven pool."""
    labels, counts = job.task.labels, numbers["classes"]
    missing = [label for label in labels if label not in counts]
    if missing:
        log.warning(f"round {number}: no text of the pool was taken for {listing(missing)}")
    shares = [counts.get(label, 0) / numbers["pool"] for label in labels]
    uneven = sum(abs(share - 1 / len(labels)) for share in shares) / 2 > UNEVEN
    if number == 1 and uneven and job.method.selection(number).per_class == "equal":
        log.warning(
            f"the pool's classes look uneven ({in_percent(shares)}), but the method takes as "
            'many of each: rare classes may grow too large; per_class = "proportional" is safer'
        )


def seconds(started: float, doing: str = "") -> dict[str, float]:
    """The seconds since then, under a name for what took them."""
    return {f"seconds{doing}": time.perf_counter() - started}
