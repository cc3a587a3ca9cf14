"""The guard's three limits: chosen without a left-out group of tasks, and judged on it.

    python benchmarks/development/guard_limits.py guard.jsonl --other guard_other_teachers.jsonl

A round passes if the folds' tilted belief gains at least ``per_drift * drift - less`` over round 0,
and its drift is at most ``most``. Harm and gain kept are those of rules.py. The curve has, for each
rate of harm that is allowed when limits are chosen, what then happens on the left-out groups.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import variants
from rules import group, judged, padded, value

from selftrain.training.guard import BELIEF_PER_DRIFT, LESS_BELIEF, MOST_DRIFT

GRID = list(
    itertools.product(
        (0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04),  # less
        (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0),  # per drift
        (0.08, 0.1, 0.12, 0.14, 0.17, 0.2),  # most drift
    )
)
ALLOWED = (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05)
PRODUCT = (LESS_BELIEF, BELIEF_PER_DRIFT, MOST_DRIFT)
DEFAULT_PROBE = "rounds=5,prior=half,per_row=1000"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("signals", type=Path)
    parser.add_argument("--other", type=Path, help="runs that had no part in any choice")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    runs = Runs(variants.lines_of(options.signals))
    results = [
        {"limits": "none", **runs.judged(np.full(len(runs.groups), 4))},
        {"limits": PRODUCT, **runs.judged(runs.keeps(PRODUCT))},
        {"limits": PRODUCT, "runs of": "the default", **runs.default(runs.keeps(PRODUCT))},
    ]
    for allowed in ALLOWED:
        kept_round = runs.left_out(allowed)
        results.append({"harm allowed": allowed, "left out": True, **runs.judged(kept_round)})
    if options.other:
        others = Runs(variants.lines_of(options.other))
        results.append(
            {"limits": PRODUCT, "runs of": "others", **others.judged(others.keeps(PRODUCT))}
        )
    for result in results:
        print(json.dumps(result))
    if options.out:
        options.out.write_text("".join(json.dumps(result) + "\n" for result in results))


class Runs:
    """The signals of many runs, four rounds of each, and what became of them."""

    def __init__(self, lines: list[dict[str, Any]]) -> None:
        def table(name: str) -> np.ndarray:
            return np.array([padded([r[name] for r in line["rounds"]]) for line in lines])

        self.belief, self.drift = table("tilted plain by em plain"), table("drift teacher")
        truth = [[r["truth"] for r in line["rounds"]] for line in lines]
        self.delta = np.array([padded([t["delta"] for t in each]) for each in truth])
        p = np.array([padded([t["p"] for t in each]) for each in truth])
        self.harm = (self.delta < -0.01) & (p < 0.05)
        self.groups = np.array([group(line["variant"]) for line in lines])
        self.is_default = np.array([line["probe"] == DEFAULT_PROBE for line in lines])

    def keeps(self, limits: tuple[float, float, float]) -> np.ndarray:
        """The last round that passes, 1 to 4, or 0."""
        less, per_drift, most = limits
        passes = (self.belief >= per_drift * self.drift - less) & (self.drift <= most)
        return np.where(passes, np.arange(1, 5), 0).max(1)

    def left_out(self, allowed: float) -> np.ndarray:
        """The rounds kept with limits that were chosen without a run's group."""
        tables = [self.keeps(limits) for limits in GRID]
        kept_round = np.zeros(len(self.groups), int)
        for name in set(self.groups):
            seen, own = self.groups != name, self.groups == name
            best = max(tables, key=lambda table: self.worth(table, seen, allowed))
            kept_round[own] = best[own]
        return kept_round

    def worth(self, table: np.ndarray, seen: np.ndarray, allowed: float) -> tuple[float, float]:
        rate = value(table, self.harm)[seen].mean()
        return -max(float(rate), allowed), float(value(table, self.delta)[seen].sum())

    def judged(self, kept_round: np.ndarray) -> dict[str, float]:
        return judged(kept_round, self.delta, self.harm)

    def default(self, kept_round: np.ndarray) -> dict[str, float]:
        own = self.is_default
        return judged(kept_round[own], self.delta[own], self.harm[own])


if __name__ == "__main__":
    main()
