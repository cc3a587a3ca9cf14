"""Made-up cells of a comparison, and a table as a dictionary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from selftrain.experiments.results import Result
from selftrain.experiments.tables import Sheet
from selftrain.training.metrics import Bin

UPET = "upet-head-adapter"


def cell(method: str, accuracy: float, seed: int = 12, task: str = "sst2", **more: Any) -> Result:
    known = {
        "recipe": f"hash of {method}",
        "preset": "laptop",
        "backbone": "minilm",
        "shots": 16,
        "scored_on": "test",
        "rows": 1000,
        "macro_f1": accuracy / 2,
        "f1": {"equivalent": accuracy / 4, "not_equivalent": 0.1},
        "calibration_error": 0.1,
        "tuned": (22_713_986, 600_000),
        "seconds": 40.0,
        "threads": 1,
    }
    if method == "majority":
        known |= {"tuned": (), "seconds": None}
    return Result(task=task, method=method, accuracy=accuracy, seed=seed, **(known | more))


def seeds(method: str, *accuracies: float, **more: Any) -> list[Result]:
    return [cell(method, each, seed, **more) for seed, each in enumerate(accuracies)]


CELL = cell(
    UPET,
    0.75,
    recipe="abc",
    rows=10,
    calibration_error=0.125,
    bins=(Bin(4, 0.65, 0.5), Bin(6, 0.9375, 1.0)),
    by_round=(0.5, 0.75),
)
"""One with rounds and bins that can be checked by hand."""
OTHER = replace(CELL, seed=21, by_round=(0.75, 0.25, 0.5), calibration_error=0.375)


def named(*methods: str, **changes: Any) -> list[Result]:
    """The first cell under other names."""
    return [replace(CELL, method=name, **changes) for name in methods]


def rows(sheet: Sheet) -> dict[str, dict[str, str]]:
    """Cells by row and column; a row goes by its first cell."""
    return {row[0]: dict(zip(sheet.head, row, strict=True)) for row in sheet.rows}
