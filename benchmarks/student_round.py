"""One student's training: an adapter over a remembered trunk, beside full fine-tuning.

    python benchmarks/student_round.py DATA --task sst2 agnews

The same lesson (512 easy and 512 hard pool rows with their gold labels, 16 labels a class), the
same five epochs of batches of 32, the same loss and contrast. Full fine-tuning is given the same
loop, so the ratio is the method's, not the loop's. The trunk's pass over the rows is counted; what
it takes is also said by itself. Nothing here is a result about accuracy: the lesson is made of gold
labels. Every other turn goes backwards, so that a machine that tires favours nobody.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import lines
import torch
from cuts import SHOTS
from start import warm

from selftrain.data import task as tasks
from selftrain.data.rows import Lesson
from selftrain.data.task import Task
from selftrain.experiments.tasksets import Taskset
from selftrain.method.upet import LAPTOP
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import load
from selftrain.model.batches import grouped
from selftrain.model.build import build
from selftrain.model.classifier import Classifier
from selftrain.model.pel import Adapter, AnyTuning, Full
from selftrain.training.fit import fit
from selftrain.training.machine import Machine

EASY = HARD = 512
EPOCHS = 5
FULL = "full"
KEY = ("task", "system", "turn", "threads")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--top", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/student_round.jsonl"))
    options = parser.parse_args()
    machine = Machine(threads=options.threads)
    machine.torch_device()
    systems: dict[str, AnyTuning] = {
        FULL: Full(),
        "adapter, all layers": Adapter(width=64),
        **{f"adapter, top {k}": Adapter(width=64, layers=k) for k in options.top},
    }
    done = lines.measured(options.out, *KEY)
    for name in options.task:
        turns = [
            (turn, system)
            for turn in range(options.repeat)
            for system in (reversed(systems) if turn % 2 else systems)
            if (name, system, turn, lines.threads()) not in done
        ]
        if not turns:
            continue
        task = tasks.find(name)
        lesson = lesson_of(Taskset.read(options.data, task))
        warm(task, lesson.gold, load("minilm"), machine)
        for turn, system in turns:
            trunk, whole = trained(task, lesson, systems[system], machine)
            line = {"task": name, "system": system, "turn": turn, "seconds": whole, "trunk": trunk}
            lines.append(options.out, line)
    show(options.out)


def lesson_of(cut: Taskset) -> Lesson:
    """Rows of the pool with their gold labels, as if they had been selected."""
    gold = cut.split(SHOTS, 12).labelled
    few = {row.example.uid for row in gold}
    rest = [row for row in cut.rows if row.example.uid not in few][: EASY + HARD]
    return Lesson(gold=gold, easy=tuple(rest[:EASY]), hard=tuple(rest[EASY:]))


def trained(
    task: Task, lesson: Lesson, changes: AnyTuning, machine: Machine
) -> tuple[float, float]:
    """Seconds of the trunk's pass, and of the training with it."""
    backbone = load("minilm")  # of its own: nothing is remembered from another system
    model = build(task, backbone, Architecture(changes), seed=1)
    rate = (
        LAPTOP.teacher.learning_rate
        if isinstance(changes, Full)
        else LAPTOP.student[0].learning_rate
    )
    how = replace(LAPTOP.student[0], steps=None, epochs=EPOCHS, tuning=changes, learning_rate=rate)
    started = time.perf_counter()
    trunk = remembered(model, lesson)
    fit(model, lesson, how, seed=1, machine=machine)
    return round(trunk, 2), round(time.perf_counter() - started, 2)


@torch.no_grad()
def remembered(model: Classifier, lesson: Lesson) -> float:
    """Remember the trunk of a lesson's rows, if the model has one; the seconds that took."""
    if model.trunk is None or model.trunk.memory is None:
        return 0.0
    started = time.perf_counter()
    rows = model.encode([row.example for row in (*lesson.gold, *lesson.easy, *lesson.hard)])
    model.trunk.memory.plan(rows, model.backbone.width, limit=10**10)
    for batch in grouped(rows, model.pad, model.device)[0]:
        model.lower(batch)
    return time.perf_counter() - started


def show(out: Path) -> None:
    """Medians over the turns; how much longer full fine-tuning takes, turn by turn."""
    rows = []
    for (task, threads), here in lines.groups(lines.read(out), "task", "threads").items():
        for (system,), mine in lines.groups(here, "system").items():
            whole, trunk = (median(line[name] for line in mine) for name in ("seconds", "trunk"))
            ratio = f"{lines.times(here, FULL, system):.2f}"
            rows.append((task, threads, system, len(mine), f"{whole:.1f}", f"{trunk:.1f}", ratio))
    head = ("task", "threads", "system", "turns", "seconds", "of that the trunk", "full / this")
    lines.show_table(head, rows)


if __name__ == "__main__":
    main()
