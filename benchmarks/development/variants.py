"""The development tasks as the experiments see them: base tasks, and skewed cuts of some.

A cut drops rows of some classes from the pool and from the design rows, by gold label, when the
benchmark is built: the one place beside audits where gold labels of a pool are read. The labelled
rows stay 16 a class.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BASE = ("sst2", "agnews", "subj", "cr", "sst5", "dbpedia", "imdb", "yelp5")
SKEWED: dict[str, tuple[str, tuple[float, ...]]] = {
    "subj-88-12": ("subj", (0.88, 0.12)),
    "subj-12-88": ("subj", (0.12, 0.88)),
    "agnews-60-25-10-5": ("agnews", (0.60, 0.25, 0.10, 0.05)),
    "agnews-5-10-25-60": ("agnews", (0.05, 0.10, 0.25, 0.60)),
    "agnews-88-4-4-4": ("agnews", (0.88, 0.04, 0.04, 0.04)),
    "sst2-80-20": ("sst2", (0.80, 0.20)),
    "sst2-20-80": ("sst2", (0.20, 0.80)),
    "dbpedia-geometric": ("dbpedia", tuple(0.8**c for c in range(14))),
}
"""Base task, and the shares of its classes in alphabetical order."""
ALL = (*BASE, *SKEWED)


@dataclass(frozen=True, slots=True)
class Rows:
    """What is remembered of some rows."""

    features: np.ndarray  # [N, D], of the teacher
    logits: np.ndarray  # [N, C], of the teacher
    frozen: np.ndarray  # [N, D], of the pretrained encoder


@dataclass(frozen=True, slots=True)
class Run:
    """A task, a seed, its remembered rows; no gold label of the pool."""

    variant: str
    seed: int
    gold: Rows
    gold_y: np.ndarray
    pool: Rows
    design: Rows
    design_y: np.ndarray
    pool_at: np.ndarray
    """Which of the base task's pool rows these are."""

    @property
    def classes(self) -> int:
        return self.gold.logits.shape[1]


def base_of(variant: str) -> str:
    """The task that a cut is cut from; a base task is its own."""
    return SKEWED[variant][0] if variant in SKEWED else variant


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file, or of the same file packed by gzip (``.gz`` added to its name)."""
    if not path.exists():
        path = path.with_name(f"{path.name}.gz")
    packed = path.suffix == ".gz"
    text = gzip.decompress(path.read_bytes()).decode() if packed else path.read_text()
    return [json.loads(line) for line in text.splitlines()]


def file_of(folder: Path, variant: str, seed: int, teacher: str = "2e-05x60") -> Path:
    """Where a run's rows are: a student has a file for each cut, a teacher one for all cuts."""
    own = folder / f"{variant}-{seed}-{teacher}.npz"
    if own.exists():
        return own
    base = base_of(variant)
    return folder / f"{base}-{seed}-{teacher}.npz"


def load(folder: Path, variant: str, seed: int, teacher: str = "2e-05x60") -> Run:
    path = file_of(folder, variant, seed, teacher)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if not name.endswith("_uid")}
    row_numbers = {
        part: np.arange(len(arrays[f"{part}_logits"])) for part in ("gold", "pool", "design")
    }
    if variant in SKEWED and path.name.startswith(f"{SKEWED[variant][0]}-{seed}-"):
        shares = SKEWED[variant][1]
        with np.load(path.with_suffix(".audit.npz")) as audit:
            row_numbers["pool"] = askew(audit["pool_y"], shares)
        row_numbers["design"] = askew(arrays["design_y"], shares)

    def rows(part: str) -> Rows:
        at = row_numbers[part]
        return Rows(*(arrays[f"{part}_{name}"][at] for name in ("features", "logits", "frozen")))

    y = arrays["design_y"][row_numbers["design"]]
    return Run(
        variant,
        seed,
        rows("gold"),
        arrays["gold_y"],
        rows("pool"),
        rows("design"),
        y,
        row_numbers["pool"],
    )


def pool_gold(folder: Path, run: Run, teacher: str = "2e-05x60") -> np.ndarray:
    """Gold labels of the pool: for audits alone."""
    path = file_of(folder, run.variant, run.seed, teacher)
    with np.load(path.with_suffix(".audit.npz")) as audit:
        return np.asarray(audit["pool_y"][run.pool_at])


def askew(y: np.ndarray, shares: tuple[float, ...]) -> np.ndarray:
    """As many rows as there are with these shares of the classes, in their order."""
    counts = np.bincount(y, minlength=len(shares))
    wanted = np.array(shares) / sum(shares)
    size = (counts / wanted).min()
    rows_of_class = [np.flatnonzero(y == c)[: int(size * wanted[c])] for c in range(len(shares))]
    return np.sort(np.concatenate(rows_of_class))
