"""A small search around the small method, with cells that are trained or made up at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from by_hand import MACHINE, METHOD
from selftrain.experiments.results import Result
from selftrain.experiments.sweep import Sweep, Tried
from selftrain.method.spec import Method

SPACE = {"select.score.alpha": (0.1, 0.9), "student.tuning.width": (2, 4)}
ALPHA = {"select.score.alpha": (0.1, 0.3, 0.5, 0.7, 0.9)}
BATCH = {"teacher.batch_size": (4, 8)}
LENGTH, WIDTH = (4, 8, 16, 32, 64, 128), (8, 16, 32, 64, 128, 256)


def sweep_of(data: Path, out: Path, folder: Path, **changes: Any) -> Sweep:
    """A sweep of two seeds on one task, with the backbone in ``folder``."""
    fields = {
        "method": replace(METHOD, rounds=1),
        "space": SPACE,
        "tasks": ("sst2",),
        "backbone": str(folder),
        "seeds": (12, 21),
        "shots": 4,
        "machine": MACHINE,
        **changes,
    }
    return Sweep(data=data, out=out, **fields)


def made_up_cells(sweep: Sweep, method: Method) -> list[Result]:
    """Cells without training: better, the nearer alpha is to 0.3 and the wider the adapter."""
    score = 0.8 - abs(method.select.score.alpha - 0.3) + method.student[0].tuning.width / 1000
    return [cell_of(method, seed, score + seed / 1000) for seed in sweep.seeds]


def cell_of(method: Method, seed: int, accuracy: float) -> Result:
    return Result(
        task="sst2",
        method=method.name,
        recipe="x",
        preset="laptop",
        backbone="minilm",
        shots=4,
        seed=seed,
        scored_on="design",
        rows=20,
        accuracy=accuracy,
        macro_f1=accuracy,
        f1={},
        calibration_error=0.0,
    )


def complete(trials: list[Tried]) -> list[tuple[dict, float]]:
    """Point and score of each complete trial."""
    return [(trial.params, trial.value) for trial in trials if trial.state == "complete"]
