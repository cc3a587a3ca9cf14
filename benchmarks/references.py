"""What a user would pick instead: frozen sentence vectors under two classifiers of scikit-learn.

    python benchmarks/references.py DATA --task sst2 agnews [--test]

Logistic regression on the labelled rows alone, and scikit-learn's SelfTrainingClassifier around it
with the unlabelled rows that one round of ours would draw; both with default settings. Seconds
include encoding. Scored on the design rows, or with --test on the test rows, once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import lines
import numpy as np
from cuts import SEEDS, SHOTS, TEST
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier

from selftrain.data import task as tasks
from selftrain.data.rows import Example, Labelled, Split
from selftrain.data.task import Task
from selftrain.experiments.stats import spread
from selftrain.experiments.tasksets import Taskset
from selftrain.method.upet import LAPTOP
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import load
from selftrain.model.build import build
from selftrain.model.classifier import Classifier
from selftrain.model.pel import Adapter
from selftrain.training.draw import pool_of_round
from selftrain.training.job import Job
from selftrain.training.machine import Machine

KEY = ("task", "seed", "test", "threads")
ALONE, BOTH = "logistic regression", "scikit-learn's self-training"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/references.jsonl"))
    options = parser.parse_args()
    Machine(threads=options.threads).torch_device()
    done = lines.measured(options.out, *KEY)
    for name in options.task:
        place = (options.test, lines.threads())
        seeds = [seed for seed in options.seeds if (name, seed, *place) not in done]
        if not seeds:
            continue
        task = tasks.find(name)
        cut = Taskset.read(options.data, task)
        held = cut.test(TEST) if options.test else cut.design
        asked = vectors(reader(task), [row.example for row in held])
        for seed in seeds:
            found = fitted(task, cut.split(SHOTS, seed), seed, asked, held)
            line = {"task": name, "seed": seed, "test": options.test, **found}
            lines.append(options.out, line)
    show(options.out)


def reader(task: Task) -> Classifier:
    """The frozen encoder; a new one has read no text, so that tokenising is timed."""
    return build(task, load("minilm"), Architecture(Adapter(width=1)), seed=0)


def vectors(model: Classifier, examples: Sequence[Example]) -> np.ndarray:
    return model.read(list(examples)).features.numpy()


def fitted(
    task: Task, split: Split, seed: int, asked: np.ndarray, held: Sequence[Labelled]
) -> lines.Line:
    """Accuracy and seconds of both; those of the second include the first, which it begins with."""
    model = reader(task)
    labels, answers = (np.array([row.label for row in rows]) for rows in (split.labelled, held))
    started = time.perf_counter()
    known = vectors(model, [row.example for row in split.labelled])
    alone = LogisticRegression(max_iter=1000).fit(known, labels)
    first = time.perf_counter() - started
    pool = vectors(model, pool_of_round(Job(task, split, LAPTOP, model.backbone, seed), 1))
    codes = np.searchsorted(alone.classes_, labels)
    both = SelfTrainingClassifier(LogisticRegression(max_iter=1000)).fit(
        np.concatenate([known, pool]), np.concatenate([codes, np.full(len(pool), -1)])
    )
    second = time.perf_counter() - started
    return {
        ALONE: {"accuracy": alone.score(asked, answers), "seconds": round(first, 2)},
        BOTH: {
            "accuracy": both.score(asked, np.searchsorted(alone.classes_, answers)),
            "seconds": round(second, 2),
            "taken from the pool": int((both.labeled_iter_ > 0).sum()),
        },
    }


def show(out: Path) -> None:
    """Accuracy over the seeds, mean ± sd, and the median of the seconds."""
    rows = []
    for place, mine in lines.groups(lines.read(out), "task", "test", "threads").items():
        for system in (ALONE, BOTH):
            scores = spread([100 * line[system]["accuracy"] for line in mine])
            seconds = median(line[system]["seconds"] for line in mine)
            rows.append((*place, system, len(mine), scores, f"{seconds:.1f}"))
    head = ("task", "test rows", "threads", "system", "seeds", "accuracy", "seconds")
    lines.show_table(head, rows)


if __name__ == "__main__":
    main()
