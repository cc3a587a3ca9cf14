"""Confidence beside accuracy: what a reliability diagram draws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum

from selftrain.errors import DataError
from selftrain.experiments.figures.datafile import Row
from selftrain.experiments.figures.wanted import Wanted, setting
from selftrain.experiments.results import Result
from selftrain.experiments.stats import Spread, spread
from selftrain.experiments.tables.board import in_order
from selftrain.training.metrics import Bin

BINS = 10  # of confidence, all equally wide: those of ``metrics.reliability``


@dataclass(frozen=True, slots=True)
class Reliability:
    """The confidence of a method on a task beside its accuracy, over the answers of all seeds."""

    task: str
    method: str
    bins: tuple[Bin, ...]
    error: Spread
    """The expected calibration error over seeds."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A panel for each method on a task, or for each task of a method."""

    panels: tuple[Reliability, ...]
    setting: str

    def rows(self) -> list[Row]:
        """One for each bin."""
        return [
            {
                "task": panel.task,
                "method": panel.method,
                "from": place(bin_) / BINS,
                "to": (place(bin_) + 1) / BINS,
                "answers": bin_.rows,
                "confidence": bin_.confidence,
                "accuracy": bin_.accuracy,
                "seeds": panel.error.n,
                "calibration_error": panel.error.mean,
                "calibration_error_sd": panel.error.sd if panel.error.n > 1 else None,
            }
            for panel in self.panels
            for bin_ in panel.bins
        ]


def calibration(results: Iterable[Result], wanted: Wanted = Wanted()) -> Calibration:
    """Confidence beside accuracy, of several methods on a task or of a method on several tasks."""
    cells = wanted.cells(results, "bins of confidence", lambda cell: cell.bins)
    tasks, methods = in_order(cell.task for cell in cells), wanted.order(cells)
    if len(tasks) > 1 and len(methods) > 1:
        raise DataError(
            f"{len(methods)} methods on {len(tasks)} tasks are too much for one figure",
            f"choose one task, --task {tasks[0]}, or one method, --method {methods[0]}",
        )
    panels = []
    for task in tasks:
        for method in methods:
            runs = [cell for cell in cells if (cell.task, cell.method) == (task, method)]
            error = spread([cell.calibration_error for cell in runs])
            bins = pooled(bin_ for cell in runs for bin_ in cell.bins)
            panels.append(Reliability(task, method, bins, error))
    return Calibration(tuple(panels), setting(cells))


def pooled(bins: Iterable[Bin]) -> tuple[Bin, ...]:
    """The bins of several runs put together: each answer counts once.

    >>> pooled([Bin(1, 0.90, 1.0), Bin(3, 0.98, 0.5)])
    (Bin(rows=4, confidence=0.96, accuracy=0.625),)
    """
    groups: dict[int, list[Bin]] = defaultdict(list)
    for bin_ in bins:
        groups[place(bin_)].append(bin_)
    return tuple(_together(groups[number]) for number in sorted(groups))


def place(bin_: Bin) -> int:
    """Which of the equal bins these answers are in, from 0."""
    # The mean of answers that all lie on an edge may come out one bit below it.
    return min(int(bin_.confidence * BINS + 1e-9), BINS - 1)


def _together(bins: Sequence[Bin]) -> Bin:
    rows = sum(each.rows for each in bins)
    confidence = fsum(each.rows * each.confidence for each in bins) / rows
    accuracy = fsum(each.rows * each.accuracy for each in bins) / rows
    return Bin(rows, confidence, accuracy)
