"""What one method gains over another, seed by seed, and how sure that is.

    python benchmarks/paired.py runs/trunk/cells.jsonl upet-head-adapter-top-3 upet-head-adapter \\
        --on design

Two cells are a pair where task, backbone, labels a class, seed and scored rows are the same. The
interval holds the true mean difference with 90 % by Student's t, if differences are about normal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

from lines import show_table
from scipy.stats import t

from selftrain.experiments import results
from selftrain.experiments.results import Result

Pairing = tuple[object, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", type=Path)
    parser.add_argument("method")
    parser.add_argument("other", help="what it is compared with")
    parser.add_argument("--on", choices=("test", "design"), default="test")
    options = parser.parse_args()
    every = [cell for cell in results.read(options.cells) if cell.scored_on == options.on]
    mine, other = (by_pairing(every, name) for name in (options.method, options.other))
    gains: dict[str, list[float]] = {}
    for key in mine.keys() & other.keys():
        gain = 100 * (mine[key].accuracy - other[key].accuracy)
        gains.setdefault(f"{mine[key].task}, {mine[key].backbone}", []).append(gain)
    if not gains:
        sys.exit(f"error: no {options.on} cells of {options.method} and {options.other} are pairs")
    gains = dict(sorted(gains.items()))
    if len(gains) > 1:
        gains["all"] = [gain for some in gains.values() for gain in some]
    head = ("task", "pairs", f"{options.method} - {options.other}, points", "90 % interval")
    show_table(head, [(task, *said(some)) for task, some in gains.items()])


def by_pairing(cells: Iterable[Result], method: str) -> dict[Pairing, Result]:
    """The cells of a method, by what two cells of a pair have in common."""
    found: dict[Pairing, Result] = {}
    for cell in cells:
        key = (cell.task, cell.backbone, cell.shots, cell.seed, cell.rows)
        if cell.method == method and found.setdefault(key, cell) is not cell:
            sys.exit(f"error: `{method}` has two cells of {key}")
    return found


def said(gains: Sequence[float]) -> tuple[int, str, str]:
    """How many pairs, their mean, and the interval; one pair has none."""
    ends = "{:+.2f} to {:+.2f}".format(*interval(gains)) if len(gains) > 1 else "–"
    return len(gains), f"{fmean(gains):+.2f}", ends


def interval(gains: Sequence[float], share: float = 0.9) -> tuple[float, float]:
    """Where the true mean of two or more differences is, by Student's t.

    >>> [round(end, 2) for end in interval([1.0, 2.0, 3.0])]
    [0.31, 3.69]
    """
    reach = float(t.ppf((1 + share) / 2, len(gains) - 1)) * stdev(gains) / sqrt(len(gains))
    return fmean(gains) - reach, fmean(gains) + reach


if __name__ == "__main__":
    main()
