"""The closing table of the demo: systems beside each other, over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from selftrain.data.rows import Labelled
from selftrain.experiments.references import FROZEN, MAJORITY, REFERENCES
from selftrain.experiments.stats import MISSING, mean_of
from selftrain.training.baselines import FrozenLogistic, Majority, TfidfLogistic
from selftrain.training.evaluate import Predictor, evaluate
from selftrain.training.job import Job
from selftrain.training.loop import Round, last_accepted
from selftrain.training.machine import Machine

Scores = Mapping[str, Mapping[int, float | None]]
"""System → seed → accuracy, a share from 0 to 1; None or left out where a run has no such round."""

FINAL = "final"
WORDS = "tf-idf + logistic regression"


# ── the closing table ────────────────────────────────────────────────────────────────────────


def closing_rows(scores: Scores, seeds: Sequence[int]) -> list[list[str]]:
    """The closing table as text, its head first.

    A run may end early, so a system can lack a seed: its place stays empty, and the mean says over
    how many seeds it is taken.
    """
    several = ["mean ± sd"] if len(seeds) > 1 else []
    rows = [["system", *(f"seed {seed}" for seed in seeds), *several]]
    for system, by_seed in scores.items():
        values = [by_seed.get(seed) for seed in seeds]
        shown = [MISSING if value is None else f"{100 * value:.1f}" for value in values]
        summary = [mean_of(values)] if several else []
        rows.append([system + not_learnt(system, scores, seeds), *shown, *summary])
    return rows


def not_learnt(system: str, scores: Scores, seeds: Sequence[int]) -> str:
    """A mark for a system that is not above the majority class: such a row supports no claim."""
    pairs = [
        (score, floor)
        for score, floor in (
            (scores[system].get(seed), scores.get(MAJORITY, {}).get(seed)) for seed in seeds
        )
        if score is not None and floor is not None
    ]
    if system == MAJORITY or not pairs or fmean(score - floor for score, floor in pairs) > 0:
        return ""
    return " (not learnt)"


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
    """The scores of majority, two regressions, teacher, each student, and the final model.

    A round whose training broke off has no model and no cell. Probe rounds are scored only where
    one is the final model: their heads differ little.
    """

    def cell(system: str, model: Predictor) -> Cell:
        return Cell(system, job.seed, evaluate(model, test, machine)["accuracy"])

    yield cell(MAJORITY, Majority(job.task, test))
    yield cell(WORDS, TfidfLogistic(job.task, job.split.labelled))
    yield cell(REFERENCES[FROZEN], FrozenLogistic(job.task, job.backbone, job.split.labelled))
    final = last_accepted(rounds)
    scored: dict[int, Cell] = {}
    for round_ in rounds:
        if round_.failed or (round_.encoder_of is not None and round_ is not final):
            continue
        name = f"round {round_.number}" if round_.number else "teacher"
        scored[round_.number] = cell(name, round_.model)
        if round_.encoder_of is None:
            yield scored[round_.number]
    yield Cell(FINAL, job.seed, scored[final.number].accuracy)


def by_system(cells: Iterable[Cell]) -> dict[str, dict[int, float]]:
    """Accuracy by system and seed, the final model last, however many rounds each seed has."""
    scores: dict[str, dict[int, float]] = {}
    for cell in cells:
        scores.setdefault(cell.system, {})[cell.seed] = cell.accuracy
    return dict(sorted(scores.items(), key=lambda item: item[0] == FINAL))  # others as they came
