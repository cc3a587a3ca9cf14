"""How good is cheap uncertainty? Dropout in the top layers only, beside full MC dropout.

    python benchmarks/uncertainty.py DATA --task sst2 agnews --seeds 12 21 42

One teacher per task and seed, on the labels alone; the same pool rows are annotated with the
passes in all layers and in the top k. For each: the time in plain passes over the same rows, the
area under the error-detection curve of certainty, of confidence and of the score that selects
(the chance that a right pseudo label is trusted more than a wrong one), and how many of the picked
pseudo labels are right. The pool's gold labels are read for these figures alone.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import torch
from cuts import SEEDS, SHOTS

from selftrain import task as tasks
from selftrain.annotate import annotate
from selftrain.backbone import load
from selftrain.classifier import narrowed
from selftrain.data import Lesson
from selftrain.fit import fit
from selftrain.loop import drawn, fresh
from selftrain.machine import Machine
from selftrain.metrics import error_detection_area, spread
from selftrain.recipes import LAPTOP
from selftrain.scores import certainty, confidence, joined, pseudo_label
from selftrain.seeds import child
from selftrain.tasksets import Taskset

LAYERS = {"all": None, "top 3": 3, "top 2": 2, "top 1": 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--passes", nargs="+", type=int, default=[4, 20])
    parser.add_argument("--pool", type=int, default=1024)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/uncertainty.jsonl"))
    options = parser.parse_args()
    on, backbone = Machine(threads=options.threads), load("minilm")
    method = replace(LAPTOP, pool=options.pool)
    for name in options.task:
        task = tasks.find(name)
        cut = Taskset.read(options.data, task)
        truth = {row.example.uid: task.labels.index(row.label) for row in cut.rows}
        for seed in options.seeds:
            if done(options.out, name, seed):
                continue
            split = cut.split(SHOTS, seed)
            teacher = fresh(task, method.teacher, backbone, child(seed, "teacher"))
            how = method.teacher
            fit(teacher, Lesson(gold=split.labeled), how, seed=child(seed, "fit", 0), on=on)
            pool = drawn(split, method, 1, seed)
            gold = torch.tensor([truth[example.uid] for example in pool])
            plain = seconds(lambda t=teacher, p=pool: t.probabilities(p))
            for passes in options.passes:
                for layers, top in LAYERS.items():
                    model = narrowed(teacher, top)
                    started = time.perf_counter()
                    chunks = list(annotate(model, pool, passes, seed=seed, on=on))
                    spent = time.perf_counter() - started
                    votes = joined([part for _, part in chunks])
                    label = pseudo_label(votes)
                    sure, settled = confidence(votes, label), certainty(votes)
                    right = label == gold
                    lesson = method.select(
                        iter(chunks), task.labels, split.labeled, pool=len(pool), number=1, seed=1
                    )
                    easy = [line for line in lesson.audit if line.role == "easy"]
                    hits = [task.labels.index(line.label) == truth[line.uid] for line in easy]
                    line = {
                        "task": name,
                        "seed": seed,
                        "passes": passes,
                        "layers": layers,
                        "plain passes": round(spent / plain, 2),
                        "labels right": float(right.double().mean()),
                        "picked right": sum(hits) / len(hits),
                        "area of certainty": error_detection_area(settled, right),
                        "area of confidence": error_detection_area(sure, right),
                        "area of score": error_detection_area(
                            method.select.score(sure, settled), right
                        ),
                    }
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(line) + "\n")
                    print(json.dumps(line), flush=True)
    show(options.out)


def seconds(call: object) -> float:
    """Of the second call: the first one warms up."""
    call()
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def lines(out: Path) -> list[dict]:
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def done(out: Path, task: str, seed: int) -> bool:
    return any((x["task"], x["seed"]) == (task, seed) for x in lines(out))


def show(out: Path) -> None:
    every = lines(out)
    figures = [key for key in every[0] if key not in ("task", "seed", "passes", "layers")]
    print("| task | T | layers |", " | ".join(figures), "|")
    print("|---" * (3 + len(figures)) + "|")
    for wanted in dict.fromkeys((x["task"], x["passes"], x["layers"]) for x in every):
        mine = [x for x in every if (x["task"], x["passes"], x["layers"]) == wanted]
        cells = [f"{spread([x[key] for x in mine]).mean:.3f}" for key in figures]
        print("|", " | ".join(map(str, (*wanted, *cells))), "|")


if __name__ == "__main__":
    main()
