"""The work of a run, counted before it starts: the rows that each stage reads or trains on.

All is counted in rows read: one forward pass, no dropout. ``calibration`` turns it into seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from selftrain.method.recipes import recipe
from selftrain.method.spec import Method, Tune
from selftrain.model.backbone import Backbone
from selftrain.model.pel import AnyTuning, Full, Layers, Probe, layers_of, placeholders
from selftrain.model.pel.layers import depth, dropout_depth
from selftrain.training.balance import most_of_a_class
from selftrain.training.draw import GUARDED_SLICE_ROWS, MAX_VECTORS, SLICE_ROWS

FULL, MODULE, DROPOUT, HEAD = 3.0, 2.3, 1.2, 0.01
"""What one row costs, in rows read: trained with all parameters, trained with a module alone, read
with dropout, and by its vector in a round of the head."""
TOKENS = 40  # of a row, about: 24 in sst2, 53 in agnews

Texts = Literal["gold", "pool", "scored", "test"]
StageName = Literal[
    "teacher",
    "reading",
    "guard",
    "head",
    "annotating",
    "student",
    "scores",
    "estimate",
    "ladder",
    "test",
]


@dataclass(frozen=True, slots=True)
class Counts:
    """The rows of a run, counted, and its classes."""

    labelled: int
    pool: int
    scored: int
    """Scored after every round."""
    classes: int
    test: int = 0
    """Scored once, at the end."""
    rarest: int | None = None
    """Labelled rows of the class that has fewest; None where nobody counted."""


@dataclass(frozen=True, slots=True)
class Work:
    """Rows that a stage computes in one way."""

    rows: float
    """In rows read."""
    texts: Texts
    """Which texts they are: how long they are decides the time."""
    tuning: AnyTuning | None = None
    """What steps over these rows train; None where they are read."""
    placeholders: int = 0
    """Tokens that a tuning adds to each row: P-tuning does."""

    @property
    def cost(self) -> float:
        """In rows read of usual length."""
        return self.rows * (1 + self.placeholders / TOKENS)


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a round, and its work."""

    name: StageName
    number: int
    """The round it belongs to."""
    work: tuple[Work, ...]

    @property
    def cost(self) -> float:
        """In rows read."""
        return sum(each.cost for each in self.work)


def rows_read(
    method: Method,
    backbone: Backbone,
    counts: Counts,
    *,
    has_teacher: bool = False,
    has_votes: bool = False,
) -> float:
    """The cost of the rounds of a run and of their scores, in rows read.

    ``has_teacher``: another method has trained and scored the teacher. ``has_votes``: another
    method has computed the votes of round 1.
    """
    skipped = {("annotating", 1)} if has_votes else set()
    if has_teacher:
        skipped |= {("teacher", 0), ("scores" if method.total_rounds else "", 0)}
    return sum(
        stage.cost
        for stage in stages(method, backbone, counts)
        if (stage.name, stage.number) not in skipped and stage.name not in ("estimate", "ladder")
    )


def stages(
    method: Method, backbone: Backbone, counts: Counts, *, finished: int = -1
) -> Iterator[Stage]:
    """The stages of a run in their order; a resumed run has rounds up to ``finished`` already.

    A run that converges, or that fails, ends earlier.
    """
    if finished < 0:
        yield Stage("teacher", 0, tuple(teacher_work(method, counts)))
        yield scores(method.teacher, counts, 0)
    for number in range(max(finished, 0) + 1, method.total_rounds + 1):
        first = number in (1, finished + 1)
        if method.probe is None:
            yield from student_round(method, backbone, counts, number, first=first)
        else:
            yield from probe_round(method, counts, number, first=first)
    last = method.total_rounds
    yield Stage("estimate", last, tuple(estimate_work(method, counts, last, finished=finished)))
    yield Stage("ladder", last, tuple(ladder_work(method, counts, last)))
    if counts.test:
        yield Stage("test", last, (Work(counts.test, "test"),))


def scores(tune: Tune, counts: Counts, number: int) -> Stage:
    """The rows that are scored after a round."""
    return Stage("scores", number, (read(counts.scored, "scored", tune),))


def read(rows: float, texts: Texts, tune: Tune) -> Work:
    """Rows read by a model that was trained like this."""
    return Work(rows, texts, placeholders=placeholders(tune.tuning))


def drawn(method: Method, counts: Counts) -> int:
    """The rows that a round draws from the pool."""
    rows = counts.pool if method.pool == "all" else min(counts.pool, method.pool)
    return rows if method.probe is None else min(rows, MAX_VECTORS)


# ── one round ────────────────────────────────────────────────────────────────────────────────


def teacher_work(method: Method, counts: Counts) -> Iterator[Work]:
    """Round 0."""
    if method.tapt is not None:
        rows = method.tapt.steps * method.tapt.batch_size
        yield Work((FULL + 1) * rows, "pool", method.teacher.tuning)  # + 1: a score per word
    rows = counts.labelled
    if method.teacher.balance_labels and counts.rarest is not None:
        rows = min(rows, counts.classes * most_of_a_class(counts.rarest, counts.classes))
    yield from fit_work(method.teacher, rows, counts.classes, "gold")


def student_round(
    method: Method, backbone: Backbone, counts: Counts, number: int, *, first: bool
) -> Iterator[Stage]:
    """A round without probe rounds: votes, a student, the guard's slice."""
    rows = drawn(method, counts)
    share = top_share(method.dropout_layers, backbone)
    teacher, student = method.teacher if number == 1 else method.student[-1], method.student[-1]
    votes = read(rows * (1 + DROPOUT * share * method.passes), "pool", teacher)
    yield Stage("annotating", number, (votes,))
    yield Stage("student", number, tuple(students_work(method, backbone, counts, number)))
    compared = [read(slice_size(method, counts), "pool", student)]
    if first:
        compared += [read(slice_size(method, counts), "pool", teacher)]
        compared += folds_work(method, counts) if method.guard == "folds" else []
    yield Stage("guard", number, tuple(compared))
    yield scores(student, counts, number)


def probe_round(method: Method, counts: Counts, number: int, *, first: bool) -> Iterator[Stage]:
    """A round of a method with probe rounds: each encoder reads the draw once.

    A run that resumes after a student reads it by two encoders: the teacher's and that of round 0.
    """
    assert method.probe is not None
    pool = vectors_work(method, counts)
    if first:
        encoders = 1 if number <= method.probe.rounds + 1 else 2
        yield Stage("reading", number, tuple(pool * encoders))
        if method.guard == "folds":
            yield Stage("guard", number, tuple(folds_work(method, counts)))
    if method.is_probe(number):
        yield Stage("head", number, (Work(HEAD * drawn(method, counts), "pool"),))
    else:
        yield Stage("student", number, tuple(students_work(method, None, counts, number)))
        yield Stage("reading", number, tuple(pool))
    yield scores(method.teacher, counts, number)


def students_work(
    method: Method, backbone: Backbone | None, counts: Counts, number: int
) -> Iterator[Work]:
    """Every stage of the student; frozen layers are computed once for each text drawn.

    Without a backbone no layer counts as frozen.
    """
    rows = drawn(method, counts)
    easy = method.selection(number).size(rows, method.turn(number))
    frozen = 0.0 if backbone is None else 1 - tuned_share(method.student[0], backbone)
    for tune in method.student:
        lesson = counts.labelled if tune.train_on else easy
        for work in fit_work(tune, lesson, counts.classes, "pool"):
            yield replace(work, rows=work.rows * (1 - frozen))
    if frozen:
        yield Work(rows * frozen, "pool")


def vectors_work(method: Method, counts: Counts) -> list[Work]:
    """One encoder reads the draw and the labelled rows."""
    return [Work(drawn(method, counts), "pool"), Work(counts.labelled, "gold")]


def folds_work(method: Method, counts: Counts) -> list[Work]:
    """The pretrained encoder reads the slice, and the labelled rows: twice for class names."""
    times = 2 if method.teacher.class_names else 1
    return [Work(slice_size(method, counts), "pool"), Work(times * counts.labelled, "gold")]


def slice_size(method: Method, counts: Counts) -> int:
    """The rows on which teacher and student are compared."""
    size = GUARDED_SLICE_ROWS if method.guard == "folds" else SLICE_ROWS
    return min(size, counts.pool if method.probe is None else drawn(method, counts))


def estimate_work(
    method: Method, counts: Counts, last: int, *, finished: int = -1
) -> Iterator[Work]:
    """What the estimate reads of a run that ends with round ``last``: what no round has read.

    Rounds up to ``finished`` come from disk: their encoders read the pool again.
    """
    new_rounds = last > max(finished, 0)
    if not (new_rounds and method.guard == "folds"):
        yield from folds_work(method, counts)
    if method.probe is not None:
        encoders = 1 + max(finished, 0) // (method.probe.rounds + 1)
        again = encoders - 1 if new_rounds else encoders
        yield from vectors_work(method, counts) * again
    else:
        again = max(finished, 0) if new_rounds else last + 1
        yield Work(slice_size(method, counts) * again, "pool")


def ladder_work(method: Method, counts: Counts, last: int) -> Iterator[Work]:
    """What simple models read beside a run that ends with round ``last``.

    The frozen encoder reads a draw of the pool. It and each encoder of the run read the test rows.
    """
    if method.is_frozen or not counts.pool:
        return
    frozen = recipe("frozen")
    yield from fit_work(frozen.teacher, counts.labelled, counts.classes, "gold")
    yield Work(drawn(frozen, counts), "pool")
    if counts.test:
        encoders = 1 + (last if method.probe is None else last // (method.probe.rounds + 1))
        yield Work((1 + encoders) * counts.test, "test")


# ── one fit ──────────────────────────────────────────────────────────────────────────────────


def fit_work(tune: Tune, rows: int, classes: int, texts: Texts) -> Iterator[Work]:
    """A fit on a lesson of so many rows: what it reads for regressions, and its steps."""
    asks_names = bool(tune.class_names)
    if isinstance(tune.tuning, Probe):
        yield Work((2 + asks_names) * rows, texts)  # for the regression, and for its loss
        return
    times_read = asks_names + (tune.head_start == "regression") + (tune.supcon is not None)
    if times_read:
        yield read(times_read * rows, texts, tune)
    steps_an_epoch = math.ceil(rows / tune.batch_size)
    steps = tune.steps or (tune.epochs or 0) * steps_an_epoch
    steps = max(steps, (tune.min_epochs or 0) * steps_an_epoch)
    batch = float(tune.batch_size)
    if tune.contrast is not None:
        batch += classes * tune.contrast.negatives
    if tune.smooth is not None:
        batch *= 2
    cost = row_cost(tune.tuning)
    reweighing = 0.0 if tune.reweigh is None else (1 - tune.reweigh.after) * (cost + 2)
    trained = steps * batch * (cost + reweighing)
    yield Work(trained, texts, tune.tuning, placeholders(tune.tuning))


def row_cost(tuning: AnyTuning) -> float:
    """What a row costs that is trained with this tuning, in rows read."""
    return FULL if isinstance(tuning, Full) else MODULE


def tuned_share(tune: Tune, backbone: Backbone) -> float:
    """The share of the layers that a step computes; the states below tuned layers are stored."""
    layers = layers_of(tune.tuning)
    return 1.0 if layers is None else top_share(layers, backbone)


def top_share(layers: Layers, backbone: Backbone) -> float:
    """The share of the layers that these top layers are."""
    count = depth(backbone.encoder, backbone.family)
    return dropout_depth(layers, backbone.family, count) / count
