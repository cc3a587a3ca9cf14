"""A whole fit of the default against the default of before, in one run.

    python benchmarks/default_fit.py DATA --task sst2 agnews

The teacher counts in both; so do the guard's readings. Each model is scored on the design rows
afterwards, out of time.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import lines
from cuts import SHOTS
from start import warm

from selftrain.data import task as tasks
from selftrain.experiments.tasksets import Taskset
from selftrain.method.recipes import DEFAULT, THE_PAPERS, recipe
from selftrain.model.backbone import load
from selftrain.training.evaluate import evaluate
from selftrain.training.job import Job
from selftrain.training.loop import last_accepted, self_train
from selftrain.training.machine import Machine

SEED = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/default_fit.jsonl"))
    options = parser.parse_args()
    machine = Machine(threads=options.threads)
    machine.torch_device()
    backbone = load("minilm")
    for turn in range(options.repeat):
        for name in options.task:
            taskset = Taskset.read(options.data, tasks.find(name))
            warm(taskset.task, taskset.split(SHOTS, SEED).labelled, backbone, machine)
            seconds: dict[str, float] = {}
            for method in (DEFAULT, THE_PAPERS):
                split = taskset.split(SHOTS, SEED)
                job = Job(taskset.task, split, recipe(method), backbone, SEED)
                started = time.perf_counter()
                rounds = list(self_train(job, machine=machine))
                seconds[method] = time.perf_counter() - started
                scores = [
                    evaluate(round_.model, taskset.design)["accuracy"]
                    for round_ in (rounds[0], last_accepted(rounds))
                ]
                line = {
                    "task": name,
                    "method": method,
                    "turn": turn,
                    "threads": options.threads,
                    "seconds": round(seconds[method], 1),
                    "seconds teacher": round(rounds[0].numbers["seconds"], 1),
                    "teacher and final on design rows": scores,
                }
                lines.append(options.out, line)
            ratio = seconds[THE_PAPERS] / seconds[DEFAULT]
            print(f"{name}: the default of before takes {ratio:.1f} times as long")


if __name__ == "__main__":
    main()
