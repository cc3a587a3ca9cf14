"""The closing table of the demo: systems beside each other, over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from selftrain.experiments.stats import spread

if TYPE_CHECKING:
    from selftrain.training.loop import Round
from collections.abc import Iterator
from dataclasses import dataclass

from selftrain.data.rows import Labelled
from selftrain.training.baselines import FrozenLogistic, Majority
from selftrain.training.evaluate import Predictor, evaluate
from selftrain.training.job import Job
from selftrain.training.loop import Round
from selftrain.training.machine import Machine

Scores = Mapping[str, Mapping[int, float | None]]
"""System → seed → accuracy, a share from 0 to 1; None or left out where a run has no such round."""

MAJORITY = "majority"
MISSING = "–"


# ── the closing table ────────────────────────────────────────────────────────────────────────


def closing_rows(scores: Scores, seeds: Sequence[int]) -> list[list[str]]:
    """The closing table as text, its head first.

    A run may end early, so a system can lack a seed: its place stays empty, and the mean says over
    how many seeds it was taken.
    """
    several = ["mean ± sd"] if len(seeds) > 1 else []
    rows = [["system", *(f"seed {seed}" for seed in seeds), *several]]
    for system, by_seed in scores.items():
        values = [by_seed.get(seed) for seed in seeds]
        shown = [MISSING if value is None else f"{100 * value:.1f}" for value in values]
        summary = [mean_of(values)] if several else []
        rows.append([system + learnt(system, scores, seeds), *shown, *summary])
    return rows


def mean_of(values: Sequence[float | None]) -> str:
    """Mean ± sd in percent, of how many seeds where some are missing.

    >>> mean_of([0.80, 0.82]), mean_of([0.80, None, 0.82]), mean_of([None, None])
    ('81.0 ± 1.4', '81.0 ± 1.4 (2 of 3)', '–')
    """
    there = [100 * value for value in values if value is not None]
    if not there:
        return MISSING
    some = f" ({len(there)} of {len(values)})" if len(there) < len(values) else ""
    return f"{spread(there)}{some}"


def learnt(system: str, scores: Scores, seeds: Sequence[int]) -> str:
    """A mark for what is not above the majority class: such a row supports no claim."""
    pairs = [
        (mine, base)
        for mine, base in ((scores[system].get(s), scores.get(MAJORITY, {}).get(s)) for s in seeds)
        if mine is not None and base is not None
    ]
    if system == MAJORITY or not pairs or fmean(a - b for a, b in pairs) > 0:
        return ""
    return " (not learnt)"


FROZEN = "frozen encoder + logistic regression"
FINAL = "final"


# ── scores ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Cell:
    """The score of one system with one seed."""

    system: str
    seed: int
    accuracy: float


def cells(
    rounds: Sequence[Round], job: Job, test: Sequence[Labelled], machine: Machine
) -> Iterator[Cell]:
    """The scores of majority, frozen regression, teacher, each round, and the final model.

    The majority class is that of the scored rows. A round whose training broke off has no model
    of its own, and no cell.
    """

    def cell(system: str, model: Predictor) -> Cell:
        return Cell(system, job.seed, evaluate(model, test, machine)["accuracy"])

    yield cell(MAJORITY, Majority(job.task, test))
    yield cell(FROZEN, FrozenLogistic(job.task, job.backbone, job.split.labelled))
    final = None
    for round_ in rounds:
        if round_.failed:
            continue
        scored = cell(f"round {round_.number}" if round_.number else "teacher", round_.model)
        yield scored
        final = scored if round_.accepted else final
    if final is not None:
        yield Cell(FINAL, job.seed, final.accuracy)


def by_system(found: Iterable[Cell]) -> dict[str, dict[int, float]]:
    """Accuracy by system and seed, the kept round last, however many rounds each seed has."""
    scores: dict[str, dict[int, float]] = {}
    for cell in found:
        scores.setdefault(cell.system, {})[cell.seed] = cell.accuracy
    return dict(sorted(scores.items(), key=lambda item: item[0] == FINAL))  # else as they came
