"""The memory and the seconds of a training step, with and without `--checkpointing`.

    python benchmarks/step_memory.py

Everything moves in the default encoder; a step has 32 rows of 256 tokens. Each way is a process of
its own, by turns. Megabytes are those that its peak rises above the peak before the first step.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import lines
from flat_memory import peak

OUT = lines.ROOT / "benchmarks" / "results" / "step_memory.jsonl"
WAYS = {"as usual": False, "checkpointing": True}
ROWS, WORDS, STEPS = 32, 300, 4


def main() -> None:
    """Measure what has no line, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--one", nargs=2, metavar=("WAY", "TURN"), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if options.one:
        way, turn = options.one
        lines.append(options.out, measured(way, int(turn), options.threads))
        return
    # Nothing heavy is imported here: a new process starts with the peak of the one that made it.
    done = lines.measured(options.out, "system", "turn")
    for turn in range(options.turns):
        for way in WAYS:
            if (way, turn) not in done:
                again = [*sys.argv, "--one", way, str(turn)]
                subprocess.run([sys.executable, *again], check=True)
    lines.show_table(("", "megabytes above the start", "seconds a step"), table(options.out))


def table(out: Path) -> list[tuple[str, str, str]]:
    """The medians of each way."""
    groups = lines.groups(lines.read(out), "system")
    return [
        (
            way,
            f"{median(line['megabytes'] for line in groups[way,]):.0f}",
            f"{median(line['seconds'] / line['steps'] for line in groups[way,]):.1f}",
        )
        for way in WAYS
    ]


def measured(way: str, turn: int, threads: int) -> lines.Line:
    """One way, in this process."""
    import torch

    from selftrain.data.rows import Labelled, Lesson, examples
    from selftrain.data.task import Task
    from selftrain.method.spec import Tune
    from selftrain.model.architecture import Architecture
    from selftrain.model.backbone import load
    from selftrain.model.build import build
    from selftrain.model.pel import Full
    from selftrain.training.fit import fit
    from selftrain.training.machine import Machine

    torch.set_num_threads(threads)
    machine = Machine(threads=threads, checkpointing=WAYS[way])
    model = build(Task("t", ("good", "bad")), load("minilm"), Architecture(Full()), seed=1)
    texts = examples([" ".join([f"film {number}", *["good"] * WORDS]) for number in range(ROWS)])
    model.read(texts[:2])
    gold = tuple(Labelled(text, ("good", "bad")[at % 2]) for at, text in enumerate(texts))
    tune = Tune(batch_size=ROWS, steps=STEPS)
    before, started = peak(), time.perf_counter()
    fit(model, Lesson(gold), tune, seed=1, machine=machine)
    seconds = time.perf_counter() - started
    found = {"megabytes": peak() - before, "seconds": seconds, "steps": STEPS, "rows": ROWS}
    return {"system": way, "turn": turn, **found}


if __name__ == "__main__":
    main()
