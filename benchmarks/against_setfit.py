"""Against SetFit 1.2.0: the same encoder, labels and test rows; accuracy, and the time to pass it.

    python benchmarks/against_setfit.py DATA --python SETFIT_ENVIRONMENT/bin/python

SetFit runs with its default settings in an environment of its own. Ours is the laptop preset with
every round saved; after both have ended each round is scored, and the first one at least as good as
SetFit's end says when it was passed. Nothing is chosen by that. Scored on the design rows, or with
--test on the test rows, once. Loading libraries and encoders is in neither time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

from cuts import SEEDS, SHOTS, TEST

from selftrain import task as tasks
from selftrain.backbone import load, minilm_folder
from selftrain.evaluate import evaluate
from selftrain.loop import self_train
from selftrain.machine import Machine
from selftrain.recipes import LAPTOP
from selftrain.tasksets import Taskset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--python", required=True, help="of an environment with setfit==1.2.0")
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/setfit.jsonl"))
    options = parser.parse_args()
    on, backbone = Machine(threads=options.threads), load("minilm")
    done = finished(options.out)
    for name in options.task:
        task = tasks.find(name)
        cut = Taskset.read(options.data, task)
        held = cut.test(TEST) if options.test else cut.design
        for seed in options.seeds:
            if (name, seed, options.test) in done:
                continue
            split = cut.split(SHOTS, seed)
            theirs = setfit(options, task.labels, split.labeled, held, seed)
            models, ends = [], []
            started = time.perf_counter()
            for round_ in self_train(task, split, LAPTOP, backbone=backbone, seed=seed, on=on):
                models.append(round_.model)
                ends.append(time.perf_counter() - started)
            scores = [evaluate(model, held)["accuracy"] for model in models]
            passed = [end for end, score in zip(ends, scores, strict=True) if score >= theirs[1]]
            line = {
                "task": name,
                "seed": seed,
                "test": options.test,
                "setfit": {"seconds": round(theirs[0], 1), "accuracy": theirs[1]},
                "ours": {
                    "seconds": [round(end, 1) for end in ends],
                    "accuracy": scores,
                    "passed after": round(passed[0], 1) if passed else None,
                },
            }
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


def setfit(options, classes, labelled, held, seed) -> tuple[float, float]:
    """Its seconds of training, and its accuracy."""
    with tempfile.TemporaryDirectory() as place:
        job = {
            "model": str(minilm_folder()),
            "classes": list(classes),
            "texts": [row.example.text for row in labelled],
            "labels": [row.label for row in labelled],
            "asked": [row.example.text for row in held],
            "seed": seed,
            "threads": options.threads,
            "place": place,
        }
        inner = Path(__file__).with_name("setfit_alone.py")
        done = subprocess.run(
            [options.python, inner],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            check=True,
        )
    found = json.loads(done.stdout.splitlines()[-1])
    right = [answer == row.label for answer, row in zip(found["answers"], held, strict=True)]
    return found["seconds"], sum(right) / len(right)


def finished(out: Path) -> set[tuple[str, int, bool]]:
    if not out.exists():
        return set()
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {(x["task"], x["seed"], x["test"]) for x in lines}


if __name__ == "__main__":
    main()
