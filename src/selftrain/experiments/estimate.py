"""The cost of a run before it starts, counted in rows read: one forward pass, no dropout."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from selftrain.data.rows import Example, Labelled
from selftrain.data.task import Task
from selftrain.experiments.grid import Group
from selftrain.experiments.tasksets import Taskset
from selftrain.method.spec import Method, Tune
from selftrain.model.backbone import Backbone
from selftrain.model.pel import Full, Layers, Probe, layers_of, placeholders
from selftrain.model.pel.layers import depth, dropout_depth
from selftrain.training.baselines import FrozenLogistic
from selftrain.training.draw import GUARDED_SLICE_ROWS, MAX_VECTORS

FULL, MODULE, DROPOUT = 3.0, 2.3, 1.2
"""What one row costs, in rows read: trained with all parameters, trained with a module alone, and
read with dropout."""
TOKENS = 40  # of a row, about: 24 in sst2, 53 in agnews
SAMPLE = 128  # rows on which the speed of a backbone is measured


@dataclass(frozen=True, slots=True)
class Counts:
    """The rows of a run, counted, and its classes."""

    labelled: int
    pool: int
    scored: int
    classes: int


class Estimate:
    """How long cells take on this machine, from the time of one row.

    It reads each task once, loads each backbone once, and counts once what methods share.
    """

    def __init__(
        self,
        read: Callable[[str], tuple[Taskset, int]],
        load: Callable[[str], Backbone],
    ) -> None:
        """``read`` gives the rows of a task and the number of scored rows."""
        self.read, self.load = cache(read), cache(load)
        self.seconds_per_row = cache(self._seconds_per_row)
        self.computed: set[object] = set()  # teachers and first votes of the cells so far

    def seconds(self, group: Group, method: Method | None) -> float:
        """For the next cell; without a method it is a reference."""
        taskset, scored = self.read(group.task)
        classes, rows = len(taskset.task.labels), len(taskset.rows)
        labelled = rows if group.shots == "full" else classes * group.shots
        work = float(scored + labelled)
        if method is not None:
            teacher = (group, method.teacher, method.tapt)
            votes = (*teacher, method.pool, method.passes, method.dropout_layers)
            work = rows_read(
                method,
                self.load(group.backbone),
                Counts(labelled, rows - labelled, scored, classes),
                has_teacher=teacher in self.computed,
                has_votes=votes in self.computed,
            )
            self.computed |= {teacher, votes}
        return work * self.seconds_per_row(group.task, group.backbone)

    def _seconds_per_row(self, task: str, backbone: str) -> float:
        taskset, _ = self.read(task)
        return seconds_per_row(taskset.task, self.load(backbone), taskset.rows[:SAMPLE])


def rows_read(
    method: Method,
    backbone: Backbone,
    counts: Counts,
    *,
    has_teacher: bool = False,
    has_votes: bool = False,
) -> float:
    """The estimated cost of a run and its scores, in rows read.

    ``has_teacher``: another method has trained and scored the teacher. ``has_votes``: another
    method has computed the votes of round 1.
    """
    drawn = counts.pool if method.pool == "all" else min(counts.pool, method.pool)
    total = 0.0 if has_teacher else training(method.teacher, counts.labelled, counts.classes)
    if method.tapt is not None and not has_teacher:
        total += (FULL + 1) * method.tapt.steps * method.tapt.batch_size  # + 1: a score per word
    teacher = method.teacher
    frozen = 1 - tuned_share(method.student[0], backbone) if method.student else 0.0
    if not (has_teacher and method.total_rounds):
        total += counts.scored * relative_length(teacher)
    if method.probe is not None:
        return total + probe_cost(method, counts, drawn)
    for number in range(1, method.rounds + 1):
        easy = method.select.size(drawn, number)
        if number > 1 or not has_votes:
            share = top_share(method.dropout_layers, backbone)
            total += drawn * (1 + DROPOUT * share * method.passes) * relative_length(teacher)
        total += sum(
            training(tune, counts.labelled if tune.train_on else easy, counts.classes)
            * (1 - frozen)
            for tune in method.student
        )
        total += drawn * frozen  # frozen layers are computed once for each text
        teacher = method.student[-1]
        total += counts.scored * relative_length(teacher)
    return total


def probe_cost(method: Method, counts: Counts, drawn: int) -> float:
    """The cost of the rounds of a method with probe rounds, in rows read.

    Each encoder reads the draw once, the guard its slice; every round is scored.
    """
    drawn = min(drawn, MAX_VECTORS)
    guarded = min(GUARDED_SLICE_ROWS, drawn) if method.guard == "folds" else 0
    students = sum(training(tune, drawn, counts.classes) for tune in method.student)
    rounds_scored = counts.scored * method.total_rounds
    return guarded + drawn * (1 + method.rounds) + students * method.rounds + rounds_scored


def training(tune: Tune, rows: int, classes: int) -> float:
    """The cost of one fit, in rows read."""
    if isinstance(tune.tuning, Probe):
        return float(rows)
    steps_an_epoch = math.ceil(rows / tune.batch_size)
    steps = tune.steps or (tune.epochs or 0) * steps_an_epoch
    steps = max(steps, (tune.min_epochs or 0) * steps_an_epoch)
    batch = float(tune.batch_size)
    if tune.contrast is not None:
        batch += classes * tune.contrast.negatives
    if tune.smooth is not None:
        batch *= 2
    regressions = (tune.head_start == "regression") + (tune.supcon is not None)
    row_cost = FULL if isinstance(tune.tuning, Full) else MODULE
    reweighing = 0.0 if tune.reweigh is None else (1 - tune.reweigh.after) * (row_cost + 2)
    return regressions * rows + steps * batch * (row_cost + reweighing) * relative_length(tune)


def relative_length(tune: Tune) -> float:
    """The length of a row with this tuning: P-tuning adds tokens, the others leave it at 1."""
    return 1 + placeholders(tune.tuning) / TOKENS


def tuned_share(tune: Tune, backbone: Backbone) -> float:
    """The share of the layers that a step computes; the states below tuned layers are stored."""
    layers = layers_of(tune.tuning)
    return 1.0 if layers is None else top_share(layers, backbone)


def top_share(layers: Layers, backbone: Backbone) -> float:
    """The share of the layers that these top layers are."""
    count = depth(backbone.encoder, backbone.family)
    return dropout_depth(layers, backbone.family, count) / count


def seconds_per_row(task: Task, backbone: Backbone, rows: Sequence[Labelled]) -> float:
    """The time of one row on this machine, measured on these."""
    model = FrozenLogistic(task, backbone, rows)
    examples: list[Example] = [row.example for row in rows]
    started = time.perf_counter()
    model.embed(examples)
    return (time.perf_counter() - started) / len(examples)
