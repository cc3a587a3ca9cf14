"""A teacher's training beside other work, by how its waiting threads wait.

    python benchmarks/busy_neighbour.py

Each setting has a process of its own, because OpenMP reads its variables as it is loaded: MiniLM,
the teacher of the preset `laptop`, 32 made-up sentences. The processes train by turns, each for a
few seconds: alone, beside one or two endless loops, beside a training with torch's own setting,
and beside a training with the same setting. One turn goes through all of that; ratios are within a
turn. `others` is how many cores other programs took meanwhile: near 0 on an idle machine.
Linux only, about five minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import IO, Any

import lines

DEFAULT = "torch's own"
SETTINGS = {
    DEFAULT: {},
    "passive": {"OMP_WAIT_POLICY": "passive"},
    "short spin": {"GOMP_SPINCOUNT": "1000"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}
"""What is in the environment of a training."""
LOOPS = {"alone": 0, "one loop": 1, "two loops": 2}
NEIGHBOURS = (*LOOPS, DEFAULT, "the same setting")
LOOP = [sys.executable, "-c", "while True: pass"]
LONGEST = 60.0  # seconds that a neighbour trains at most
Cell = dict[str, Any]
JIFFY = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=SETTINGS)
    parser.add_argument("--neighbours", nargs="+", default=NEIGHBOURS, choices=NEIGHBOURS)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--window", type=float, default=2.0, help="seconds of a training")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/busy_neighbour.json"))
    parser.add_argument("--train", action="store_true", help="be one of the processes")
    options = parser.parse_args()
    if options.train:
        train_when_asked(sys.stdin)
        return
    with ExitStack() as stack:
        trainings = {name: stack.enter_context(training(name)) for name in options.settings}
        others = options.settings if "the same setting" in options.neighbours else []
        others = {*others, *({DEFAULT} & {*options.neighbours})}
        twins = {name: stack.enter_context(training(name)) for name in others}
        found: list[Cell] = []
        for turn in range(options.turns):
            for neighbour in options.neighbours:
                for name in options.settings[:: 1 if turn % 2 else -1]:
                    cell = measure(trainings[name], twins, neighbour, options.window)
                    found.append(cell | {"turn": turn})
            weights = {name: each.weights for name, each in trainings.items()}
            write(options.out, {"commit": lines.COMMIT, "weights": weights}, found)
    show(options.out)


def write(out: Path, facts: Cell, cells: list[Cell]) -> None:
    """A cell a line, after each turn: a script that was killed leaves the turns before."""
    text = ",\n".join(map(json.dumps, cells))
    out.write_text(f'{json.dumps(facts)[:-1]}, "cells": [\n{text}\n]}}\n', encoding="utf-8")


# ── one process that trains ──────────────────────────────────────────────────────────────────


def train_when_asked(asked: IO[str]) -> None:
    """Answer each number of seconds by the seconds a step took; first by a hash of the weights."""
    from quick import ON, TASK, sentences

    from selftrain.data.rows import Labelled, Lesson
    from selftrain.method.upet import LAPTOP
    from selftrain.model.backbone import load
    from selftrain.model.build import build
    from selftrain.training.fit import fit

    rows = sentences(32)
    gold = Lesson(tuple(Labelled(row, TASK.labels[i % 2]) for i, row in enumerate(rows)))
    tune, backbone = replace(LAPTOP.teacher, head_start="random"), load("minilm")
    model = build(TASK, backbone, tune.architecture, seed=1)
    fit(model, gold, replace(tune, steps=2), seed=1, machine=ON)
    tensors = (tensor.detach().numpy().tobytes() for tensor in model.parameters())
    print(hashlib.sha256(b"".join(tensors)).hexdigest()[:12], flush=True)
    for line in asked:
        clock = Clock(float(line))
        signal.signal(signal.SIGUSR1, clock.end_now)
        model = build(TASK, backbone, tune.architecture, seed=1)
        machine = replace(ON, progress=clock.until_the_end)
        fit(model, gold, replace(tune, steps=10_000), seed=1, machine=machine)
        print(clock.seconds_a_step, flush=True)


@dataclass
class Clock:
    """Ends a loop of steps after a time; a step that has begun is finished and counted."""

    window: float
    seconds_a_step: float = 0.0

    def until_the_end(self, steps: Iterable[int], _what: str, _total: int) -> Iterator[int]:
        started = time.perf_counter()
        for count, step in enumerate(steps, start=1):
            yield step
            spent = time.perf_counter() - started
            self.seconds_a_step = spent / count
            if spent > self.window:
                return

    def end_now(self, *_signal: object) -> None:
        self.window = 0.0


@dataclass(frozen=True)
class Training:
    """Such a process, from outside."""

    setting: str
    process: subprocess.Popen[str]
    weights: str
    """A hash of them after two steps."""

    def ask(self, window: float) -> None:
        print(window, file=self.process.stdin, flush=True)

    def answer(self) -> float:
        return float(reply(self.process))

    def end(self) -> None:
        self.process.send_signal(signal.SIGUSR1)
        self.answer()


def reply(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@contextmanager
def training(setting: str) -> Iterator[Training]:
    ours = {name: value for name, value in os.environ.items() if not is_of_openmp(name)}
    process = subprocess.Popen(
        [sys.executable, __file__, "--train"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ours | SETTINGS[setting],
    )
    try:
        yield Training(setting, process, weights=reply(process))  # the next starts when it waits
    finally:
        process.kill()
        process.wait()


def is_of_openmp(name: str) -> bool:
    return name.startswith(("OMP_", "GOMP_", "KMP_", "MKL_"))


# ── side by side ─────────────────────────────────────────────────────────────────────────────


def measure(trained: Training, twins: dict[str, Training], neighbour: str, window: float) -> Cell:
    """Seconds a step of one training beside a neighbour."""
    twin = twins.get(trained.setting if neighbour == "the same setting" else neighbour)
    with ExitStack() as stack:
        loops = [stack.enter_context(endless_loop()) for _ in range(LOOPS.get(neighbour, 0))]
        pids = [each.pid for each in loops] + [trained.process.pid]
        if twin:
            pids.append(twin.process.pid)
            twin.ask(LONGEST)
            time.sleep(1)  # until it trains
        machine, processes, started = busy(), used(pids), time.perf_counter()
        trained.ask(window)
        seconds = trained.answer()
        spent = time.perf_counter() - started
        others = (busy() - machine - (used(pids) - processes)) / spent
    if twin:
        twin.end()
    cell = {
        "setting": trained.setting,
        "neighbour": neighbour,
        "seconds a step": round(seconds, 4),
        "others": round(others, 2),
    }
    print(cell, flush=True)
    return cell


@contextmanager
def endless_loop() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(LOOP)
    try:
        time.sleep(0.2)  # until it turns
        yield process
    finally:
        process.kill()
        process.wait()


def busy() -> float:
    """Seconds all cores have worked since the machine started."""
    first = Path("/proc/stat").read_text("utf-8").splitlines()[0].split()[1:]
    user, nice, system, _idle, _waiting, interrupts, soft, *_ = map(int, first)
    return (user + nice + system + interrupts + soft) / JIFFY


def used(pids: list[int]) -> float:
    """Seconds of these processes on all cores."""
    stats = [Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2] for pid in pids]
    return sum(int(ticks) for stat in stats for ticks in stat.split()[11:13]) / JIFFY


def show(out: Path) -> None:
    """Medians over the turns of the seconds a step; how much longer torch's own setting takes."""
    cells = json.loads(out.read_text("utf-8"))["cells"]
    seconds = {(c["turn"], c["neighbour"], c["setting"]): c["seconds a step"] for c in cells}
    settings = list(dict.fromkeys(c["setting"] for c in sorted(cells, key=in_the_order)))
    rows = []
    for neighbour in dict.fromkeys(c["neighbour"] for c in cells):
        row: list[str] = []
        for setting in settings:
            here = {t: s for (t, *place), s in seconds.items() if place == [neighbour, setting]}
            row.append(f"{median(here.values()):.3f}")
            if DEFAULT in settings and setting != DEFAULT:
                ratios = [seconds[turn, neighbour, DEFAULT] / here[turn] for turn in here]
                row[-1] += f" ({median(ratios):.2f})"
        rows.append((neighbour, *row))
    lines.show_table(("beside", *settings), rows)


def in_the_order(cell: Cell) -> int:
    return list(SETTINGS).index(cell["setting"])


if __name__ == "__main__":
    main()
