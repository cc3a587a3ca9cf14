"""Algorithm 1 of the paper: teacher, votes, lesson, student, and round again.

A generator: it yields each round and does nothing else. The command line prints, the run folder
saves, a notebook plots, all by iterating; to stop early is to ``break``.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from statistics import fmean
from typing import Any

from selftrain.data.pool import Pool
from selftrain.data.rows import AuditLine, Example, Lesson, Split
from selftrain.data.task import Task
from selftrain.errors import TrainingError
from selftrain.method.spec import Method, Tune
from selftrain.model.backbone import Backbone
from selftrain.model.batches import Row
from selftrain.model.build import build, copy, with_dropout_in
from selftrain.model.classifier import Classifier
from selftrain.model.fast.trunk import Memory
from selftrain.model.pel import layers_of
from selftrain.seeds import child, uniform
from selftrain.training.annotate import Annotate, annotate
from selftrain.training.fit import fit
from selftrain.training.guard import Verdict, no_class_lost
from selftrain.training.machine import Machine
from selftrain.training.neighbours import linked
from selftrain.training.tapt import adapt

SLICE = 256  # pool rows on which teacher and student are compared
ENCODED = 1024  # rows tokenised together


@dataclass(frozen=True, slots=True)
class Round:
    """What one round gave. Round 0 is the teacher, fitted on the labels alone."""

    number: int
    model: Classifier
    lesson: Lesson
    figures: Mapping[str, Any] = field(default_factory=dict)
    accepted: bool = True
    why: str = ""
    """Why it was refused, or why the loop ends here; empty otherwise."""
    last: bool = False
    """Whether the loop ends here before its last round: converged, or the training failed."""

    @property
    def failed(self) -> bool:
        """Whether the training broke off: no other refused round ends the loop.

        Its model is that of the last accepted round.
        """
        return self.last and not self.accepted


def self_train(
    task: Task,
    split: Split,
    method: Method,
    *,
    backbone: Backbone,
    seed: int,
    done: Sequence[Round] = (),
    annotate: Annotate = annotate,
    guard: Callable[..., Verdict] = no_class_lost,
    on: Machine | None = None,
) -> Iterator[Round]:
    """Self-training as the paper has it; goes on after ``done``, the rounds already whole."""
    on = on or Machine()
    if finished(done, method):
        return
    slice_ = draw(split.unlabelled, SLICE, seed=child(seed, "slice"))
    planned = plan(task, split, method, slice_, backbone=backbone, seed=seed, on=on)
    with forgotten_after(planned):
        if done:
            round_ = kept(done)
        else:
            round_ = taught(task, split, method, backbone=backbone, seed=seed, on=on)  # lines 1, 2
            yield round_
        teacher = round_.model
        said: list[str] = []  # what it says of the slice, once it has been asked
        for number in range(len(done) or 1, method.rounds + 1):  # line 3
            started = time.perf_counter()
            pool = drawn(split, method, number, seed)  # line 4
            wavering = with_dropout_in(teacher, method.dropout_layers)
            own = child(seed, "votes", number)
            lesson = method.select(  # lines 5, 7-9
                annotate(wavering, pool, method.passes, seed=own, on=on),
                task.labels,
                split.labelled,
                pool=len(pool),
                number=number,
                seed=seed,
                folder=on.cache,
            )
            lesson = linked(lesson, teacher, method.student)
            figures = {"pool": len(pool), **picked(lesson), **seconds(started, " annotating")}
            for label in (each for each in task.labels if each not in figures["classes"]):
                on.note(f"round {number}: no text of the pool was taken for `{label}`")
            own = child(seed, "student", number)
            student = fresh(task, method.student[0], backbone, own, teacher)
            try:
                fits = [  # lines 6, 10-12
                    fit(student, lesson, how, seed=child(seed, "fit", number, step), on=on)
                    for step, how in enumerate(method.student)
                ]
            except TrainingError as error:
                figures, why = figures | seconds(started), error.message
                yield Round(number, teacher, lesson, figures, accepted=False, why=why, last=True)
                return
            before, after = said or answers(teacher, slice_), answers(student, slice_)
            verdict = guard(task.labels, before, after)
            changed = fmean(a != b for a, b in zip(before, after, strict=True))
            said = before
            if verdict.accept:
                teacher, said = copy(student), after  # line 13
            last = verdict.accept and changed < method.converged
            told = f"converged: {changed:.1%} of {len(slice_)} labels changed"
            why = told if last else verdict.why
            figures |= {"changed": changed, "fit": [asdict(each) for each in fits]}
            figures |= seconds(started)
            round_ = Round(number, student, lesson, figures, verdict.accept, why, last)
            yield round_
            if last:
                return


def taught(
    task: Task, split: Split, method: Method, *, backbone: Backbone, seed: int, on: Machine
) -> Round:
    """Round 0: the teacher, fitted on the labels alone."""
    started = time.perf_counter()
    teacher = fresh(task, method.teacher, backbone, child(seed, "teacher"))  # line 1
    figures: dict[str, Any] = {}
    if method.tapt is not None:
        pool = drawn(split, method, 0, seed)
        read = adapt(teacher, pool, method.tapt, seed=seed, on=on)
        figures = {} if read is None else {"adapted": read}
    gold = Lesson(gold=split.labelled)
    fitted = fit(teacher, gold, method.teacher, seed=child(seed, "fit", 0), on=on)  # line 2
    return Round(0, teacher, gold, figures | {"fit": [asdict(fitted)], **seconds(started)})


def kept(rounds: Sequence[Round]) -> Round:
    """The last one accepted: the next teacher, and in the end the result."""
    return [round_ for round_ in rounds if round_.accepted][-1]


def finished(rounds: Sequence[Round], method: Method) -> bool:
    """Whether there is nothing left to do."""
    return bool(rounds) and (rounds[-1].last or rounds[-1].number >= method.rounds)


def fresh(
    task: Task, how: Tune, backbone: Backbone, seed: int, teacher: Classifier | None = None
) -> Classifier:
    """A new model: from the pretrained weights, or a copy of the teacher where the method says."""
    if how.starts_from == "teacher" and teacher is not None:
        return copy(teacher)
    return build(task, backbone, how.architecture, seed=seed)


def plan(
    task: Task,
    split: Split,
    method: Method,
    slice_: Sequence[Example],
    *,
    backbone: Backbone,
    seed: int,
    on: Machine,
) -> list[Memory]:
    """Make room for what frozen layers say of the rows of this run, so that it is computed once."""
    students = [how for how in method.student[:1] if how.starts_from != "teacher"]
    readers: dict[Memory, list[tuple[Classifier, Tune]]] = {}
    for how in (method.teacher, *students):
        if layers_of(how.tuning) is None:
            continue  # all layers move: there is nothing to remember, and no model to be built
        model = fresh(task, how, backbone, seed=0)
        if model.trunk is not None and model.trunk.memory is not None:
            readers.setdefault(model.trunk.memory, []).append((model, how))
    for memory, mine in readers.items():
        rows = (encoded(model, rows_of(split, method, slice_, seed)) for model, _ in mine)
        size = memory.plan(
            chain.from_iterable(rows),
            backbone.width,
            limit=on.cache_mb * 1_000_000,
            folder=on.cache,
            half=all(how.states == "fp16" for _, how in mine),
        )
        if size >= 1e6:
            on.note(taken(memory, size))
    return list(readers)


@contextmanager
def forgotten_after(memories: Sequence[Memory]) -> Iterator[None]:
    """What was remembered ends with its run: another must not read it, nor the disk stay taken."""
    try:
        yield
    finally:
        for memory in memories:
            memory.forget()


def rows_of(
    split: Split, method: Method, slice_: Sequence[Example], seed: int
) -> Iterator[Example]:
    """Every example that the models of a run will read."""
    yield from (row.example for row in split.labelled)
    yield from slice_
    for number in range(1, method.rounds + 1):
        yield from drawn(split, method, number, seed)


def taken(memory: Memory, size: int) -> str:
    """What a memory takes of this machine, and whether that is enough."""
    rest = "; not all fit: the others are computed each time" if memory.short else ""
    return (
        f"frozen layers are computed once for {memory.planned:,} texts: "
        f"{size / 1e6:,.0f} MB of disk meanwhile{rest}"
    )


def encoded(model: Classifier, examples: Iterable[Example]) -> Iterator[Row]:
    """The rows of many examples, tokenised as they are asked for."""
    stream = iter(examples)
    while chunk := list(islice(stream, ENCODED)):
        yield from model.encode(chunk)


def drawn(split: Split, method: Method, number: int, seed: int) -> list[Example] | Pool:
    """D_u' of a round.

    All of a pool too long to be held is taken as it comes, since to sort it would be to hold it.
    Dropout is drawn chunk by chunk, so there the order of the source decides which noise meets
    which row.
    """
    pool, size = split.unlabelled, None if method.pool == "all" else method.pool
    if size is None and isinstance(pool, Pool) and not pool.in_memory:
        return pool
    return draw(pool, size, seed=child(seed, "pool", number))


def draw(pool: Iterable[Example], size: int | None, *, seed: int) -> list[Example]:
    """D_u': rows drawn uniformly, never by gold label, whatever order the pool comes in."""

    def key(example: Example) -> tuple[float, str]:
        return uniform(seed, example.uid), example.uid

    return sorted(pool, key=key) if size is None else heapq.nsmallest(size, pool, key=key)


def answers(model: Classifier, examples: Sequence[Example]) -> list[str]:
    """The label the model gives each example."""
    return [model.labels[c] for c in model.probabilities(examples).argmax(1).tolist()]


def picked(lesson: Lesson) -> dict[str, Any]:
    """What the audit of a lesson adds up to."""
    classes: Counter[str] = Counter()
    easy: list[AuditLine] = []
    for line in lesson.audit:  # once: a long audit is read from a file
        classes[line.label] += 1
        if line.role == "easy":
            easy.append(line)
    return {
        "picked": len(lesson.easy),
        "hard": len(lesson.hard),
        "confidence": fmean(line.confidence for line in easy),
        "certainty": fmean(line.certainty for line in easy),
        "classes": dict(sorted(classes.items())),
        "classes picked": dict(sorted(Counter(line.label for line in easy).items())),
    }


def seconds(started: float, doing: str = "") -> dict[str, Any]:
    """The time since then, as a figure."""
    return {f"seconds{doing}": time.perf_counter() - started}
