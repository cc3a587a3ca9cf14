"""The first tables: UPET beside its teacher and the references, on tasks read from a folder.

    python benchmarks/first_tables.py DATA --task agnews --student head@minilm

DATA and its cuts are those of folders.py; the test rows are read by the closing `evaluate`
alone, and only without --design. One JSON line for each task, student and seed is appended to
--out; a line that is there is not computed again, and a killed run goes on
from its last whole round.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path

import folders

from selftrain import task as tasks
from selftrain.backbone import load
from selftrain.data import gist
from selftrain.experiment import cells, train
from selftrain.machine import Machine
from selftrain.method import Method, to_plain
from selftrain.recipes import recipe
from selftrain.report import line_of, markdown

SEEDS = folders.SEEDS


def main() -> None:
    options = arguments()
    done = finished(options.out)
    for student in options.student:
        reads, _, name = student.partition("@")
        backbone = load(name)
        method = recipe(f"upet-{reads}-adapter")
        for task in options.task:
            about = tasks.find(task)
            rows, design = folders.train_rows(options.data, about)
            for seed in options.seeds:
                key = (task, student, seed, options.design, fingerprint(method))
                if key in done:
                    continue
                split = folders.few_shot(rows, design, seed)
                started = time.perf_counter()
                rounds = []
                for round_ in train(
                    options.work / task / student / str(seed),
                    about,
                    split,
                    method,
                    backbone=backbone,
                    seed=seed,
                    on=Machine(threads=options.threads),
                ):
                    print(task, student, seed, line_of(round_, method.rounds), flush=True)
                    rounds.append(round_)
                seconds = time.perf_counter() - started
                held = design if options.design else folders.test_rows(options.data, about)
                known = set(map(gist, [*split.labeled, *split.unlabeled]))
                found = {
                    cell.system: cell.accuracy
                    for cell in cells(rounds, about, split, held, backbone=backbone, seed=seed)
                }
                line = {
                    "task": task,
                    "student": student,
                    "seed": seed,
                    "design": options.design,
                    "method": fingerprint(method),
                    "threads": options.threads,
                    "also in train": len(known & set(map(gist, held))),
                    "rows": len(held),
                    "seconds": round(seconds, 1),
                    "accuracy": found,
                }
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)
    show(options.out)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["agnews", "sst2"])
    parser.add_argument(
        "--student",
        nargs="+",
        default=["head@minilm", "head@minilm-mlm", "prompt@minilm-mlm"],
        help="head or prompt, @, backbone",
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--design", action="store_true", help="score the design rows, not test")
    parser.add_argument("--threads", type=int, help="of torch")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/first_tables.jsonl"))
    parser.add_argument("--work", type=Path, default=Path("runs/first_tables"))
    return parser.parse_args()


def fingerprint(method: Method) -> str:
    """A changed recipe is another cell: its lines are never mixed with the old one's."""
    return hashlib.sha256(json.dumps(to_plain(method), sort_keys=True).encode()).hexdigest()[:12]


def finished(out: Path) -> set[tuple[object, ...]]:
    names = ("task", "student", "seed", "design", "method")
    return {tuple(line[name] for name in names) for line in lines(out)}


def lines(out: Path) -> list[dict]:
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def show(out: Path) -> None:
    """The tables so far, as Markdown."""
    every = lines(out)
    names = ("task", "student", "design", "method")
    for wanted in sorted({tuple(x[name] for name in names) for x in every}):
        task, student, design, method = wanted
        mine = [x for x in every if tuple(x[name] for name in names) == wanted]
        mine.sort(key=lambda x: SEEDS.index(x["seed"]) if x["seed"] in SEEDS else x["seed"])
        systems = dict.fromkeys(name for x in mine for name in x["accuracy"])
        timed = [x["seconds"] for x in mine if "seconds" in x]  # a halted run has no honest time
        seconds = sum(timed) / max(1, len(timed))
        print(
            f"\n{task}, {student}, {mine[0]['rows']} {'design' if design else 'test'} rows, "
            f"{seconds:.0f} s a run, method {method}\n"
        )
        scores = {name: {x["seed"]: x["accuracy"].get(name) for x in mine} for name in systems}
        print(markdown(scores, [x["seed"] for x in mine]))


if __name__ == "__main__":
    main()
