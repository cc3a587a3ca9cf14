"""A whole fit against the same method written plainly (plain.py), side by side in one run.

    python benchmarks/whole_fit.py DATA --task sst2 agnews

One round of the laptop preset on a pool of --pool rows: ours, plain with each batch padded to its
longest row, and plain padded to 128 as the authors' code does. All three end with a model that is
scored on the design rows, so that a speed-up that lost the method would show. The order is turned
by --repeat, because machines are noisy.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import plain
from cuts import SHOTS

from selftrain import task as tasks
from selftrain.backbone import load
from selftrain.classifier import Classifier
from selftrain.evaluate import evaluate
from selftrain.loop import self_train
from selftrain.machine import Machine
from selftrain.recipes import LAPTOP
from selftrain.tasksets import Taskset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--pool", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/whole_fit.jsonl"))
    options = parser.parse_args()
    on = Machine(threads=options.threads)
    backbone, other = load("minilm"), load("minilm")  # what one remembers the other does not know
    on.accelerator()
    method = replace(LAPTOP, rounds=1, pool=options.pool, converged=0)
    for name in options.task:
        task = tasks.find(name)
        cut = Taskset.read(options.data, task)
        split = cut.split(SHOTS, options.seed)
        what = {"task": task, "split": split, "method": method, "seed": options.seed}

        def ours(what=what) -> Classifier:
            return list(self_train(**what, backbone=backbone, on=on))[-1].model

        def written_plainly(longest, what=what) -> Callable[[], Classifier]:
            return lambda: plain.self_train(**what, backbone=other, longest=longest)

        systems: dict[str, Callable[[], Classifier]] = {
            "ours": ours,
            "plain, padded to the longest of a batch": written_plainly(None),
            "plain, padded to 128": written_plainly(128),
        }
        for turn in range(options.repeat):
            order = list(systems)[turn % 3 :] + list(systems)[: turn % 3]
            seconds, accuracy = {}, {}
            for system in order:
                started = time.perf_counter()
                model = systems[system]()
                seconds[system] = round(time.perf_counter() - started, 1)
                accuracy[system] = evaluate(model, cut.design)["accuracy"]
                print(name, system, seconds[system], accuracy[system], flush=True)
            line = {
                "task": name,
                "pool": options.pool,
                "seed": options.seed,
                "seconds": seconds,
                "times ours": {s: round(seconds[s] / seconds["ours"], 2) for s in systems},
                "accuracy on design rows": accuracy,
            }
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
