"""The pretrained encoder's vectors of every task's train and test rows, computed once.

    python benchmarks/estimate/vectors.py DATA VECTORS

Up to 4,000 rows of train and 1,000 of test, in the order of a hash of the text; one ``.npz`` a
task, without texts. The experiments on expected accuracy draw labels and pools from the train rows.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from selftrain.data.read import Columns, read_labelled
from selftrain.data.rows import Labelled, Notes, uid_of
from selftrain.data.task import from_labels
from selftrain.experiments.tasksets import by_hash, find
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import load
from selftrain.model.build import build
from selftrain.model.pel import Probe

SINGLE = ("sst2", "agnews", "subj", "cr", "sst5", "dbpedia", "imdb", "yelp5")
PAIRS = ("mrpc", "rte", "qnli", "mnli")
TRAIN, TEST = 4000, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--task", nargs="+", default=[*SINGLE, *PAIRS])
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.vectors.mkdir(parents=True, exist_ok=True)
    backbone = load("minilm")
    for name in options.task:
        path = options.vectors / f"{name}.npz"
        if path.exists():
            continue
        started = time.perf_counter()
        train = rows_of(options.data, name, "train")[:TRAIN]
        test = rows_of(options.data, name, "test")[:TEST]
        task = from_labels((row.label for row in train), name=name, pair=name in PAIRS)
        model = build(task, backbone, Architecture(Probe()), seed=0)
        arrays: dict[str, np.ndarray] = {}
        for part, rows in (("train", train), ("test", test)):
            arrays[f"{part}_x"] = model.read([row.example for row in rows]).features.numpy()
            arrays[f"{part}_y"] = np.array([task.labels.index(row.label) for row in rows])
        np.savez(path, **arrays, labels=np.array(task.labels))
        print(name, len(train), len(test), f"{time.perf_counter() - started:.0f} s", flush=True)


def rows_of(data: Path, name: str, part: str) -> list[Labelled]:
    """The rows of a task, each text once and none with two labels, in the order of their hash."""
    columns = Columns(text="text_a", pair="text_b") if name in PAIRS else Columns(text="text")
    rows = read_labelled(find(data / name, part), columns, notes=Notes())
    labels: dict[str, set[str]] = {}
    for row in rows:
        labels.setdefault(key_of(row), set()).add(row.label)
    unique = {key_of(row): row for row in rows}
    return by_hash([row for key, row in unique.items() if len(labels[key]) == 1])


def key_of(row: Labelled) -> str:
    return uid_of(row.example.text, row.example.pair)


if __name__ == "__main__":
    main()
