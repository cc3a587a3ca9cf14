"""Against SetFit 1.2.0: the same encoder, labels and test rows; accuracy, and the time to pass it.

    selftrain bench DATA -o runs/paper --grid benchmarks/paper/first.toml
    python benchmarks/against_setfit.py DATA runs/paper/cells.jsonl \\
        --python SETFIT_ENVIRONMENT/bin/python

SetFit runs with its default settings in an environment of its own. Our accuracies, round by round,
are the cells of a bench. Our times are taken here, beside SetFit's: one whole run for each task,
with the first seed, says when each round is saved; the work is the same with every seed. The first
round that is better than SetFit's end says when it was passed. Nothing is chosen by that. Loading
libraries and encoders is in neither time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from math import inf, isinf
from pathlib import Path
from statistics import median

import lines
from cuts import SEEDS, SHOTS
from start import warm

from selftrain.data import task as tasks
from selftrain.data.rows import Labelled, Split
from selftrain.data.task import Task
from selftrain.experiments import results
from selftrain.experiments.results import Result
from selftrain.experiments.stats import spread
from selftrain.experiments.tasksets import Taskset
from selftrain.method.recipes import recipe
from selftrain.model.backbone import load
from selftrain.model.embedded import minilm_folder
from selftrain.runs.train import train
from selftrain.training.job import Job
from selftrain.training.machine import Machine

METHOD = "upet-head-adapter"
OURS = (METHOD, "minilm", SHOTS, "test", "laptop")
TIMED, BESIDE = "ours timed", "beside setfit"
KEY = ("kind", "task", "seed", "threads")


def main() -> None:
    options = arguments()
    cells = ours(options)
    machine = Machine(threads=options.threads)
    machine.torch_device()
    done = lines.measured(options.out, *KEY)
    for name in options.task:
        task = tasks.find(name)
        cut = Taskset.read(options.data, task)
        if (TIMED, name, SEEDS[0], options.threads) not in done:
            ends = seconds_of_rounds(task, cut.split(SHOTS, SEEDS[0]), machine)
            line = {"kind": TIMED, "task": name, "seed": SEEDS[0], "saved after": ends}
            lines.append(options.out, line)
        for seed in options.seeds:
            cell = cells.get((name, seed))
            if cell is None or (BESIDE, name, seed, options.threads) in done:
                continue
            held = cut.test(cell.rows)
            spent, accuracy = setfit(options, task, cut.split(SHOTS, seed).labelled, held, seed)
            line = {
                "kind": BESIDE,
                "task": name,
                "seed": seed,
                "rows": len(held),
                "setfit": {"seconds": round(spent, 1), "accuracy": accuracy},
                "ours": beside(cell, saved_after(options.out, name, options.threads), accuracy),
            }
            lines.append(options.out, line)
    show(options.out)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("cells", type=Path, help="the cells.jsonl of a bench")
    parser.add_argument("--python", required=True, help="of an environment with setfit==1.2.0")
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/setfit.jsonl"))
    return parser.parse_args()


def ours(options: argparse.Namespace) -> dict[tuple[str, int], Result]:
    """Our cells by task and seed; one that is missing is told, and none at all is an error."""
    found = {
        (cell.task, cell.seed): cell
        for cell in results.read(options.cells)
        if (cell.method, cell.backbone, cell.shots, cell.scored_on, cell.preset) == OURS
    }
    wanted = [(name, seed) for name in options.task for seed in options.seeds]
    for name, seed in wanted:
        if (name, seed) not in found:
            print(f"{options.cells} has no cell of {name} with seed {seed}", file=sys.stderr)
    if not found.keys() & set(wanted):
        sys.exit(f"error: {options.cells} has no cell of {', '.join(map(str, OURS))}")
    return found


def seconds_of_rounds(task: Task, split: Split, machine: Machine) -> list[float]:
    """When the teacher and each round of a whole run are saved; none is left out as converged."""
    warm(task, split.labelled, load("minilm"), machine)
    method, backbone = replace(recipe(METHOD), converged=0), load("minilm")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "run")
        started = time.perf_counter()
        rounds = train(folder, Job(task, split, method, backbone, SEEDS[0]), machine)
        return [round(time.perf_counter() - started, 1) for _ in rounds]


def saved_after(out: Path, task: str, threads: int) -> list[float]:
    """What was timed for a task."""
    timed = lines.groups(lines.read(out), *KEY)[TIMED, task, SEEDS[0], threads]
    return timed[-1]["saved after"]


def beside(cell: Result, ends: Sequence[float], accuracy: float) -> lines.Line:
    """Our accuracies of one seed, and when a round passed SetFit's; a seed may have converged."""
    passed = [
        end
        for end, score in zip(ends, cell.by_round, strict=False)
        if score is not None and score > accuracy
    ]
    return {
        "saved after": ends,
        "timed with seed": SEEDS[0],
        "accuracy": cell.by_round,
        "kept": cell.final_round,
        "end": cell.accuracy,
        "passed after": passed[0] if passed else None,
    }


def setfit(
    options: argparse.Namespace,
    task: Task,
    labelled: Sequence[Labelled],
    held: Sequence[Labelled],
    seed: int,
) -> tuple[float, float]:
    """Its seconds of training, and its accuracy."""
    with tempfile.TemporaryDirectory() as place:
        job = {
            "model": str(minilm_folder()),
            "classes": list(task.labels),
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
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )
    found = json.loads(done.stdout.splitlines()[-1])
    right = [answer == row.label for answer, row in zip(found["answers"], held, strict=True)]
    return found["seconds"], sum(right) / len(right)


def show(out: Path) -> None:
    """Both over the seeds; a seed with which SetFit was never passed counts as one without end."""
    rows = []
    for (kind, task, threads), mine in lines.groups(
        lines.read(out), "kind", "task", "threads"
    ).items():
        if kind != BESIDE:
            continue
        theirs, our = [line["setfit"] for line in mine], [line["ours"] for line in mine]
        above = sum(a["end"] > b["accuracy"] for a, b in zip(our, theirs, strict=True))
        passed = [inf if each["passed after"] is None else each["passed after"] for each in our]
        rows.append(
            (
                task,
                threads,
                len(mine),
                spread([100 * each["accuracy"] for each in theirs]),
                spread([100 * each["end"] for each in our]),
                above,
                f"{median(each['seconds'] for each in theirs):.1f}",
                f"{median(passed):.1f}",
                sum(map(isinf, passed)),
            )
        )
    head = ("task", "threads", "seeds", "SetFit", "ours", "ours above")
    lines.show_table((*head, "SetFit, s", "passed after, s", "never passed"), rows)


if __name__ == "__main__":
    main()
