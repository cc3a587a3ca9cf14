"""A whole fit against the same method written plainly (plain.py), side by side in one run.

    python benchmarks/whole_fit.py DATA --task sst2 agnews

The laptop preset with its three rounds: ours; ours with an adapter in the top 3 layers over a
remembered trunk (another student: what that costs in accuracy is measured by one_round.py and
paired.py); plain with each batch padded to its longest row; plain padded to 128 as the authors'
code does. Teacher steps, student steps and pool are divided by --scale. The time of every phase is
proportional to one of them, so the ratios stay; only the 256 rows on which ours compares teacher
and student are as many as ever, which counts against us. --scale 1 is the preset itself. No round
ends the loop early, so all do the same work. Each ends with a model that is scored on the design
rows: a speed-up that lost the method would show. The order is turned from turn to turn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, median

import lines
import plain
from cuts import SHOTS
from start import warm

from selftrain.data import task as tasks
from selftrain.data.rows import Split
from selftrain.data.task import Task
from selftrain.experiments.tasksets import Taskset
from selftrain.method.spec import Method, Tune
from selftrain.method.upet import LAPTOP
from selftrain.model.backbone import Backbone, load
from selftrain.model.classifier import Classifier
from selftrain.training.evaluate import evaluate
from selftrain.training.job import Job
from selftrain.training.loop import self_train
from selftrain.training.machine import Machine

SEED = 12
OURS = "ours"
SCORE = "accuracy on design rows"
KEY = ("task", "system", "turn", "scale", "threads")
Fit = Callable[[Backbone], Classifier]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--scale", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/whole_fit.jsonl"))
    options = parser.parse_args()
    machine = Machine(threads=options.threads)
    machine.torch_device()
    done = lines.measured(options.out, *KEY)
    for name in options.task:
        task = tasks.find(name)
        cut = Taskset.read(options.data, task)
        split = cut.split(SHOTS, SEED)
        systems = systems_of(task, split, scaled(options.scale), machine)
        turns = [
            (turn, system)
            for turn in range(options.repeat)
            for system in turned(list(systems), turn)
            if (name, system, turn, options.scale, lines.threads()) not in done
        ]
        if turns:
            warm(task, split.labelled, load("minilm"), machine)
        for turn, system in turns:
            backbone = load("minilm")  # of its own: nothing is remembered from another system
            started = time.perf_counter()
            model = systems[system](backbone)
            seconds = time.perf_counter() - started
            line = {
                "task": name,
                "system": system,
                "turn": turn,
                "scale": options.scale,
                "seconds": round(seconds, 1),
                SCORE: evaluate(model, cut.design)["accuracy"],
            }
            lines.append(options.out, line)
    show(options.out)


def scaled(scale: int) -> Method:
    """The laptop preset with its work divided, and all its rounds."""

    def shorter(how: Tune) -> Tune:
        assert how.steps is not None
        return replace(how, steps=how.steps // scale)

    assert isinstance(LAPTOP.pool, int)
    return replace(
        LAPTOP,
        teacher=shorter(LAPTOP.teacher),
        student=tuple(map(shorter, LAPTOP.student)),
        pool=LAPTOP.pool // scale,
        converged=0,
    )


def systems_of(task: Task, split: Split, method: Method, machine: Machine) -> dict[str, Fit]:
    """Who is timed, by name."""
    first = method.student[0]
    student = replace(first, tuning=replace(first.tuning, layers=3))
    top_3 = replace(method, student=(student,))
    plainly = partial(plain.self_train, task, split, method, seed=SEED)
    return {
        OURS: partial(ours, task, split, method, machine=machine),
        "ours, top 3 layers, trunk remembered": partial(ours, task, split, top_3, machine=machine),
        "plain, padded to the longest of a batch": partial(plainly, longest=None),
        "plain, padded to 128": partial(plainly, longest=128),
    }


def ours(
    task: Task, split: Split, method: Method, backbone: Backbone, *, machine: Machine
) -> Classifier:
    """The student of the last round; a trunk is planned for and filled by the loop itself."""
    rounds = list(self_train(Job(task, split, method, backbone, SEED), machine=machine))
    assert not any(round_.last for round_ in rounds), f"broke off: {rounds[-1].why}"
    return rounds[-1].model


def turned(systems: list[str], turn: int) -> list[str]:
    """Another one first in each turn."""
    first = turn % len(systems)
    return systems[first:] + systems[:first]


def show(out: Path) -> None:
    """Medians over the turns; how much longer each takes than ours, turn by turn."""
    rows = []
    for place, here in lines.groups(lines.read(out), "task", "scale", "threads").items():
        for (system,), mine in lines.groups(here, "system").items():
            seconds = f"{median(line['seconds'] for line in mine):.1f}"
            ratio = f"{lines.times(here, system, OURS):.2f}"
            score = f"{100 * fmean(line[SCORE] for line in mine):.1f}"
            rows.append((*place, system, len(mine), seconds, ratio, score))
    head = ("task", "scale", "threads", "system", "turns", "seconds", "times ours", SCORE)
    lines.show_table(head, rows)


if __name__ == "__main__":
    main()
