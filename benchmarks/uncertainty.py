"""How good is cheap uncertainty? Dropout in the top layers only, beside full MC dropout.

    python benchmarks/uncertainty.py DATA --task sst2 agnews --seeds 12 21 42
    python benchmarks/uncertainty.py DATA --student prompt@minilm-mlm

One teacher per task and seed, on the labels alone; the same pool rows are annotated with the
passes in all layers and in the top k. Where a prompt is read, the last layer is computed for the
mask alone. For each: the time in plain passes over the same rows, timed just before; the area under
the error-detection curve of certainty, of confidence and of the score that selects (the chance that
a right pseudo label is trusted more than a wrong one); and how many of the picked pseudo labels are
right. A cheaper choice is judged by the difference of its areas to those of all layers, paired by
seed. The pool's gold labels are read for these figures alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from statistics import fmean

import lines
import torch
from cuts import SEEDS, SHOTS
from start import student_of, teacher_of

from selftrain.data import task as tasks
from selftrain.data.rows import Example, Lesson
from selftrain.experiments.stats import spread
from selftrain.experiments.tasksets import Taskset
from selftrain.method.scores import Votes, certainty, confidence, joined, pseudo_label
from selftrain.method.selection import AnyScore, RoundDraw
from selftrain.model.build import with_dropout_in
from selftrain.model.classifier import Classifier
from selftrain.seeds import child
from selftrain.training.annotate import annotate
from selftrain.training.draw import pool_of_round
from selftrain.training.job import Job
from selftrain.training.machine import Machine
from selftrain.training.metrics import error_detection_area

LAYERS = {"all": None, "top 3": 3, "top 2": 2, "top 1": 1}
KEY = ("task", "seed", "student", "pool", "passes", "layers")
AREAS = ("area of certainty", "area of score")
FIGURES = ("plain passes", "labels right", "picked right", "area of confidence", *AREAS)
Chunk = tuple[list[Example], Votes]
Truth = Mapping[str, str]
BySeed = Mapping[int, lines.Line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--student", default="head@minilm", help="head or prompt, @, backbone")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--passes", nargs="+", type=int, default=[20])
    parser.add_argument("--in", dest="layers", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--pool", type=int, default=1024)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/uncertainty.jsonl"))
    options = parser.parse_args()
    machine = Machine(threads=options.threads)
    machine.torch_device()
    method, backbone = student_of(options.student)
    method = replace(method, pool=options.pool)
    done = lines.measured(options.out, *KEY)
    for name in options.task:
        task = tasks.find(name)
        cut = Taskset.read(options.data, task)
        truth = {row.example.uid: row.label for row in cut.rows}
        for seed in options.seeds:
            place = {"task": name, "seed": seed, "student": options.student, "pool": options.pool}
            choices = [
                (passes, layers)
                for passes in options.passes
                for layers in options.layers
                if (*place.values(), passes, layers) not in done
            ]
            if not choices:
                continue
            split = cut.split(SHOTS, seed)
            job = Job(task, split, method, backbone, seed)
            teacher = teacher_of(job, machine)
            pool = pool_of_round(job, 1)
            teacher.probabilities(pool)  # warm: texts are tokenised once
            for passes, layers in choices:
                cost, chunks = asked(teacher, pool, passes, layers, seed=seed, machine=machine)
                lesson = method.select(
                    iter(chunks), task.labels, split.labelled, RoundDraw(len(pool), 1, seed)
                )
                line = {
                    **place,
                    "passes": passes,
                    "layers": layers,
                    "plain passes": round(cost, 2),
                    "picked right": picked_right(lesson, truth),
                    **trust(chunks, task.labels, truth, method.select.score),
                }
                lines.append(options.out, line)
    show(options.out)


def asked(
    teacher: Classifier,
    pool: Sequence[Example],
    passes: int,
    layers: str,
    *,
    seed: int,
    machine: Machine,
) -> tuple[float, list[Chunk]]:
    """The votes, and what they cost in plain passes, of which one is timed just before."""
    model = with_dropout_in(teacher, LAYERS[layers])
    started = time.perf_counter()
    teacher.probabilities(pool)
    between = time.perf_counter()
    chunks = list(annotate(model, pool, passes, seed=child(seed, "votes", 1), machine=machine))
    return (time.perf_counter() - between) / (between - started), chunks


def trust(
    chunks: list[Chunk], labels: Sequence[str], truth: Truth, score: AnyScore
) -> dict[str, float]:
    """How many pseudo labels are right, and how well each figure tells which."""
    votes = joined([part for _, part in chunks])
    label = pseudo_label(votes)
    rows = [example for examples, _ in chunks for example in examples]
    gold = torch.tensor([labels.index(truth[row.uid]) for row in rows])
    right = label == gold  # [N]
    row_confidence, row_certainty = confidence(votes, label), certainty(votes)
    return {
        "labels right": float(right.double().mean()),
        "area of certainty": error_detection_area(row_certainty, right),
        "area of confidence": error_detection_area(row_confidence, right),
        "area of score": error_detection_area(score(row_confidence, row_certainty), right),
    }


def picked_right(lesson: Lesson, truth: Truth) -> float:
    """The share of the easy rows whose pseudo label is right."""
    return fmean(row.label == truth[row.example.uid] for row in lesson.easy)


def show(out: Path) -> None:
    """Means over the seeds, and what is lost against passes in all layers, seed by seed."""
    rows = []
    for place, here in lines.groups(lines.read(out), "task", "student", "pool", "passes").items():
        by_layers = {
            layers: {line["seed"]: line for line in mine}
            for (layers,), mine in lines.groups(here, "layers").items()
        }
        for layers, mine in by_layers.items():
            means = [f"{fmean(line[name] for line in mine.values()):.3f}" for name in FIGURES]
            lost = [difference(mine, by_layers.get("all", {}), area) for area in AREAS]
            rows.append((*place, layers, len(mine), *means, *lost))
    head = ("task", "student", "pool", "T", "layers", "seeds", *FIGURES)
    lines.show_table((*head, *(f"{area} - all" for area in AREAS)), rows)


def difference(mine: BySeed, full: BySeed, area: str) -> str:
    """Mean and standard deviation over the seeds that both have."""
    apart = spread([mine[seed][area] - full[seed][area] for seed in mine if seed in full] or [nan])
    return f"{apart.mean:+.3f} ± {apart.sd:.3f} (n = {apart.n})"


if __name__ == "__main__":
    main()
