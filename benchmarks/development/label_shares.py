"""Labels that are not as many of each class: what a regression on them is worth, weighed or not.

    python benchmarks/development/label_shares.py DATA --out label_shares.jsonl

Recipe ``frozen`` on remembered vectors, design rows. About 16 labels a class in all: ``equal``;
``uneven``, from 24 to 8 in an order of the classes that the seed draws; ``as the pool``, by the
pool's shares, at least four of each; ``uneven, four times as many`` is 96 to 32. Each is learnt
with every row counted the same, as the regressions did at first; with every class counted the same;
and as now, where the lean of a head is taken out and a teacher that trains its encoder leaves out
labels of the large classes. ``fewest of each`` leaves the other labels out, everywhere. Lines that
are there stay.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean

import features
import torch
import variants
from on_test_rows import askew

from selftrain.data.rows import Labelled, Split
from selftrain.data.task import Task
from selftrain.method.recipes import recipe
from selftrain.model.backbone import load
from selftrain.training import fit, regression
from selftrain.training.evaluate import evaluate
from selftrain.training.folds import Rows
from selftrain.training.job import Job
from selftrain.training.loop import last_accepted, self_train
from selftrain.training.machine import Machine

sys.path.append(str(Path(__file__).resolve().parents[1]))
from vectors import read_each_text_once

CONDITIONS = ("equal", "uneven", "as the pool", "uneven, four times as many")
Weights = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
RULES: dict[str, Weights] = {
    "each row the same": lambda _labels, weights: weights,
    "each class the same": regression.equal_classes,
    "as now": regression.equal_classes,
    "fewest of each": regression.equal_classes,
}
POOL = 2_000
DESIGN = 800
FEWEST, LARGEST = 4, 64
MANY = 4 * 24
SMALL = {"yelp5": 32, "imdb": 32}
"""Labels of a class that tasks with few train rows can give."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("label_shares.jsonl"))
    parser.add_argument("--variant", nargs="+", default=list(variants.ALL))
    parser.add_argument("--seed", nargs="+", type=int, default=[12, 21, 42])
    parser.add_argument("--method", default="frozen")
    parser.add_argument("--labels", nargs="+", choices=CONDITIONS, default=CONDITIONS[:3])
    parser.add_argument("--rule", nargs="+", choices=RULES, default=[*RULES][:3])
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    machine = Machine(threads=options.threads)
    if options.method == "frozen":
        read_each_text_once()
    names = ("method", "variant", "seed", "labels", "rule")
    lines = variants.lines_of(options.out) if options.out.exists() else []
    known = {tuple(line[name] for name in names) for line in lines}
    backbone = load("minilm")
    lean = fit.lean
    for variant in sorted(options.variant, key=variants.base_of):
        for seed in options.seed:
            for condition in options.labels:
                task, gold, pool, design = rows(options.data, variant, seed, condition)
                chosen = labels_of(task, gold, pool, condition, seed)
                for rule in options.rule:
                    key = (options.method, variant, seed, condition, rule)
                    if key in known:
                        continue
                    now = rule == "as now"
                    fit.equal_classes = RULES[rule]
                    fit.lean = lean if now else no_lean
                    texts = tuple(row.example for row in pool)
                    labelled = fewest_of_each(chosen) if rule == "fewest of each" else chosen
                    split = Split(tuple(labelled), texts)
                    method = recipe(options.method)
                    if not now:
                        teacher = replace(method.teacher, balance_labels=None)
                        method = replace(method, teacher=teacher)
                    job = Job(task, split, method, backbone, seed)
                    line = dict(zip(names, key, strict=True)) | measured(job, design, machine)
                    with options.out.open("a") as file:
                        file.write(json.dumps(line) + "\n")
    show(variants.lines_of(options.out), options.method, options.rule)


def no_lean(_gold: Rows, classes: int, **_: object) -> torch.Tensor:
    """In place of ``lean``: no shift."""
    return torch.zeros(classes)


def rows(
    data: Path, variant: str, seed: int, condition: str
) -> tuple[Task, list[Labelled], list[Labelled], list[Labelled]]:
    """The task, many labels to choose from, the pool and the design rows."""
    base = variants.base_of(variant)
    features.SHOTS = MANY if "many" in condition else SMALL.get(base, LARGEST)
    task, gold, pool, design = features.cut(data, base, seed)
    if variant in variants.SKEWED:
        shares = variants.SKEWED[variant][1]
        pool, design = (askew(part, task, shares) for part in (pool, design))
    if variant in variants.SKEWED:  # the first rows of a cut hold all of a rare class
        return task, gold, evenly(pool, POOL), evenly(design, DESIGN)
    return task, gold, pool[:POOL], design[:DESIGN]


def evenly(rows: Sequence[Labelled], most: int) -> list[Labelled]:
    """At most so many rows, evenly spaced."""
    return [rows[at * len(rows) // most] for at in range(most)] if len(rows) > most else [*rows]


def labels_of(
    task: Task, gold: Sequence[Labelled], pool: Sequence[Labelled], condition: str, seed: int
) -> list[Labelled]:
    """The labelled rows of a condition: the first ones of each class."""
    classes = len(task.labels)
    if condition == "equal":
        counts = [16] * classes
    elif condition.startswith("uneven"):
        counts = [round(24 * (8 / 24) ** (at / (classes - 1))) for at in range(classes)]
        counts = [4 * count for count in counts] if "many" in condition else counts
        Random(f"{seed} uneven").shuffle(counts)
    else:
        of_pool = [sum(row.label == label for row in pool) / len(pool) for label in task.labels]
        counts = [max(FEWEST, round(16 * classes * share)) for share in of_pool]
    return [
        row
        for label, count in zip(task.labels, counts, strict=True)
        for row in [row for row in gold if row.label == label][:count]
    ]


def fewest_of_each(labelled: Sequence[Labelled]) -> list[Labelled]:
    """The first rows of each class, as many as the rarest class has."""
    seen: Counter[str] = Counter()
    fewest = min(Counter(row.label for row in labelled).values())
    chosen = []
    for row in labelled:
        seen[row.label] += 1
        if seen[row.label] <= fewest:
            chosen.append(row)
    return chosen


def measured(job: Job, design: Sequence[Labelled], machine: Machine) -> dict[str, float]:
    """Accuracy and macro F1 of the teacher and of the last accepted round, in points."""
    rounds = list(self_train(job, machine=machine))
    found: dict[str, float] = {}
    for name, model in (("teacher", rounds[0].model), ("final", last_accepted(rounds).model)):
        scores = evaluate(model, design, machine)
        found |= {name: 100 * scores["accuracy"], f"{name} F1": 100 * scores["macro_f1"]}
    return {name: round(score, 2) for name, score in found.items()} | {"rows": len(design)}


def show(lines: Sequence[dict[str, object]], method: str, rules: Sequence[str]) -> None:
    """Means over variants of means over seeds: these rules, and what the last one gains."""
    print("| labels | pools | " + " | ".join(f"teacher, {rule} | final" for rule in rules), end="")
    print(" | gain, teacher | final | F1 | worst variant | better in |")
    print("|---" * (7 + 2 * len(rules)) + "|")
    for condition in CONDITIONS:
        for name, members in (("even", variants.BASE), ("skewed", tuple(variants.SKEWED))):
            by: dict[tuple[str, str], list[dict[str, float]]] = {}
            for line in lines:
                if (line["method"], line["labels"]) == (method, condition):
                    by.setdefault((str(line["variant"]), str(line["rule"])), []).append(line)  # type: ignore[arg-type]
            found = [variant for variant in members if all((variant, rule) in by for rule in rules)]
            if not found:
                continue

            def mean(variant: str, rule: str, what: str, by: dict = by) -> float:  # type: ignore[type-arg]
                return fmean(line[what] for line in by[variant, rule])

            cells = [
                f"{fmean(mean(variant, rule, what) for variant in found):.1f}"
                for rule in rules
                for what in ("teacher", "final")
            ]
            before, after = rules[-2:]
            gains = {
                what: [mean(v, after, what) - mean(v, before, what) for v in found]
                for what in ("teacher", "final", "final F1")
            }
            pairs = [
                b["final"] - a["final"]
                for v in found
                for a, b in zip(by[v, before], by[v, after], strict=True)
            ]
            cells += [f"{fmean(each):+.1f}" for each in gains.values()]
            worst = min(gains["final"])
            moved = [pair for pair in pairs if pair]
            cells += [f"{worst:+.1f}", f"{sum(pair > 0 for pair in moved)} of {len(moved)}"]
            print(f"| {condition} | {len(found)} {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
