"""How often class names count: the gate on real names, and on names that say nothing.

    python benchmarks/development/class_names.py DATA --out class_names.jsonl

For each task and seed, 16 labels a class: do the names answer the labelled rows better than chance?
The same with names that say nothing: the numbers of the classes, and the name of another class.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import features
import torch
import variants

from selftrain.data.rows import Labelled
from selftrain.data.task import Task
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone, load
from selftrain.model.build import build
from selftrain.model.pel import Probe
from selftrain.training.class_names import class_name_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--seed", nargs="+", type=int, default=[12, 21, 42, 87, 100])
    parser.add_argument("--out", type=Path, default=Path("class_names.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    backbone = load("minilm")
    lines = []
    for name in variants.BASE:
        for seed in options.seed:
            task, gold, _, _ = features.cut(options.data, name, seed)
            numbers = {label: f"{place}" for place, label in enumerate(task.labels)}
            moved = dict(zip(task.labels, (*task.labels[1:], task.labels[0]), strict=True))
            line = {
                "task": name,
                "seed": seed,
                "names": counts(task, gold, backbone),
                "numbers": counts(*renamed(task, gold, numbers), backbone),
                "moved": counts(*renamed(task, gold, moved), backbone),
            }
            lines.append(line)
            print(json.dumps(line), flush=True)
    options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for kind in ("names", "numbers", "moved"):
        print(kind, sum(line[kind] for line in lines), "of", len(lines))


def counts(task: Task, gold: Sequence[Labelled], backbone: Backbone) -> bool:
    """Whether the names of this task count."""
    model = build(task, backbone, Architecture(Probe()), seed=0)
    return bool(class_name_rows(model, gold))


def renamed(
    task: Task, gold: Sequence[Labelled], names: dict[str, str]
) -> tuple[Task, list[Labelled]]:
    """The task and its rows with other names of the classes."""
    return (
        replace(task, labels=tuple(names[label] for label in task.labels)),
        [replace(row, label=names[row.label]) for row in gold],
    )


if __name__ == "__main__":
    main()
