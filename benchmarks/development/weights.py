"""Teachers whose weights lie between others: pretrained, by contrast, by cross entropy.

    python benchmarks/development/weights.py DATA --out weights.jsonl

Of each mixture of weights the head is a regression on the labelled rows and those of class names.
Five probe rounds follow, without a guard; a skewed cut takes rows of the same vectors. Scored on
at most 800 design rows, with a pool of 1,000. Lines that are in the file are not computed again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import features
import numpy as np
import torch
import variants
from probe_rounds import DEFAULT, rounds

from selftrain.data.rows import Labelled, Split
from selftrain.method.recipes import recipe
from selftrain.model.backbone import Backbone, load
from selftrain.model.classifier import Classifier
from selftrain.training.class_names import class_name_rows
from selftrain.training.job import Job, new_model
from selftrain.training.loop import train_teacher
from selftrain.training.machine import Machine
from selftrain.training.regression import logistic

MIXTURES: dict[str, dict[str, float]] = {
    "pretrained": {"pretrained": 1.0},
    "cross entropy": {"cross entropy": 1.0},
    "contrast": {"contrast": 1.0},
    "contrast, three quarters of the way": {"pretrained": 0.25, "contrast": 0.75},
    "contrast, half of the way": {"pretrained": 0.5, "contrast": 0.5},
    "contrast and cross entropy": {"contrast": 0.5, "cross entropy": 0.5},
    "contrast, two seeds": {"contrast": 0.5, "contrast, other seed": 0.5},
}
PROBE = replace(DEFAULT, per_row=1000.0, rounds=5, prior="half")
POOL, DESIGN = 1000, 800
Weights = Mapping[str, torch.Tensor]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("weights.jsonl"))
    parser.add_argument("--task", nargs="+", default=["sst2", "subj", "agnews", "cr"])
    parser.add_argument("--seed", nargs="+", type=int, default=[12, 21])
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    features.POOL, features.DESIGN_ELSE = POOL, DESIGN
    features.DESIGN = {name: min(size, DESIGN) for name, size in features.SMALL_DESIGN.items()}
    lines = variants.lines_of(options.out) if options.out.exists() else []
    done = {(line["variant"], line["seed"]) for line in lines}
    backbone = load("minilm")
    for seed in options.seed:
        for task in options.task:
            if (task, seed) not in done:
                machine = Machine(threads=options.threads)
                for line in lines_of(options.data, task, seed, backbone, machine):
                    with options.out.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                    print(json.dumps(line), flush=True)


def lines_of(
    data: Path, name: str, seed: int, backbone: Backbone, machine: Machine
) -> Iterator[dict[str, Any]]:
    """The accuracy of every mixture on the task and on its cuts; the task itself comes last."""
    task, gold, pool, design = features.cut(data, name, seed)
    split = Split(tuple(gold), tuple(row.example for row in pool))
    contrast = replace(recipe("supcon").teacher, interpolation=None)
    by_contrast = replace(recipe("supcon"), teacher=contrast)
    model = new_model(Job(task, split, by_contrast, backbone, seed), contrast, 0)
    names = class_name_rows(model, gold)
    ends = {"pretrained": weights_of(model)}
    for place, method, draw in (
        ("contrast", by_contrast, seed),
        ("contrast, other seed", by_contrast, seed + 1000),
        ("cross entropy", recipe("head-ft"), seed),
    ):
        job = Job(task, split, method, backbone, draw)
        ends[place] = weights_of(train_teacher(job, machine).model)
    cuts = [cut for cut, (base, _) in variants.SKEWED.items() if base == name]
    classes = {label: c for c, label in enumerate(task.labels)}
    parts = {"gold": [*gold, *names], "pool": pool, "design": design}
    y = {part: np.array([classes[row.label] for row in rows]) for part, rows in parts.items()}
    scores: dict[str, dict[str, list[float]]] = {}
    for mixture, shares in MIXTURES.items():
        mix(model, ends, shares)
        x = {part: read(model, rows) for part, rows in parts.items()}
        for variant in (*cuts, name):
            at = {part: rows_of(variant, y[part]) for part in ("pool", "design")}
            scores.setdefault(variant, {})[mixture] = scored(x, y, at, len(gold))
    for variant, by_mixture in scores.items():
        yield {"variant": variant, "seed": seed, "class-name rows": len(names)} | by_mixture


def weights_of(model: Classifier) -> Weights:
    return {name: tensor.clone() for name, tensor in model.encoder.state_dict().items()}


def mix(model: Classifier, ends: Mapping[str, Weights], shares: Mapping[str, float]) -> None:
    """Set the encoder to the mean of several, by these shares."""
    model.encoder.load_state_dict(
        {
            name: sum(share * ends[place][name] for place, share in shares.items())
            if tensor.is_floating_point()
            else tensor
            for name, tensor in ends["pretrained"].items()
        }
    )


def read(model: Classifier, rows: Sequence[Labelled]) -> np.ndarray:
    return np.asarray(model.read([row.example for row in rows]).features.numpy())


def rows_of(variant: str, y: np.ndarray) -> np.ndarray:
    """The places of the rows of a task or of its cut."""
    if variant not in variants.SKEWED:
        return np.arange(len(y))
    return variants.askew(y, variants.SKEWED[variant][1])


def scored(
    x: Mapping[str, np.ndarray],
    y: Mapping[str, np.ndarray],
    at: Mapping[str, np.ndarray],
    gold: int,
) -> list[float]:
    """Accuracy of the head, and after the probe rounds, in points."""
    head = logistic(
        torch.from_numpy(x["gold"]), torch.from_numpy(y["gold"]), y["gold"].max() + 1, strength=1.0
    )

    def rows(vectors: np.ndarray) -> variants.Rows:
        return variants.Rows(vectors, head(torch.from_numpy(vectors)).numpy(), vectors)

    truth = y["design"][at["design"]]
    run = variants.Run(
        variant="",
        seed=0,
        gold=rows(x["gold"][:gold]),
        gold_y=y["gold"][:gold],
        pool=rows(x["pool"][at["pool"]]),
        design=rows(x["design"][at["design"]]),
        design_y=truth,
        pool_at=at["pool"],
    )
    _, beliefs, _ = rounds(run, PROBE)
    return [round(100 * float((beliefs[n].argmax(1) == truth).mean()), 2) for n in (0, -1)]


if __name__ == "__main__":
    main()
