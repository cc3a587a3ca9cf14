"""When to say that the frozen encoder is as good as the default: rules, and what each costs.

    python benchmarks/development/as_good.py on_test_rows.jsonl conditions.jsonl

A rule names the frozen encoder, self-trained, by expected accuracies alone. Its cost is the
default's accuracy (test rows) minus that of the frozen encoder (design rows), in points.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import variants
from conditions import CONDITIONS
from on_test_rows_summary import usual

WITHIN = (0.06, 0.04, 0.03, 0.02, 0.01, 0.0)


@dataclass(frozen=True, slots=True)
class Pair:
    """What is expected of both models, and what the frozen one costs."""

    frozen: float
    default: float
    low: float
    """The lower end of the default's interval."""
    cost: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("conditions", type=Path)
    options = parser.parse_args()
    pairs = list(pairs_of(*map(variants.lines_of, (options.runs, options.conditions))))
    print(f"| named if the frozen encoder is … ({len(pairs)} runs) | named | cost | others |")
    print("|---|---:|---:|---:|")
    show("not below the interval", [pair.frozen >= pair.low for pair in pairs], pairs)
    for margin in WITHIN:
        close = [pair.frozen >= pair.default - margin for pair in pairs]
        show(f"at most {100 * margin:.0f} points below", close, pairs)


def pairs_of(runs: list[dict[str, Any]], frozen: list[dict[str, Any]]) -> Iterator[Pair]:
    """The runs of the default whose frozen counterpart has an estimate too."""
    known = {
        (line["variant"], line["seed"]): line
        for line in frozen
        if line["condition"] == CONDITIONS[0].name and line["model"] == "final"
    }
    for line in runs:
        other = known.get((line["variant"], line["seed"]))
        if line["method"] == "supcon" and usual(line) and "expected" in line and other:
            expected, rows = line["expected"][line["final"]], other["hits"][1]
            mean = (other["belief"] + other["mixture"]) / 2
            cost = 100 * (line["accuracy"][line["final"]] - other["accuracy"])
            at_most = (rows + 0.5) / (rows + 1)
            yield Pair(min(at_most, mean), expected["accuracy"], expected["low"], cost)


def show(rule: str, named: list[bool], pairs: list[Pair]) -> None:
    costs: dict[bool, list[float]] = {True: [], False: []}
    for is_named, pair in zip(named, pairs, strict=True):
        costs[is_named].append(pair.cost)
    means = {which: f"{fmean(each):+.1f}" if each else "" for which, each in costs.items()}
    print(f"| {rule} | {len(costs[True])} | {means[True]} | {means[False]} |")


if __name__ == "__main__":
    main()
