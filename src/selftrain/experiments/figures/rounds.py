"""Score by round for each method and task. The paper's Figure 3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from selftrain.experiments.figures.datafile import Row
from selftrain.experiments.figures.wanted import Wanted, setting
from selftrain.experiments.results import Result
from selftrain.experiments.stats import spread
from selftrain.experiments.tables.board import in_order


@dataclass(frozen=True, slots=True)
class Point:
    """The score of one round over the seeds that have a model of it, a share from 0 to 1."""

    number: int
    """0 is the teacher."""
    mean: float
    sd: float | None
    """None where a single seed has this round."""
    seeds: int


@dataclass(frozen=True, slots=True)
class Line:
    """A method on a task, round by round; a round without any model has no point."""

    task: str
    method: str
    points: tuple[Point, ...]

    @property
    def seeds(self) -> int:
        """The largest number at a point; a point with fewer lacks runs that had ended."""
        return max(point.seeds for point in self.points)


@dataclass(frozen=True, slots=True)
class Rounds:
    """Lines, task by task."""

    lines: tuple[Line, ...]
    setting: str

    def rows(self) -> list[Row]:
        """One for each point."""
        return [
            {
                "task": line.task,
                "method": line.method,
                "round": point.number,
                "seeds": point.seeds,
                "mean": point.mean,
                "sd": point.sd,
            }
            for line in self.lines
            for point in line.points
        ]


def by_round(results: Iterable[Result], wanted: Wanted = Wanted()) -> Rounds:
    """Mean and sd over seeds of the teacher and each round, for every task and method."""
    fewest = 1 if wanted.methods else 2  # a teacher alone is a point, drawn only for a named method
    cells = wanted.cells(results, "rounds", lambda cell: len(cell.by_round) >= fewest)
    lines = [
        Line(task, method, points(runs))
        for task in in_order(cell.task for cell in cells)
        for method in wanted.order(cells)
        if (runs := [c.by_round for c in cells if (c.task, c.method) == (task, method)])
    ]
    refused = any(cell.by_round[number] is not None for cell in cells for number in cell.rejected)
    note = "; rounds that were refused are drawn too" if refused else ""
    return Rounds(tuple(line for line in lines if line.points), setting(cells) + note)


def points(runs: Sequence[Sequence[float | None]]) -> tuple[Point, ...]:
    """Each round over the runs that have it; one that ended early adds nothing to later rounds.

    >>> points([(0.5, 0.75), (0.7,)])[1]
    Point(number=1, mean=0.75, sd=None, seeds=1)
    """
    every = []
    for number in range(max(map(len, runs))):
        reached = (scores[number] for scores in runs if number < len(scores))
        scores_of = [score for score in reached if score is not None]
        if scores_of:
            over = spread(scores_of)
            every.append(Point(number, over.mean, over.sd if over.n > 1 else None, over.n))
    return tuple(every)
