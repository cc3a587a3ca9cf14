"""Against SetFit 1.2.0: the same encoder, labels and test rows; accuracy, and the time to pass it.

    selftrain bench DATA -o runs/paper --grid benchmarks/paper/first.toml
    python benchmarks/against_setfit.py DATA runs/paper --python SETFIT_ENVIRONMENT/bin/python

SetFit runs with its default settings in an environment of its own. Ours are the cells of a bench
with every round saved; the first round at least as good as SetFit's end says when it was passed.
Nothing is chosen by that. Loading libraries and encoders is in neither time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from itertools import accumulate
from pathlib import Path

from cuts import SEEDS, SHOTS

from selftrain import results, runs
from selftrain import task as tasks
from selftrain.backbone import minilm_folder
from selftrain.tasksets import Taskset

OURS = ("upet-head-adapter", "minilm", SHOTS, "test")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("bench", type=Path, help="the folder of a bench")
    parser.add_argument("--python", required=True, help="of an environment with setfit==1.2.0")
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/setfit.jsonl"))
    options = parser.parse_args()
    ours = {
        (cell.task, cell.seed): cell
        for cell in results.read(options.bench / "cells.jsonl")
        if (cell.method, cell.backbone, cell.shots, cell.on) == OURS
    }
    done = finished(options.out)
    for name in options.task:
        task = tasks.find(name)
        cut = Taskset.read(options.data, task)
        for seed in options.seeds:
            cell = ours.get((name, seed))
            if cell is None or (name, seed) in done:
                continue
            split, held = cut.split(SHOTS, seed), cut.test(cell.rows)
            seconds, accuracy = setfit(options, task.labels, split.labeled, held, seed)
            figures = [each["figures"] for each in runs.history(options.bench / cell.run)]
            ends = list(accumulate(each["seconds"] for each in figures))
            passed = [
                end
                for end, score in zip(ends, cell.by_round, strict=True)
                if score is not None and score >= accuracy
            ]
            line = {
                "task": name,
                "seed": seed,
                "rows": len(held),
                "setfit": {
                    "seconds": round(seconds, 1),
                    "accuracy": accuracy,
                    "threads": options.threads,
                },
                "ours": {
                    "seconds": [round(end, 1) for end in ends],
                    "accuracy": cell.by_round,
                    "threads": cell.threads,
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


def finished(out: Path) -> set[tuple[str, int]]:
    if not out.exists():
        return set()
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {(x["task"], x["seed"]) for x in lines}


if __name__ == "__main__":
    main()
