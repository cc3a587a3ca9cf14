"""How many labels of a large class a teacher's encoder should learn: teachers alone.

    python benchmarks/development/label_caps.py DATA --out label_caps.jsonl

The default on the ``uneven`` labels of ``label_shares.py``, design rows. A factor is how many times
as many labels of a class as of the rarest one are learnt, at least eight; 9 learns all. Lines that
are there stay.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

import label_shares
import torch
import variants

from selftrain.data.rows import Split
from selftrain.method.recipes import recipe
from selftrain.model.backbone import load
from selftrain.training import balance
from selftrain.training.evaluate import evaluate
from selftrain.training.job import Job
from selftrain.training.loop import self_train
from selftrain.training.machine import Machine

KEY = ("variant", "seed", "factor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("label_caps.jsonl"))
    parser.add_argument("--variant", nargs="+", default=["sst2", "agnews", "sst5", "yelp5"])
    parser.add_argument("--seed", nargs="+", type=int, default=[12])
    parser.add_argument("--factor", nargs="+", type=float, default=[1.0, 1.5, 2.0, 2.5, 9.0])
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    machine, backbone, method = Machine(threads=options.threads), load("minilm"), recipe("supcon")
    lines = variants.lines_of(options.out) if options.out.exists() else []
    known = {tuple(line[name] for name in KEY) for line in lines}
    for variant in options.variant:
        for seed in options.seed:
            task, gold, pool, design = label_shares.rows(options.data, variant, seed, "uneven")
            labelled = tuple(label_shares.labels_of(task, gold, pool, "uneven", seed))
            split = Split(labelled, tuple(row.example for row in pool))
            for factor in options.factor:
                if (variant, seed, factor) in known:
                    continue
                balance.most_of_a_class = partial(most, factor=factor)
                teacher = next(
                    iter(self_train(Job(task, split, method, backbone, seed), machine=machine))
                )
                scores = evaluate(teacher.model, design, machine)
                line = dict(zip(KEY, (variant, seed, factor), strict=True)) | {
                    "teacher": round(100 * scores["accuracy"], 2),
                    "F1": round(100 * scores["macro_f1"], 2),
                }
                with options.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")


def most(rarest: int, classes: int, *, factor: float) -> int:
    """In place of ``most_of_a_class``: a factor that does not depend on the classes."""
    del classes
    return max(balance.LEAST, round(factor * rarest))


if __name__ == "__main__":
    main()
