"""The paper's tables from a file of cells: pure functions from results to sheets.

``choice`` decides which cells may stand together, ``board`` averages a group of them, ``compared``
tests whether a difference is more than chance; one file for each shape of table, and ``sheet``
writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from selftrain.experiments.results import Result
from selftrain.experiments.tables.by_alpha import by_alpha
from selftrain.experiments.tables.by_shots import more_labels
from selftrain.experiments.tables.by_task import ablation, main_result, teachers_and_students
from selftrain.experiments.tables.choice import Choice
from selftrain.experiments.tables.corpora import corpora
from selftrain.experiments.tables.nonbert import beside_nonbert
from selftrain.experiments.tables.search import Sweep, read_sweep, search
from selftrain.experiments.tables.sheet import FORMATS, Sheet
from selftrain.experiments.tables.speed import speed

KINDS: dict[str, Callable[[Sequence[Result], Choice], list[Sheet]]] = {
    "main": main_result,
    "pel": teachers_and_students,
    "shots": more_labels,
    "alpha": by_alpha,
    "ablation": ablation,
    "nonbert": beside_nonbert,
    "speed": speed,
}
"""The tables made of cells, by name; ``corpora`` and ``search`` are made of other things."""

__all__ = [
    "FORMATS",
    "KINDS",
    "Choice",
    "Sheet",
    "Sweep",
    "corpora",
    "read_sweep",
    "search",
]
