"""What `fit --dry-run` predicts, against what the run then takes.

    python benchmarks/dry_run.py DATA --task sst2 subj agnews cr imdb

For each task 16 labels a class and 1,100 texts; first the dry run, then the run, each a process of
its own as a user starts it: loading counts, and the dry run cannot warm the run up. A line has the
seconds of both, by stage too, the peak memory and the bytes of the run folder. Alone on the
machine; lines that are there are not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lines
from cuts import SHOTS

from selftrain.data.fewshot import sample
from selftrain.data.read import Columns, read_labelled
from selftrain.data.rows import Notes
from selftrain.data.write import write_table
from selftrain.experiments.tasksets import by_hash, find

TASKS = ("sst2", "subj", "agnews", "cr", "imdb")
SEED = 12


@dataclass(frozen=True)
class Measured:
    """What a command printed as JSON, and what it took."""

    printed: dict[str, Any]
    seconds: float
    memory: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=list(TASKS))
    parser.add_argument("--texts", type=int, default=1_100)
    parser.add_argument("--method", default="supcon")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/dry_run.jsonl"))
    options = parser.parse_args()
    done = lines.measured(options.out, "task", "method", "texts", "torch_threads", "turn")
    for turn in range(options.repeat):
        for task in options.task:
            key = (task, options.method, options.texts, options.threads, turn)
            if key in done:
                continue
            with tempfile.TemporaryDirectory() as folder:
                write_files(options.data / task, Path(folder), options.texts)
                asked = ["--method", options.method, "--threads", str(options.threads)]
                line = compared(Path(folder), asked)
            names = ("task", "method", "texts", "torch_threads", "turn")
            lines.append(options.out, dict(zip(names, key, strict=True)) | line)
    show(lines.read(options.out))


def write_files(data: Path, folder: Path, texts: int) -> None:
    """The two files of a user: 16 labels a class, and so many texts."""
    rows = by_hash(read_labelled(find(data, "train"), Columns(text="text"), notes=Notes()))
    labelled, others = sample(rows, SHOTS, SEED, notes=Notes())
    gold = [(row.example.text, row.label) for row in labelled]
    write_table(folder / "labelled.jsonl", ("text", "label"), gold)
    write_table(folder / "pool.jsonl", ("text",), [(each.text,) for each in others[:texts]])


def compared(folder: Path, asked: list[str]) -> dict[str, Any]:
    """The prediction, then the run."""
    files = ["fit", "labelled.jsonl", "-u", "pool.jsonl", "-o", "run", "--json"]
    plan = command(folder, [*files, *asked, "--dry-run"])
    run = command(folder, [*files, *asked])
    disk = sum(path.stat().st_size for path in (folder / "run").rglob("*") if path.is_file())
    predicted = plan.printed["total_seconds"]
    planned = dict.fromkeys(range(plan.printed["rounds"] + 1), 0.0)
    for stage in plan.printed["stages"]:
        planned[stage["round"]] += stage["seconds"]
    by_round = {
        round_["number"]: [
            round(planned[round_["number"]], 2),
            round(round_["numbers"]["seconds"], 2),
        ]
        for round_ in run.printed["rounds"]
    }
    return {
        "seconds predicted": round(predicted, 1),
        "seconds": round(run.seconds, 1),
        "ratio": round(predicted / run.seconds, 3),
        "seconds of the dry run": round(plan.seconds, 1),
        "by round, predicted and taken": by_round,
        "memory predicted": plan.printed["memory_bytes"],
        "memory": run.memory,
        "disk predicted": plan.printed["disk_bytes"],
        "disk": disk,
    }


def command(folder: Path, arguments: list[str]) -> Measured:
    """A command in a process of its own: what it prints, its seconds and its peak memory."""
    started = time.perf_counter()
    with (folder / "printed.json").open("w+b") as printed:
        process = subprocess.Popen(
            [sys.executable, "-m", "selftrain", *arguments], cwd=folder, stdout=printed
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{arguments} ended with {process.returncode}")
        printed.seek(0)
        return Measured(json.load(printed), seconds, usage.ru_maxrss * 1024)


def show(every: list[lines.Line]) -> None:
    """A line for each run, and how many are within 30 %."""
    for line in every:
        print(f"{line['task']:8} predicted / taken {line['ratio']:.2f}")
    within = sum(abs(line["ratio"] - 1) <= 0.3 for line in every)
    print(f"within 30 %: {within} of {len(every)}")


if __name__ == "__main__":
    main()
