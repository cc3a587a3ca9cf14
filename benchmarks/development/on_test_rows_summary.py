"""Tables of on_test_rows.jsonl: gain over the teacher by task, harm, what the guard refused.

python benchmarks/development/on_test_rows_summary.py on_test_rows.jsonl [--method probe]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import variants
from scipy.stats import beta, binomtest

Line = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lines", type=Path)
    parser.add_argument("--method", default="supcon")
    options = parser.parse_args()
    lines = [each for each in variants.lines_of(options.lines) if each["method"] == options.method]
    plain = [line for line in lines if usual(line)]
    print("| | seeds | teacher | final | gain | F1 | without the guard | worst seed |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    gains: dict[str, dict[str, float]] = {}
    for variant in variants.ALL:
        own = [line for line in plain if line["variant"] == variant]
        if own:
            gains[variant] = row(variant, own)
    for name, members in (("base", variants.BASE), ("skewed", tuple(variants.SKEWED))):
        own_gains = [gains[variant] for variant in members if variant in gains]
        if own_gains:
            total(name, own_gains)
    harmful(plain)
    for line in lines:
        if not usual(line):
            condition = {k: line.get(k) for k in ("labels", "pool", "draw", "foreign", "flipped")}
            scores = line["accuracy"][0], line["accuracy"][line["final"]]
            print(line["variant"], line["seed"], condition, *(f"{100 * s:.1f}" for s in scores))


def usual(line: Line) -> bool:
    condition = (line["labels"], line["pool"], line["foreign"], line["flipped"])
    return condition == (16, 3000, False, 0) and line.get("draw", 2048) == 2048


def row(variant: str, lines: list[Line]) -> dict[str, float]:
    """One line of the table; returns the mean gains in points."""

    def points(what: str, place: int | None) -> list[float]:
        return [100 * each[what][each["final"] if place is None else place] for each in lines]

    teacher, final, last = (points("accuracy", place) for place in (0, None, -1))
    gain = [b - a for a, b in zip(teacher, final, strict=True)]
    f1 = [b - a for a, b in zip(points("macro f1", 0), points("macro f1", None), strict=True)]
    spread = f" ± {stdev(final):.1f}" if len(final) > 1 else ""
    print(
        f"| {variant} | {len(lines)} | {fmean(teacher):.1f} | {fmean(final):.1f}{spread} "
        f"| {fmean(gain):+.1f} | {fmean(f1):+.1f} | {fmean(last) - fmean(teacher):+.1f} "
        f"| {min(gain):+.1f} |"
    )
    return {"gain": fmean(gain), "f1": fmean(f1), "last": fmean(last) - fmean(teacher)}


def total(name: str, gains: list[dict[str, float]]) -> None:
    """Mean, median and worst over tasks."""
    gain = [each["gain"] for each in gains]
    print(
        f"{name}: {len(gains)} tasks, gain mean {fmean(gain):+.2f}, median {median(gain):+.2f}, "
        f"worst {min(gain):+.2f}; macro F1 {fmean(each['f1'] for each in gains):+.2f}; without the "
        f"guard {fmean(each['last'] for each in gains):+.2f}"
    )


def harmful(lines: list[Line]) -> None:
    """Runs more than a point below their teacher, significantly by paired answers."""
    harm = 0
    for line in lines:
        delta = line["accuracy"][line["final"]] - line["accuracy"][0]
        moved = line["won"] + line["lost"]
        p = binomtest(line["lost"], moved).pvalue if moved else 1.0
        harm += delta < -0.01 and p < 0.05
    bound = beta.ppf(0.95, harm + 1, len(lines) - harm)
    refused = sum(bool(line["refused"]) for line in lines)
    seconds = fmean(line["seconds teacher"] + line["seconds rounds"] for line in lines)
    print(
        f"harm in {harm} of {len(lines)} runs (95 % bound {bound:.1%}); {refused} runs with a "
        f"refused round; {seconds:.0f} s a run with its teacher"
    )


if __name__ == "__main__":
    main()
