"""A method on rows of the development tasks and of their skewed cuts: every round of it.

    python benchmarks/development/on_test_rows.py DATA --out on_test_rows.jsonl

16 labels a class, a pool of at most 3,000 rows from train without the design rows, at most 1,000
test rows. A cut drops rows of the pool and of the test rows by class when it is built; it has the
labels, and so the teacher, of its base task. ``--labels``, ``--foreign`` and ``--flipped`` make
the ends of the range: fewer labels a class, a fifth of foreign texts in the pool, wrong labels.
``--design`` scores design rows, on which decisions may be taken.
Lines that are in the file are not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import features
import numpy as np
import torch
import variants

from selftrain.data.fewshot import sample
from selftrain.data.read import Columns, read_labelled
from selftrain.data.rows import Example, Labelled, Notes, Split
from selftrain.data.task import Task
from selftrain.experiments.tasksets import by_hash, find
from selftrain.method.changes import merged
from selftrain.method.recipes import recipe
from selftrain.method.spec import Method, Tune, from_plain, to_plain
from selftrain.model.backbone import load
from selftrain.model.pel import Probe
from selftrain.training.estimate import Estimate, estimate
from selftrain.training.job import Job
from selftrain.training.loop import Round, last_accepted, self_train, train_teacher
from selftrain.training.machine import Machine
from selftrain.training.metrics import accuracy, debiased_calibration_error, macro_f1
from selftrain.training.probe import logits_of

TEST = 1000
SIGNALS = ("belief gain", "drift", "changed", "belief gain over teacher")
FOREIGN = "agnews"  # whose texts are foreign to the others; dbpedia's to it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("on_test_rows.jsonl"))
    parser.add_argument("--method", default="supcon")
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--frozen", action="store_true", help="the same rounds on a frozen encoder")
    parser.add_argument("--variant", nargs="+", default=list(variants.ALL))
    parser.add_argument("--seed", nargs="+", type=int, default=[12, 21, 42])
    parser.add_argument("--labels", type=int, default=features.SHOTS)
    parser.add_argument("--pool", type=int, default=features.POOL)
    parser.add_argument("--draw", help="rows of the pool that the rounds read, or all")
    parser.add_argument("--foreign", action="store_true", help="a fifth of the pool")
    parser.add_argument("--flipped", type=int, default=0, help="labels that are wrong")
    parser.add_argument("--design", action="store_true", help="score design rows, not test rows")
    parser.add_argument("--change", nargs="*", default=[], help="entries, as teacher.steps=120")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    features.POOL, features.SHOTS = options.pool, max(features.SHOTS, options.labels)
    done = (
        {key_of(line) for line in variants.lines_of(options.out)} if options.out.exists() else set()
    )
    backbone = load(options.backbone)
    method = recipe(options.method)
    if options.frozen:
        method = replace(method, name="frozen-probe", teacher=Tune(tuning=Probe()), rounds=0)
    method = changed(method, options.change)
    if options.draw:
        method = replace(method, pool="all" if options.draw == "all" else int(options.draw))
    for seed in options.seed:
        teachers: dict[str, Round] = {}
        for variant in sorted(options.variant, key=variants.base_of):
            condition = {
                "method": method.name,
                "variant": variant,
                "seed": seed,
                "labels": options.labels,
                "pool": options.pool,
                "draw": method.pool,
                "foreign": options.foreign,
                "flipped": options.flipped,
                "scored on": "design" if options.design else "test",
                "changes": options.change,
            }
            if options.backbone != "minilm":
                condition["backbone"] = options.backbone
            if key_of(condition) in done:
                continue
            task, split, test = rows_of(options.data, variant, seed, options)
            job = Job(task, split, method, backbone, seed)
            base = variants.base_of(variant)
            if base not in teachers:
                teachers = {base: train_teacher(job, Machine(threads=options.threads))}
            line = condition | measured(job, teachers[base], test, Machine(threads=options.threads))
            with options.out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


def key_of(line: dict[str, Any]) -> tuple[object, ...]:
    names = ("method", "variant", "seed", "labels", "pool", "foreign", "flipped")
    later = (
        line.get("scored on", "test"),
        line.get("backbone", "minilm"),
        *line.get("changes", []),
    )
    return (*(line[name] for name in names), line.get("draw", 2048), *later)


def changed(method: Method, changes: Sequence[str]) -> Method:
    """The method with entries changed, each given as ``place=value`` with a TOML value."""
    for change in changes:
        method = from_plain(merged(to_plain(method), tomllib.loads(change)))
    return method


def rows_of(
    data: Path, variant: str, seed: int, options: argparse.Namespace
) -> tuple[Task, Split, list[Labelled]]:
    """The task, what a run may see, and the test rows."""
    base = variants.base_of(variant)
    task, gold, pool, test = features.cut(data, base, seed)
    if not options.design:
        test = read_labelled(find(data / base, "test"), Columns(text="text"), notes=Notes())
        test = by_hash(test)
    if options.labels != features.SHOTS:
        gold, _ = sample(gold, options.labels, seed)
    if variant in variants.SKEWED:
        shares = variants.SKEWED[variant][1]
        pool, test = (askew(rows, task, shares) for rows in (pool, test))
    texts = [row.example for row in pool]
    if options.foreign:
        texts += foreign_texts(data, base, len(texts) // 4)
    test = spread(test, TEST) if variant in variants.SKEWED else test[:TEST]
    return task, Split(tuple(flipped(gold, task, options.flipped, seed)), tuple(texts)), test


def askew(rows: Sequence[Labelled], task: Task, shares: tuple[float, ...]) -> list[Labelled]:
    y = np.array([task.labels.index(row.label) for row in rows])
    return [rows[place] for place in variants.askew(y, shares)]


def spread(rows: Sequence[Labelled], most: int) -> list[Labelled]:
    """At most so many rows, evenly spaced: the first rows of a cut hold all of a rare class."""
    places = np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int)
    return [rows[place] for place in places]


def foreign_texts(data: Path, base: str, count: int) -> list[Example]:
    other = "dbpedia" if base == FOREIGN else FOREIGN
    rows = by_hash(read_labelled(find(data / other, "train"), Columns(text="text"), notes=Notes()))
    return [row.example for row in rows[:count]]


def flipped(gold: Sequence[Labelled], task: Task, count: int, seed: int) -> list[Labelled]:
    """The labelled rows with so many wrong labels."""
    random = Random(seed)
    wrong = set(random.sample(range(len(gold)), count))
    return [
        replace(row, label=random.choice([label for label in task.labels if label != row.label]))
        if place in wrong
        else row
        for place, row in enumerate(gold)
    ]


def measured(
    job: Job, teacher: Round, test: Sequence[Labelled], machine: Machine
) -> dict[str, object]:
    """Scores of every round on the test rows, verdicts, signals and seconds."""
    started = time.perf_counter()
    rounds = [teacher, *self_train(job, done=[teacher], machine=machine)]
    seconds = time.perf_counter() - started
    gold = torch.tensor([job.task.labels.index(row.label) for row in test])
    examples = [row.example for row in test]
    vectors: dict[int, torch.Tensor] = {}
    logits = {}
    for round_ in rounds:
        if round_.encoder not in vectors:
            vectors[round_.encoder] = round_.model.read(examples).features
        logits[round_.number] = logits_of(round_.model, vectors[round_.encoder])
    answers = {number: each.argmax(1) for number, each in logits.items()}
    final = last_accepted(rounds)
    right = {number: answer == gold for number, answer in answers.items()}
    return {
        "rows": {"pool": len(list(job.split.unlabelled)), "test": len(test)},
        "accuracy": [accuracy(answers[round_.number], gold) for round_ in rounds],
        "macro f1": [macro_f1(answers[r.number], gold, len(job.task.labels)) for r in rounds],
        "final": final.number,
        "won": int((right[final.number] & ~right[0]).sum()),
        "lost": int((~right[final.number] & right[0]).sum()),
        "refused": {round_.number: round_.why for round_ in rounds if not round_.accepted},
        "signals": [[round_.numbers.get(name) for name in SIGNALS] for round_ in rounds[1:]],
        **estimated(estimate(job, rounds, machine), logits, gold),
        "seconds teacher": round(teacher.numbers["seconds"], 1),
        "seconds rounds": round(seconds, 1),
    }


def estimated(
    found: Estimate | None, logits: Mapping[int, torch.Tensor], gold: torch.Tensor
) -> dict[str, object]:
    """What was expected of each round, and how true its probabilities are, bare and calibrated."""
    if found is None:
        return {}
    return {
        "hits": [found.hits, found.hit_rows],
        "expected": [
            {**asdict(each.expected), "temperature": each.temperature} for each in found.rounds
        ],
        "calibration error": [
            [
                debiased_calibration_error((logits[each.number] / temperature).softmax(1), gold)
                for temperature in (1.0, each.temperature)
            ]
            for each in found.rounds
        ],
    }


if __name__ == "__main__":
    main()
