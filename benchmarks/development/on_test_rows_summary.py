"""Tables of on_test_rows.jsonl: gain by task, harm, what the guard refused.

    python benchmarks/development/on_test_rows_summary.py on_test_rows.jsonl [--method probe]
    python benchmarks/development/on_test_rows_summary.py on_test_rows.jsonl --against frozen

"Before" is the teacher by cross entropy (60 steps at 2e-5) on the same rows: the first round of
``probe``, or ``head-ft``; the table has the runs of five seeds with one. Harm is counted over all
runs, those of other seeds too. ``--against`` compares the ends of two methods on the same rows.
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
    parser.add_argument("--against", help="another method, compared run by run")
    options = parser.parse_args()
    every = variants.lines_of(options.lines)
    lines = [each for each in every if each["method"] == options.method]
    plain = [line for line in lines if usual(line)]
    if options.against:
        compared(plain, [each for each in every if each["method"] == options.against])
        return
    before = teachers_before(every)
    print("| | seeds | before | teacher | final | over before | F1 | over teacher | worst seed |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    gains: dict[str, dict[str, float]] = {}
    paired = [
        line
        for line in plain
        if line["seed"] in SEEDS and (line["variant"], line["seed"]) in before
    ]
    for variant in variants.ALL:
        own = [line for line in paired if line["variant"] == variant]
        if own:
            gains[variant] = row(variant, own, before)
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


SEEDS = (12, 21, 42, 87, 100)
"""Of the table."""
DRAWS = {"probe": 2048, "supcon": 1024, "frozen": 1024}
"""Rows of the pool that a recipe reads."""
BEFORE = ("probe", "head-ft")
"""Methods whose first round is the teacher by cross entropy."""


def usual(line: Line) -> bool:
    condition = (line["labels"], line["pool"], line["foreign"], line["flipped"])
    if line.get("scored on", "test") != "test" or line.get("changes"):
        return False
    draw = DRAWS.get(line["method"], line.get("draw"))
    return condition == (16, 3000, False, 0) and line.get("draw", 2048) == draw


def compared(lines: list[Line], others: list[Line]) -> None:
    """The final models of two methods, by task and seed."""
    other = {(each["variant"], each["seed"]): each for each in others if usual(each)}
    print("| | seeds | other | method | difference | F1 | worst seed |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    differences: dict[str, float] = {}
    above = pairs = 0
    for variant in variants.ALL:
        both = [
            (other[variant, line["seed"]], line)
            for line in lines
            if line["variant"] == variant and (variant, line["seed"]) in other
        ]
        if not both:
            continue
        theirs, ours = (
            [100 * each["accuracy"][each["final"]] for each in side]
            for side in zip(*both, strict=True)
        )
        f1 = fmean(100 * (b["macro f1"][b["final"]] - a["macro f1"][a["final"]]) for a, b in both)
        gains = [b - a for a, b in zip(theirs, ours, strict=True)]
        differences[variant] = fmean(gains)
        above, pairs = above + sum(gain > 0 for gain in gains), pairs + len(gains)
        print(
            f"| {variant} | {len(both)} | {fmean(theirs):.1f} | {fmean(ours):.1f} "
            f"| {fmean(gains):+.1f} | {f1:+.1f} | {min(gains):+.1f} |"
        )
    for name, members in (("base", variants.BASE), ("skewed", tuple(variants.SKEWED))):
        own = [differences[variant] for variant in members if variant in differences]
        if own:
            print(
                f"{name}: {len(own)} tasks, mean {fmean(own):+.2f}, median {median(own):+.2f}, "
                f"worst {min(own):+.2f}"
            )
    print(f"above in {above} of {pairs} pairs")


def teachers_before(lines: list[Line]) -> dict[tuple[str, int], Line]:
    """By variant and seed, the line whose first round is the teacher by cross entropy."""
    return {
        (line["variant"], line["seed"]): line
        for line in lines
        if line["method"] in BEFORE and usual(line)
    }


def row(variant: str, lines: list[Line], before: dict[tuple[str, int], Line]) -> dict[str, float]:
    """One line of the table; returns the mean gains in points."""
    first = [before[variant, line["seed"]] for line in lines]

    def points(what: str, of: list[Line], place: int | None = None) -> list[float]:
        return [100 * each[what][each["final"] if place is None else place] for each in of]

    old, teacher = points("accuracy", first, 0), points("accuracy", lines, 0)
    final = points("accuracy", lines)
    gain = [b - a for a, b in zip(old, final, strict=True)]
    old_f1, f1 = points("macro f1", first, 0), points("macro f1", lines)
    f1_gain = fmean(b - a for a, b in zip(old_f1, f1, strict=True))
    spread = f" ± {stdev(final):.1f}" if len(final) > 1 else ""
    print(
        f"| {variant} | {len(lines)} | {fmean(old):.1f} | {fmean(teacher):.1f} "
        f"| {fmean(final):.1f}{spread} | {fmean(gain):+.1f} | {f1_gain:+.1f} "
        f"| {fmean(final) - fmean(teacher):+.1f} | {min(gain):+.1f} |"
    )
    return {"gain": fmean(gain), "f1": f1_gain, "over teacher": fmean(final) - fmean(teacher)}


def total(name: str, gains: list[dict[str, float]]) -> None:
    """Mean, median and worst over tasks."""
    gain, f1 = ([each[which] for each in gains] for which in ("gain", "f1"))
    own = [each["over teacher"] for each in gains]
    print(
        f"{name}: {len(gains)} tasks, over the teacher before mean {fmean(gain):+.2f}, median "
        f"{median(gain):+.2f}, worst {min(gain):+.2f}; macro F1 {fmean(f1):+.2f}, "
        f"{median(f1):+.2f}, {min(f1):+.2f}; over its own teacher {fmean(own):+.2f}, "
        f"worst {min(own):+.2f}"
    )


def harmful(lines: list[Line]) -> None:
    """Runs more than a point below their own teacher, significantly by paired answers."""
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
