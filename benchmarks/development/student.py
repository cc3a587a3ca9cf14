"""One full student of the labels that probe rounds refined, remembered like a teacher.

    python benchmarks/development/student.py DATA FEATURES --variant sst2 --seed 12

The teacher's probe rounds (five, proportional, C = 1000 / rows, prior half held) label the pool.
The surest 95 % of each predicted class are learnt from by their hard labels, beside the gold rows:
all parameters, from the pretrained weights, 160 steps of 16 rows (a quarter of them gold) at 5e-5.
Its features are written like a teacher's, so that probe_rounds.py can go on with them:
--teacher student.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import features
import numpy as np
import torch
import variants
from probe_rounds import DEFAULT, chosen, rounds, scores

from selftrain.data.rows import Labelled, Lesson
from selftrain.method.recipes import recipe
from selftrain.model.backbone import load
from selftrain.model.build import build
from selftrain.seeds import child
from selftrain.training.fit import fit
from selftrain.training.machine import Machine

PROBE = replace(DEFAULT, per_row=1000.0, rounds=5, prior="half")
SHARE = 0.95


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("features", type=Path)
    parser.add_argument("--variant", nargs="+", required=True)
    parser.add_argument("--seed", nargs="+", type=int, required=True)
    parser.add_argument("--out", type=Path, default=Path("student.jsonl"))
    parser.add_argument("--teacher", default="2e-05x60")
    options = parser.parse_args()
    torch.set_num_threads(1)
    backbone = load("minilm")
    name = "student" if options.teacher == "2e-05x60" else f"student-of-{options.teacher}"
    for seed in options.seed:
        for variant in options.variant:
            path = options.features / f"{variant}-{seed}-{name}.npz"
            if path.exists():
                continue
            run = variants.load(options.features, variant, seed, options.teacher)
            base = variants.SKEWED[variant][0] if variant in variants.SKEWED else variant
            task, gold, pool, design = features.cut(options.data, base, seed)
            pool_rows = [pool[i].example for i in run.pool_at]
            design_at = np.arange(len(design))
            if variant in variants.SKEWED:
                y = np.array([task.labels.index(row.label) for row in design])
                design_at = variants.askew(y, variants.SKEWED[variant][1])
            design_rows = [design[i] for i in design_at]
            del pool, design
            pool_p, design_p, _ = rounds(run, PROBE)
            at = chosen(pool_p[-1], SHARE, "prop")
            label = pool_p[-1].argmax(1)
            easy = tuple(Labelled(pool_rows[i], task.labels[label[i]]) for i in at)
            tuning = replace(
                recipe("upet-head-adapter").teacher, steps=160, learning_rate=5e-5, gold_share=0.25
            )
            model = build(task, backbone, tuning.architecture, seed=child(seed, "student", 1))
            started = time.perf_counter()
            lesson = Lesson(gold=tuple(gold), easy=easy)
            fitted = fit(
                model, lesson, tuning, seed=child(seed, "fit", 1), machine=Machine(threads=1)
            )
            seconds = time.perf_counter() - started
            arrays = {
                "gold_y": run.gold_y,
                "design_y": run.design_y,
                "labels": np.array(task.labels),
            }
            for part, examples, frozen in (
                ("gold", [row.example for row in gold], run.gold.frozen),
                ("pool", pool_rows, run.pool.frozen),
                ("design", [row.example for row in design_rows], run.design.frozen),
            ):
                out = model.read(examples)
                arrays[f"{part}_features"] = out.features.numpy()
                arrays[f"{part}_logits"] = out.logits.numpy()
                arrays[f"{part}_frozen"] = frozen
            audit = variants.pool_gold(options.features, run, options.teacher)
            np.savez(path.with_suffix(".audit.npz"), pool_y=audit)
            np.savez(path.with_suffix(".part.npz"), **arrays)
            path.with_suffix(".part.npz").rename(path)
            y = run.design_y
            line = {
                "variant": variant,
                "seed": seed,
                "of": options.teacher,
                "teacher": scores(design_p[0].argmax(1), y, run.classes),
                "probe": scores(design_p[-1].argmax(1), y, run.classes),
                "student": scores(arrays["design_logits"].argmax(1), y, run.classes),
                "easy rows": len(easy),
                "late loss": fitted.loss,
                "seconds": round(seconds, 1),
            }
            with options.out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
