"""Features of the teacher and of the frozen encoder, remembered for experiments on the head.

    python benchmarks/development/features.py DATA FEATURES --out lines.jsonl

For each seed and each base task: 16 labels a class, design rows and pool rows, all cut from train.
Test rows are never read. The teacher is that of recipe ``upet-head-adapter``, preset ``laptop``.
One .npz a task and seed. The gold labels of the pool are in a file of their own
(``*.audit.npz``): only audits and the cutting of skewed pools (``variants.py``) read it.
Skewed cuts have the same 16 labels a class, so their teacher is the base task's: they are cut
later, from the rows remembered here. A task and seed that has its file is not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from selftrain.data.fewshot import sample
from selftrain.data.read import Columns, read_labelled
from selftrain.data.rows import Example, Labelled, Notes, Split, uid_of
from selftrain.data.task import Task, from_labels
from selftrain.experiments.tasksets import by_hash, find
from selftrain.method.recipes import recipe
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone, load
from selftrain.model.build import build
from selftrain.model.pel import Adapter
from selftrain.training.job import Job
from selftrain.training.loop import train_teacher
from selftrain.training.machine import Machine
from selftrain.training.metrics import accuracy

TASKS = ("sst2", "agnews", "subj", "cr", "sst5", "dbpedia", "imdb", "yelp5")
SEEDS = (12, 21, 42, 87, 100)
SHOTS = 16
POOL = 3000
DESIGN = {"sst2": 1500, "agnews": 1500, "subj": 1500, "cr": 600, "imdb": 600, "yelp5": 400}
"""Design rows; the three that are cut askew have more, the three that are small have fewer."""
DESIGN_ELSE = 1000
SMALL_POOL = 2000
SMALL_DESIGN = {**DESIGN, "sst2": 1000, "agnews": 1000, "subj": 1000, "sst5": 800, "dbpedia": 800}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("features", type=Path)
    parser.add_argument("--out", type=Path, default=Path("features.jsonl"))
    parser.add_argument("--task", nargs="+", default=list(TASKS))
    parser.add_argument("--seed", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--rate", type=float, help="of the teacher; 2e-5 if not given")
    parser.add_argument("--steps", type=int, help="of the teacher; 60 if not given")
    parser.add_argument("--small", action="store_true", help="fewer pool and design rows")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.small:
        global POOL, DESIGN
        POOL, DESIGN = SMALL_POOL, SMALL_DESIGN
    options.features.mkdir(parents=True, exist_ok=True)
    backbone = load("minilm")
    name = teacher_name(options.rate, options.steps)
    for seed in options.seed:
        for task in options.task:
            path = options.features / f"{task}-{seed}-{name}.npz"
            if not path.exists():
                line = remember(options.data, options.features, path, task, seed, backbone, options)
                with options.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)


def teacher_name(rate: float | None, steps: int | None) -> str:
    """What tells this teacher from others in the name of a file."""
    return f"{rate or 2e-5:g}x{steps or 60}"


def cut(
    data: Path, name: str, seed: int
) -> tuple[Task, list[Labelled], list[Labelled], list[Labelled]]:
    """The task, its labels, pool and design rows; each text once, none with two labels."""
    rows = read_labelled(find(data / name, "train"), Columns(text="text"), notes=Notes())
    labels_by_uid: dict[str, set[str]] = {}
    for row in rows:
        labels_by_uid.setdefault(uid_of(row.example.text), set()).add(row.label)
    row_by_uid = {uid_of(row.example.text): row for row in rows}
    rows = by_hash([row for uid, row in row_by_uid.items() if len(labels_by_uid[uid]) == 1])
    task = from_labels((row.label for row in rows), name=name)
    design = rows[: DESIGN.get(name, DESIGN_ELSE)]
    rest = rows[len(design) :]
    gold, _ = sample(rest, SHOTS, seed)
    gold_uids = {row.example.uid for row in gold}
    return task, gold, [row for row in rest if row.example.uid not in gold_uids][:POOL], design


def remember(
    data: Path,
    folder: Path,
    path: Path,
    name: str,
    seed: int,
    backbone: Backbone,
    options: argparse.Namespace,
) -> dict[str, object]:
    """Train one teacher, write what it and the frozen encoder say of all rows."""
    task, gold, pool, design = cut(data, name, seed)
    method = recipe("upet-head-adapter")
    teacher = method.teacher
    rate, steps = options.rate or teacher.learning_rate, options.steps or teacher.steps
    teacher = replace(teacher, learning_rate=rate, steps=steps)
    method = replace(method, teacher=teacher)
    started = time.perf_counter()
    split = Split(tuple(gold), tuple(row.example for row in pool))
    job = Job(task, split, method, backbone, seed)
    model = train_teacher(job, Machine(threads=1)).model
    training_seconds = time.perf_counter() - started
    parts = {"gold": gold, "pool": pool, "design": design}
    examples_of = {part: [row.example for row in rows] for part, rows in parts.items()}
    arrays: dict[str, np.ndarray] = {}
    started = time.perf_counter()
    for part, examples in examples_of.items():
        out = model.read(examples)
        arrays[f"{part}_features"] = out.features.numpy()
        arrays[f"{part}_logits"] = out.logits.numpy()
    reading_seconds = time.perf_counter() - started
    started = time.perf_counter()
    frozen = frozen_vectors(
        folder,
        task,
        backbone,
        [example for examples in examples_of.values() for example in examples],
    )
    for part, examples in examples_of.items():
        arrays[f"{part}_frozen"] = np.stack([frozen[example.uid] for example in examples])
        arrays[f"{part}_uid"] = np.array([example.uid for example in examples])
    frozen_seconds = time.perf_counter() - started

    def classes(rows: list[Labelled]) -> np.ndarray:
        return np.array([task.labels.index(row.label) for row in rows])

    arrays |= {
        "gold_y": classes(gold),
        "design_y": classes(design),
        "labels": np.array(task.labels),
    }
    np.savez(path.with_suffix(".audit.npz"), pool_y=classes(pool))
    np.savez(path.with_suffix(".part.npz"), **arrays)
    path.with_suffix(".part.npz").rename(path)
    answers = torch.from_numpy(arrays["design_logits"]).argmax(1)
    design_accuracy = accuracy(answers, torch.from_numpy(arrays["design_y"]))
    return {
        "task": name,
        "seed": seed,
        "teacher": teacher_name(options.rate, options.steps),
        "design accuracy": design_accuracy,
        "rows": {part: len(rows) for part, rows in parts.items()},
        "seconds training": round(training_seconds, 1),
        "seconds reading": round(reading_seconds, 1),
        "seconds frozen": round(frozen_seconds, 1),
    }


def frozen_vectors(
    folder: Path, task: Task, backbone: Backbone, examples: list[Example]
) -> dict[str, np.ndarray]:
    """The pretrained encoder's pooled vector of each text, not scaled; computed once a task."""
    place = folder / f"{task.name}-frozen.npz"
    vector_by_uid: dict[str, np.ndarray] = {}
    if place.exists():
        with np.load(place) as file:
            vector_by_uid = dict(zip(file["uid"].tolist(), file["vectors"], strict=True))
    missing = [example for example in examples if example.uid not in vector_by_uid]
    if missing:
        encoder = build(task, backbone, Architecture(Adapter(width=1)), seed=0)
        vector_by_uid |= dict(
            zip(
                [example.uid for example in missing],
                encoder.read(missing).features.numpy(),
                strict=True,
            )
        )
        part = place.with_suffix(".part.npz")
        np.savez(
            part, uid=np.array(list(vector_by_uid)), vectors=np.stack(list(vector_by_uid.values()))
        )
        part.rename(place)
    return vector_by_uid


if __name__ == "__main__":
    main()
