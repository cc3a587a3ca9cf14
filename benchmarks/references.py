"""What a user would pick instead: frozen sentence vectors under two classifiers of scikit-learn.

    python benchmarks/references.py DATA --task sst2 agnews [--test]

Logistic regression on the labelled rows alone, and scikit-learn's SelfTrainingClassifier around it
with the unlabelled rows that one round of ours would draw; both with default settings. Seconds
include encoding. Scored on the design rows, or with --test on the test rows, once.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from cuts import SEEDS, SHOTS, TEST
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier

from selftrain import task as tasks
from selftrain.backbone import load
from selftrain.classifier import build
from selftrain.loop import drawn
from selftrain.machine import Machine
from selftrain.pel import Adapter
from selftrain.recipes import LAPTOP
from selftrain.tasksets import Taskset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/references.jsonl"))
    options = parser.parse_args()
    Machine(threads=options.threads).accelerator()
    backbone = load("minilm")
    for name in options.task:
        task = tasks.find(name)
        reader = build(task, backbone, Adapter(width=1), reads="head", seed=0)

        def vectors(examples, reader=reader) -> np.ndarray:
            return reader.read(list(examples)).features.numpy()

        cut = Taskset.read(options.data, task)
        held = cut.test(TEST) if options.test else cut.design
        asked, answer = vectors([row.example for row in held]), [row.label for row in held]
        for seed in options.seeds:
            split = cut.split(SHOTS, seed)
            labels = np.array([row.label for row in split.labeled])
            started = time.perf_counter()
            known = vectors([row.example for row in split.labeled])
            alone = LogisticRegression(max_iter=1000).fit(known, labels)
            first = time.perf_counter() - started
            pool = vectors(drawn(split, LAPTOP, 1, seed))
            codes = np.searchsorted(alone.classes_, labels)
            both = SelfTrainingClassifier(LogisticRegression(max_iter=1000)).fit(
                np.concatenate([known, pool]), np.concatenate([codes, np.full(len(pool), -1)])
            )
            second = time.perf_counter() - started
            line = {
                "task": name,
                "seed": seed,
                "test": options.test,
                "logistic regression": {
                    "accuracy": alone.score(asked, answer),
                    "seconds": round(first, 2),
                },
                "scikit-learn's self-training": {
                    "accuracy": both.score(asked, np.searchsorted(alone.classes_, answer)),
                    "seconds": round(second, 2),
                    "taken from the pool": int((both.labeled_iter_ > 0).sum()),
                },
            }
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
