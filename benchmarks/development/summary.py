"""Tables of probe_rounds.jsonl: gain over the teacher, paired by task and seed.

python benchmarks/development/summary.py probe_rounds.jsonl
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import variants
from scipy.stats import binomtest

TEACHER = "2e-05x60"
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("probe", nargs="*", help="shown by task too")
    options = parser.parse_args()
    lines = variants.lines_of(options.runs)
    teacher = {
        (line["variant"], line["seed"]): line["before"]
        for line in lines
        if "space=frozen" not in line["probe"]
    }
    table: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for line in lines:
        before = teacher.get((line["variant"], line["seed"]))
        if before is not None:
            table[line["teacher"], line["probe"]].append(compared(line, before))
    print(
        f"{'probe':<36} runs  acc base skew  F1 base skew  worst variant        own gain  harm  s"
    )
    for (teacher_name, probe), rows in sorted(
        table.items(), key=lambda entry: -mean(entry[1], "accuracy")
    ):
        show_probe((teacher_name if teacher_name != TEACHER else "") + probe, rows)
    for probe in options.probe:
        for name in variants.ALL:
            rows = [row for row in table[TEACHER, probe] if row["variant"] == name]
            if rows:
                before = [100 * teacher[name, row["seed"]]["accuracy"] for row in rows]
                show_variant(probe, name, rows, float(np.mean(before)))


def compared(line: Row, before: dict[str, float]) -> Row:
    """A run's gain over the teacher, and over its own round 0, in points."""
    gain = {metric: 100 * (line["after"][metric] - before[metric]) for metric in before}
    own_gain = 100 * (line["after"]["accuracy"] - line["before"]["accuracy"])
    changed = line["lost"] + line["won"]
    p = binomtest(line["lost"], changed).pvalue if changed else 1
    return {
        "variant": line["variant"],
        "seed": line["seed"],
        **gain,
        "own": own_gain,
        "harm": own_gain < -1 and p < 0.05,
        "seconds": line["seconds"],
    }


def mean(rows: list[Row], metric: str) -> float:
    return float(np.mean([row[metric] for row in rows]))


def mean_over(by_variant: dict[str, list[Row]], names: Iterable[str], metric: str) -> float:
    """The mean over these variants of the mean over seeds."""
    means = [mean(by_variant[name], metric) for name in names if name in by_variant]
    return float(np.mean(means)) if means else float("nan")


def show_probe(title: str, rows: list[Row]) -> None:
    """Print one line of the table of all probes."""
    by_variant: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_variant[row["variant"]].append(row)
    accuracy = {name: mean(of_variant, "accuracy") for name, of_variant in by_variant.items()}
    worst = min(accuracy, key=lambda name: accuracy[name])
    print(
        f"{title:<36} {len(rows):4d} "
        f"{mean_over(by_variant, variants.BASE, 'accuracy'):+6.2f} "
        f"{mean_over(by_variant, variants.SKEWED, 'accuracy'):+6.2f} "
        f"{mean_over(by_variant, variants.BASE, 'macro f1'):+6.2f} "
        f"{mean_over(by_variant, variants.SKEWED, 'macro f1'):+6.2f}  "
        f"{worst:<18} {accuracy[worst]:+6.1f}  {mean(rows, 'own'):+5.2f} "
        f"{sum(row['harm'] for row in rows):4d}  {mean(rows, 'seconds'):.2f}"
    )


def show_variant(probe: str, name: str, rows: list[Row], teacher: float) -> None:
    """Print how one probe does on one variant."""
    gains = [row["accuracy"] for row in rows]
    deviation = np.std(gains, ddof=1) if len(gains) > 1 else 0
    print(
        f"{probe:<24} {name:<20} n={len(rows)} teacher {teacher:5.1f}  acc {np.mean(gains):+5.1f} "
        f"(sd {deviation:4.1f}, least {min(gains):+5.1f})  F1 {mean(rows, 'macro f1'):+5.1f}  "
        f"harm {sum(row['harm'] for row in rows)}"
    )


if __name__ == "__main__":
    main()
