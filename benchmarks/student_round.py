"""One student's training: an adapter over a remembered trunk, beside full fine-tuning.

    python benchmarks/student_round.py DATA --task sst2 agnews

The same lesson (512 easy and 512 hard pool rows with their gold labels, 16 labels a class), the
same five epochs of batches of 32, the same loss and contrast. Full fine-tuning is given the same
loop, so the ratio is the method's, not the loop's. The trunk's pass over the rows is counted; what
it takes is also said by itself. Nothing here is a result about accuracy: the lesson is made of gold
labels.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import torch
from cuts import SHOTS

from selftrain import task as tasks
from selftrain.backbone import load
from selftrain.batches import grouped
from selftrain.classifier import Classifier, build
from selftrain.data import Lesson
from selftrain.fit import fit
from selftrain.machine import Machine
from selftrain.pel import Adapter, Full
from selftrain.recipes import LAPTOP
from selftrain.tasksets import Taskset

EASY = HARD = 512
EPOCHS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--top", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/student_round.jsonl"))
    options = parser.parse_args()
    on = Machine(threads=options.threads)
    how = replace(LAPTOP.student[0], steps=None, epochs=EPOCHS)
    for name in options.task:
        task = tasks.find(name)
        cut = Taskset.read(options.data, task)
        gold = cut.split(SHOTS, 12).labeled
        few = {row.example.uid for row in gold}
        rest = [row for row in cut.rows if row.example.uid not in few][: EASY + HARD]
        lesson = Lesson(gold=gold, easy=tuple(rest[:EASY]), hard=tuple(rest[EASY:]))
        systems = {
            "full": Full(),
            "adapter, all layers": Adapter(width=64),
            **{f"adapter, top {k}": Adapter(width=64, layers=k) for k in options.top},
        }
        seconds, trunk = {}, {}
        for system, changes in systems.items():
            backbone = load("minilm")  # of its own: nothing is remembered from another system
            model = build(task, backbone, changes, reads="head", seed=1)
            rate = 2e-5 if isinstance(changes, Full) else how.rate
            started = time.perf_counter()
            trunk[system] = remembered(model, lesson)
            fit(model, lesson, replace(how, changes=changes, rate=rate), seed=1, on=on)
            seconds[system] = round(time.perf_counter() - started, 1)
            print(name, system, seconds[system], flush=True)
        line = {
            "task": name,
            "seconds": seconds,
            "of that the trunk": {s: round(t, 1) for s, t in trunk.items() if t},
            "full takes times": {s: round(seconds["full"] / t, 2) for s, t in seconds.items()},
        }
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


@torch.no_grad()
def remembered(model: Classifier, lesson: Lesson) -> float:
    """Remember the trunk of a lesson's rows, if the model has one; the seconds that took."""
    if model.trunk is None or model.trunk.memory is None:
        return 0.0
    started = time.perf_counter()
    rows = model.encode([row.example for row in (*lesson.gold, *lesson.easy, *lesson.hard)])
    model.trunk.memory.plan(rows, model.backbone.width, limit=10**10)
    for batch in grouped(rows, model.pad, model.offset.device)[0]:
        model.lower(batch)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
