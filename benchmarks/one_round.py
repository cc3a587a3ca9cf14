"""One round from the same teacher and votes, with one choice changed at a time, on design rows.

    python benchmarks/one_round.py --seeds 12 42 --variant laptop half

The demo's movie sentences; the pool's gold labels are read after the fact, for the audit in the
last column. One JSON line for each variant and seed is appended to --out.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from selftrain.annotate import annotate
from selftrain.backbone import load
from selftrain.data import Judged, Lesson
from selftrain.demo import cut, rows_of
from selftrain.evaluate import evaluate
from selftrain.fit import fit
from selftrain.loop import draw, fresh
from selftrain.losses import EasyHard, Soft
from selftrain.machine import Machine
from selftrain.recipes import LAPTOP
from selftrain.seeds import child

STUDENT, SELECT = LAPTOP.student[0], LAPTOP.select
VARIANTS = {
    "laptop": (SELECT, STUDENT),
    "half": (replace(SELECT, shares=(0.5,)), STUDENT),
    "no contrast": (SELECT, replace(STUDENT, contrast=None)),
    "contrast 0.1": (SELECT, replace(STUDENT, contrast=EasyHard(0.1, 2, 0.1))),
    "half, soft": (replace(SELECT, shares=(0.5,)), replace(STUDENT, loss=Soft())),
    "half, sampled": (replace(SELECT, shares=(0.5,), how="sample"), STUDENT),
    "random head": (SELECT, replace(STUDENT, head_start="random", head_rate=5e-3)),
    "no gold": (SELECT, replace(STUDENT, gold=0.0)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[12, 42])
    parser.add_argument("--variant", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/one_round.jsonl"))
    options = parser.parse_args()
    on = Machine(threads=options.threads)
    backbone = load("minilm")
    task, rows = rows_of("movies")
    truth = {row.example.uid: row.label for row in rows}
    for seed in options.seeds:
        part = cut(rows, seed)
        split = part.split()
        teacher = fresh(task, LAPTOP.teacher, backbone, child(seed, "teacher"))
        gold = Lesson(gold=split.labeled)
        fit(teacher, gold, LAPTOP.teacher, seed=child(seed, "fit", 0), on=on)
        size = LAPTOP.pool if isinstance(LAPTOP.pool, int) else None
        pool = draw(split.unlabeled, size, seed=child(seed, "pool", 1))
        votes = list(annotate(teacher, pool, LAPTOP.passes, seed=child(seed, "votes", 1), on=on))
        before = evaluate(teacher, part.design)["accuracy"]
        for name in options.variant:
            select, how = VARIANTS[name]
            lesson = select(
                iter(votes), task.labels, split.labeled, pool=len(pool), number=1, seed=seed
            )
            student = fresh(task, how, backbone, child(seed, "student", 1))
            fit(student, lesson, how, seed=child(seed, "fit", 1, 0), on=on)
            line = {
                "variant": name,
                "seed": seed,
                "teacher": before,
                "student": evaluate(student, part.design)["accuracy"],
                "labels right": right(lesson.audit, truth),
            }
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


def right(audit: tuple[Judged, ...], truth: dict[str, str]) -> dict[str, float]:
    """The share of pseudo labels that are right: of all rows, and by what became of them."""
    found = {"all": list(audit)}
    for line in audit:
        found.setdefault(line.role, []).append(line)
    return {
        role: round(sum(truth[line.uid] == line.label for line in lines) / len(lines), 3)
        for role, lines in found.items()
    }


if __name__ == "__main__":
    main()
