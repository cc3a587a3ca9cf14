"""How right the pseudo labels of a bench were: one line for each run and round.

    python benchmarks/audits.py DATA runs/paper --out benchmarks/paper/audits.jsonl

Gold labels of the pool are those of DATA's train files; nothing that trains has seen them. Then a
table of means over the seeds: labels right of all, easy and hard rows, and the chance that a right
label has a higher weight than a wrong one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import lines

from selftrain.data import task as tasks
from selftrain.data.rows import Notes
from selftrain.experiments import results
from selftrain.experiments.results import Result
from selftrain.experiments.tasksets import Taskset
from selftrain.runs.audit import by_round, gold_labels

KEY = ("task", "method", "backbone", "shots", "recipe", "seed", "scored_on")
PARTS = ("all", "easy", "hard")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("bench", type=Path, help="the folder of a bench, with its run folders")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/paper/audits.jsonl"))
    options = parser.parse_args()
    done = lines.measured(options.out, *KEY)
    gold: dict[str, Mapping[str, str]] = {}
    gone = 0
    for cell in results.read(options.bench / "cells.jsonl"):
        name = {key: getattr(cell, key) for key in KEY}
        if cell.run is None or len(cell.by_round) < 2 or tuple(name.values()) in done:
            continue
        if not (options.bench / cell.run).is_dir():
            gone += 1
            continue
        if cell.task not in gold:
            gold[cell.task] = labels_of(options.data, cell)
        for number, found in by_round(options.bench / cell.run, gold[cell.task]):
            if number >= len(cell.by_round):
                break  # the run was asked for more rounds since
            accuracy = {part: found.parts[part].accuracy for part in PARTS}
            figures = {"right": accuracy, "areas": found.areas, "rows": found.rows}
            lines.append(options.out, {**name, "round": number, **figures})
    if gone:
        print(f"cells whose run folder is not here: {gone}", file=sys.stderr)
    show(options.out)


def labels_of(data: Path, cell: Result) -> Mapping[str, str]:
    """The labels of a task's train rows, by uid."""
    return gold_labels(Taskset.read(data, tasks.find(cell.task)).rows, notes=Notes())


def show(out: Path) -> None:
    """Means over the seeds, by round."""
    rows = []
    for place, mine in lines.groups(lines.read(out), *KEY[:5], "round").items():
        right = [mean([line["right"][part] for line in mine], 100, 1) for part in PARTS]
        area = mean([line["areas"]["weight"] for line in mine], 1, 3)
        rows.append((*place, len(mine), *right, area))
    head = (*KEY[:5], "round", "seeds", *PARTS, "area of weight")
    lines.show_table(head, rows)


def mean(found: list[float | None], scale: int, digits: int) -> str:
    """Over all the seeds; a dash where one has none, as plain self-training has no hard rows."""
    there = [each for each in found if each is not None]
    return f"{scale * fmean(there):.{digits}f}" if len(there) == len(found) else "–"


if __name__ == "__main__":
    main()
