"""A board: the cells of one backbone, and the text that a table shows for a group of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from selftrain.data import task as tasks_of_ours
from selftrain.errors import DataError
from selftrain.experiments import published
from selftrain.experiments.names import MAIN, ordered
from selftrain.experiments.references import FROZEN_APART, MAJORITY, REFERENCES
from selftrain.experiments.results import Result, Shots
from selftrain.experiments.stats import MISSING, mean_of
from selftrain.experiments.tables.choice import METRICS, Choice, Metric, listed
from selftrain.method.changes import can_use
from selftrain.method.recipes import recipe
from selftrain.runs.lines import count

NOT_LEARNT = " (not learnt)"

Group = tuple[str, str, Shots]
"""Method, task and shots: a table averages over seeds and nothing else."""


@dataclass(frozen=True, slots=True)
class Board:
    """Scores on one backbone by method, task and shots. Scores are shares from 0 to 1."""

    backbone: str
    choice: Choice
    cells: tuple[Result, ...]
    scores: Mapping[Group, Mapping[int, float]]
    """By seed; a group without a score in this metric has none."""

    @property
    def max_seeds(self) -> int:
        """The largest number of seeds that a group has; a group with fewer says so."""
        return max(map(len, self.scores.values()), default=0)

    @property
    def methods(self) -> list[str]:
        """Every method that has a cell, in the paper's order."""
        return ordered(cell.method for cell in self.cells)

    @property
    def tasks(self) -> list[str]:
        """Every task that has a cell, in the paper's order."""
        return in_order(cell.task for cell in self.cells)

    def cells_of(
        self, method: str, shots: Shots | None = None, task: str | None = None
    ) -> list[Result]:
        """The cells of a method, on all tasks and shots unless one is named."""
        return [
            cell
            for cell in self.cells
            if cell.method == method and shots in (None, cell.shots) and task in (None, cell.task)
        ]

    def restricted(self, methods: Iterable[str], tasks: Iterable[str]) -> Board:
        """The part of the board with these methods and tasks."""
        wanted = set(methods), set(tasks)
        return replace(
            self,
            cells=tuple(c for c in self.cells if c.method in wanted[0] and c.task in wanted[1]),
            scores={
                (method, task, shots): by_seed
                for (method, task, shots), by_seed in self.scores.items()
                if method in wanted[0] and task in wanted[1]
            },
        )

    def score(self, method: str, tasks: Sequence[str], shots: Shots) -> str:
        """The average over these tasks, marked where it is not above the majority class."""
        mean = self.average(method, tasks, shots)
        return mean if mean == MISSING else mean + self.mark(method, tasks, shots)

    def average(self, method: str, tasks: Sequence[str], shots: Shots) -> str:
        """Mean ± sd over seeds, in percent, of each seed's mean on these tasks.

        Missing where one of the tasks has no score. Where the tasks have different seeds it is the
        mean of their means, without a ±, and says over how many cells.
        """
        by_task = [self.scores.get((method, task, shots), {}) for task in tasks]
        if not tasks or not all(by_task):
            return MISSING
        seeds = by_task[0].keys()
        if all(scores.keys() == seeds for scores in by_task):
            means = [fmean(scores[seed] for scores in by_task) for seed in sorted(seeds)]
            return mean_of([*means, *[None] * (self.max_seeds - len(means))])
        count, expected = sum(map(len, by_task)), self.max_seeds * len(tasks)
        mean = fmean(fmean(scores.values()) for scores in by_task)
        note = f"{count} of {expected} cells" if count < expected else "seeds differ by task"
        return f"{100 * mean:.1f} ({note})"

    def not_learnt(self, method: str, tasks: Sequence[str], shots: Shots) -> list[str]:
        """The tasks on which a method is not above the majority class."""
        return [task for task in tasks if self.mark(method, [task], shots)]

    def mark(self, method: str, tasks: Sequence[str], shots: Shots) -> str:
        """A mark for a method that is not above the majority class: it supports no claim."""
        above = [gap for task in tasks for gap in self._above_majority(method, task, shots)]
        learnt = method == MAJORITY or not above or fmean(above) > 0
        return "" if learnt else NOT_LEARNT

    def _above_majority(self, method: str, task: str, shots: Shots) -> list[float]:
        """By how much each seed is above the majority class of the rows that are scored.

        They are the same for all seeds and shots, and so is the majority class.
        """
        floors = [
            score
            for (name, floor_task, _), by_seed in self.scores.items()
            if (name, floor_task) == (MAJORITY, task)
            for score in by_seed.values()
        ]
        scores = self.scores.get((method, task, shots), {})
        return [score - max(floors) for score in scores.values()] if floors else []


def boards(cells: Sequence[Result], choice: Choice) -> list[Board]:
    """A board for each backbone; all of them have the majority row."""
    majority = {
        (cell.task, cell.shots, cell.seed): cell for cell in cells if cell.method == MAJORITY
    }
    others = [cell for cell in cells if cell.method != MAJORITY]
    every = []
    for name in sorted({cell.backbone for cell in others or majority.values()}):
        shown = (*majority.values(), *(cell for cell in others if cell.backbone == name))
        every.append(Board(name, choice, shown, _scores(shown, choice.metric)))
    return every


def _scores(cells: Iterable[Result], metric: Metric) -> dict[Group, dict[int, float]]:
    scores: dict[Group, dict[int, float]] = defaultdict(dict)
    for cell in cells:
        score = score_of(cell, metric)
        if score is not None:
            scores[cell.method, cell.task, cell.shots][cell.seed] = score
    return dict(scores)


def score_of(cell: Result, metric: Metric) -> float | None:
    """A cell's score, a share; F1 is that of the class its task names, None where it names none."""
    if metric == "accuracy":
        return cell.accuracy
    if metric == "macro_f1":
        return cell.macro_f1
    named = f1_class(cell.task)
    if named is None or named == "macro":
        return cell.macro_f1 if named else None
    if named not in cell.f1:
        raise DataError(
            f"a cell of `{cell.method}` on {cell.task} has no F1 of `{named}`; "
            f"its classes are {listed(cell.f1)}",
            "--metric macro_f1",
        )
    return cell.f1[named]


def f1_class(task: str) -> str | None:
    """The class whose F1 a task asks for, or ``macro``; None where it names none.

    >>> f1_class("mrpc"), f1_class("cb"), f1_class("sst2"), f1_class("a task of one's own")
    ('equivalent', 'macro', None, None)
    """
    return tasks_of_ours.find(task).f1_of if task in tasks_of_ours.known() else None


def in_order(tasks: Iterable[str]) -> list[str]:
    """Tasks in the paper's order, others after them by name.

    >>> in_order(["zoo", "agnews", "sst2", "sst2"])
    ['sst2', 'agnews', 'zoo']
    """
    known = published.numbers().tasks
    return sorted(
        set(tasks), key=lambda task: (known.index(task) if task in known else len(known), task)
    )


def possible(board: Board) -> list[str]:
    """The methods of Table 1 that can run here: sentences apart need pairs, prompts an MLM head."""
    pairs = any(
        task in tasks_of_ours.known() and tasks_of_ours.find(task).pair for task in board.tasks
    )
    return [
        method
        for method in MAIN
        if (pairs or method != FROZEN_APART)
        and (method in REFERENCES or can_use(recipe(method), board.backbone))
    ]


def shots_of(cells: Iterable[Result]) -> list[int]:
    """The numbers of labels a class that cells have, fewest first."""
    return sorted({cell.shots for cell in cells if isinstance(cell.shots, int)})


# ── what stands beside the scores ────────────────────────────────────────────────────────────


def tunable(cells: Iterable[Result], *, teacher: bool = False) -> str:
    """Parameters that are trained: in the student, or in the teacher and the student.

    Heads grow with the classes of a task, so it may be a range.
    """
    # A student that broke off has no count: the teacher's would stand in its place.
    counts = [cell.tuned for cell in cells if len(cell.tuned) > (1 if cell.broke_off else 0)]
    if not counts:
        return MISSING
    last = _range([tuned[-1] for tuned in counts])
    with_student = [tuned[0] for tuned in counts if len(tuned) > 1]
    return f"{_range(with_student)} + {last}" if teacher and with_student else last


def _range(numbers: Sequence[int]) -> str:
    smallest, largest = count(min(numbers)), count(max(numbers))
    return smallest if smallest == largest else f"{smallest}–{largest}"


def seconds(cells: Iterable[Result], tasks: Iterable[str] = ()) -> str:
    """The mean time of a run: the mean over the tasks of the mean over their cells.

    Missing where a cell has no time, or one of ``tasks`` has no cell: some tasks take longer than
    others, so the mean of some of them is not that of all.
    """
    by_task: dict[str, list[float | None]] = defaultdict(list)
    for cell in cells:
        by_task[cell.task].append(cell.seconds)
    means = [
        fmean(known)
        for times in by_task.values()
        if len(known := [time for time in times if time is not None]) == len(times)
    ]
    complete = len(means) == len(by_task) and by_task.keys() >= set(tasks)
    return f"{fmean(means):.0f}" if means and complete else MISSING


def title(board: Board, what: str, shots: Shots | None = None) -> str:
    """The head line of a sheet: what it shows, on which rows, backbone and preset."""
    choice = board.choice
    return f"{what}: {METRICS[choice.metric]} on {choice.scored_on} rows, {setting(board, shots)}"


def setting(board: Board, shots: Shots | None = None) -> str:
    """Backbone, preset, shots and chosen seeds of a sheet."""
    presets = {cell.preset for cell in board.cells if cell.method not in REFERENCES}
    preset = f"preset {listed(presets)}" if presets else ""
    labels = f"{shots} labels a class" if shots else ""
    chosen = board.choice.seeds
    seeds = f"seed{'s' if len(chosen) > 1 else ''} {' '.join(map(str, chosen))}"
    parts = (board.backbone, preset, labels, seeds if chosen else "")
    return ", ".join(part for part in parts if part)
