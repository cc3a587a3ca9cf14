"""The constants of expected accuracy, each judged on tasks that had no part in its choice.

    python benchmarks/development/expected_accuracy.py on_test_rows.jsonl

A line of ``on_test_rows.py`` has the folds' belief in the answers of each round, their agreement
with them, the share of gold rows they answer right, and the accuracy on test rows. Of each run the
teacher and the final round count. Weights and margin are fitted on all other groups of tasks.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import variants

from selftrain.training.expected import AGREEMENT, BELIEF, MARGIN, half_width

SHRINK = 0.05
"""Of the squared weights, in the fit of a few dozen runs."""
HOLDS = 0.9


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of one model, and how right it is."""

    variant: str
    task: str
    seed: int
    final: bool
    belief: float
    agreement: float
    half: float
    """Half of the interval that the labels alone leave."""
    accuracy: float
    bare: float
    """The calibration error of its own probabilities."""
    calibrated: float


@dataclass(frozen=True, slots=True)
class Constants:
    """Two weights and a margin."""

    belief: float
    agreement: float
    margin: float

    def estimates(self, runs: Sequence[Run]) -> np.ndarray:
        weighed = [self.belief * run.belief + self.agreement * run.agreement for run in runs]
        return np.minimum(1, np.array(weighed))

    def margins(self, runs: Sequence[Run]) -> np.ndarray:
        return np.maximum(self.margin, [run.half for run in runs])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lines", type=Path)
    options = parser.parse_args()
    runs = all_runs(options.lines)
    tasks = sorted({run.task for run in runs})
    print(f"{len(runs)} models, {len(tasks)} groups of tasks")
    for task in tasks:
        found, own = without(task, runs), [run for run in runs if run.task == task]
        print(
            f"without {task}: belief {found.belief:.2f}, agreement {found.agreement:.2f}, "
            f"margin {found.margin:.3f}; {told(*judged(found, own))}"
        )
    print("left out:", told(*left_out(runs)))
    print("all:", fitted(runs))
    print("the product's:", told(*judged(Constants(BELIEF, AGREEMENT, MARGIN), runs)))
    not_worse, all_such = teacher_looked_better(options.lines)
    print(f"the teacher had the higher estimate in {all_such} runs; the last round was as good")
    print(f"or better in {not_worse} of {all_such}")
    print_tasks([run for run in runs if run.final], "final model")
    print_tasks([run for run in runs if not run.final], "teacher")


def all_runs(lines: Path) -> list[Run]:
    """The models of a file of lines."""
    return [run for line in variants.lines_of(lines) for run in runs_of(line)]


def without(task: str, runs: Sequence[Run]) -> Constants:
    """The constants of all other groups of tasks."""
    return fitted([run for run in runs if run.task != task])


def left_out(runs: Sequence[Run]) -> tuple[np.ndarray, np.ndarray]:
    """Of each model, judged by the constants of other tasks: the error, and whether it held."""
    parts = [judged(without(run.task, runs), [run]) for run in runs]
    return np.concatenate([error for error, _ in parts]), np.concatenate([ok for _, ok in parts])


def intervals(lines: Path) -> tuple[int, int]:
    """``TRAINED_INTERVALS`` of the product."""
    _, held = left_out(all_runs(lines))
    return int(held.sum()), len(held)


def teacher_looked_better(lines: Path) -> tuple[int, int]:
    """``TEACHER_LOOKED_BETTER`` of the product."""
    pairs = [runs_of(line) for line in variants.lines_of(lines)]
    constants = Constants(BELIEF, AGREEMENT, MARGIN)
    last_not_worse = [
        final.accuracy >= teacher.accuracy
        for teacher, final in (pair for pair in pairs if len(pair) == 2)
        if np.diff(constants.estimates([teacher, final])).item() < 0
    ]
    return sum(last_not_worse), len(last_not_worse)


def print_tasks(runs: Sequence[Run], what: str) -> None:
    """A line a task, cuts with their base task: errors of the product's estimate, calibration."""
    constants = Constants(BELIEF, AGREEMENT, MARGIN)
    print(f"| {what} | runs | expected | true | error | held | bare | calibrated |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    bases = sorted({variants.base_of(run.variant) for run in runs})
    for base in (*bases, "all"):
        chosen = [run for run in runs if base in ("all", variants.base_of(run.variant))]
        error, held = judged(constants, chosen)
        print(
            f"| {base} | {len(chosen)} | {100 * constants.estimates(chosen).mean():.1f} "
            f"| {100 * np.mean([run.accuracy for run in chosen]):.1f} "
            f"| {100 * abs(error).mean():.1f} | {held.sum()} "
            f"| {np.mean([run.bare for run in chosen]):.3f} "
            f"| {np.mean([run.calibrated for run in chosen]):.3f} |"
        )


def runs_of(line: dict[str, Any]) -> list[Run]:
    """The teacher and the final model of a run of the default; none without an estimate."""
    if "expected" not in line or line["scored on"] != "test" or line["method"] != "supcon":
        return []
    numbers = {0: False, line["final"]: True}
    return [
        Run(
            variant=line["variant"],
            task=group_of(line["variant"]),
            seed=line["seed"],
            final=final,
            belief=line["expected"][number]["belief"],
            agreement=line["expected"][number]["agreement"],
            half=half_width(*line["hits"]),
            accuracy=line["accuracy"][number],
            bare=line["calibration error"][number][0],
            calibrated=line["calibration error"][number][1],
        )
        for number, final in numbers.items()
    ]


def group_of(variant: str) -> str:
    """Tasks that share texts are one group: the text of sst5 is that of sst2."""
    base = variants.base_of(variant)
    return {"sst5": "sst2"}.get(base, base)


def fitted(runs: Sequence[Run]) -> Constants:
    """Weights by least squares, and the margin within which nine of ten of these runs lie."""
    x = np.array([(run.belief, run.agreement) for run in runs])
    y = np.array([run.accuracy for run in runs])
    weights = np.linalg.solve(x.T @ x + SHRINK * np.eye(2), x.T @ y)
    margin = np.quantile(abs(x @ weights - y), HOLDS)
    return Constants(float(weights[0]), float(weights[1]), float(margin))


def judged(constants: Constants, runs: Sequence[Run]) -> tuple[np.ndarray, np.ndarray]:
    """The error of each estimate, and whether its interval holds."""
    error = constants.estimates(runs) - np.array([run.accuracy for run in runs])
    return error, abs(error) <= constants.margins(runs)


def told(error: np.ndarray, held: np.ndarray) -> str:
    points = 100 * error
    return (
        f"mean absolute error {abs(points).mean():.1f}, bias {points.mean():+.1f}, "
        f"largest {abs(points).max():.1f}; intervals held in {held.sum()} of {len(held)}"
    )


if __name__ == "__main__":
    main()
