"""How long the cells of a comparison take on this machine, before they are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from selftrain.data.rows import Labelled
from selftrain.data.task import Task
from selftrain.experiments.grid import Group
from selftrain.experiments.tasksets import Taskset
from selftrain.method.spec import Method
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.build import build
from selftrain.model.pel import Probe
from selftrain.training.calibration import seconds_reading
from selftrain.training.cost import Counts, rows_read
from selftrain.training.machine import Machine

SAMPLE = 128  # rows on which the speed of a backbone is measured


class CellTimes:
    """How long cells take on this machine, from the time of one row.

    It reads each task once, loads each backbone once, and counts once what methods share, also
    those of several grids.
    """

    def __init__(
        self,
        read: Callable[[str], tuple[Taskset, int]],
        load: Callable[[str], Backbone],
        machine: Machine = Machine(),
    ) -> None:
        """``read`` gives the rows of a task and the number of scored rows."""
        self.read, self.load, self.machine = cache(read), cache(load), machine
        self.seconds_per_row = cache(self._seconds_per_row)
        self.computed: set[object] = set()  # the cells so far, their teachers and first votes

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
        rows = taskset.rows[:SAMPLE]
        return seconds_per_row(taskset.task, self.load(backbone), rows, self.machine)


def seconds_per_row(
    task: Task, backbone: Backbone, rows: Sequence[Labelled], machine: Machine
) -> float:
    """The time of one row on this machine, measured on these."""
    model = build(task, backbone, Architecture(Probe()), seed=0).to(machine.torch_device())
    examples = [row.example for row in rows]
    model.read(examples[:8])  # warms up
    return seconds_reading(model, examples) / len(rows)
