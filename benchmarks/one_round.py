"""One round from the same teacher and votes, with one choice changed at a time, on design rows.

    python benchmarks/one_round.py --seeds 12 42 --variant laptop half
    python benchmarks/one_round.py --data DATA --task agnews sst2 --student prompt@minilm-mlm

Without --data the demo's movie sentences. The pool's gold labels are read after the fact, for
the audit in the last column. One JSON line for each variant and seed is appended to --out; a
line that is there is not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from cuts import SHOTS

from selftrain import demo
from selftrain import task as tasks
from selftrain.annotate import annotate
from selftrain.backbone import load
from selftrain.classifier import narrowed
from selftrain.data import Judged, Labeled, Lesson, Split
from selftrain.evaluate import evaluate
from selftrain.fit import fit
from selftrain.loop import drawn, fresh, remember
from selftrain.losses import EasyHard, Soft
from selftrain.machine import Machine
from selftrain.method import Method
from selftrain.pel import Adapter
from selftrain.recipes import recipe
from selftrain.seeds import child
from selftrain.tasksets import Taskset


def variants(method: Method) -> dict[str, Method]:
    """The method, and what else it could have been."""

    def student(**changes: object) -> Method:
        return replace(method, student=(replace(method.student[0], **changes),))

    def select(**changes: object) -> Method:
        return replace(method, select=replace(method.select, **changes))

    half = select(shares=(0.5,))
    return {
        "laptop": method,
        **{f"top {k}": student(changes=Adapter(width=64, layers=k)) for k in (1, 2, 3)},
        **{
            f"top {k}, {steps} steps": student(changes=Adapter(width=64, layers=k), steps=steps)
            for k in (1, 2, 3)
            for steps in (160, 320)
        },
        "top 2, fast": student(changes=Adapter(width=64, layers=2), rate=3e-3),
        "top 3, fast": student(changes=Adapter(width=64, layers=3), rate=3e-3),
        "top 2, wide": student(changes=Adapter(width=256, layers=2)),
        "half": half,
        "no contrast": student(contrast=None),
        "contrast 0.1": student(contrast=EasyHard(0.1, 2, 0.1)),
        "half, soft": replace(half, student=(replace(method.student[0], loss=Soft()),)),
        "half, sampled": select(shares=(0.5,), how="sample"),
        "random head": student(head_start="random", head_rate=5e-3),
        "no gold": student(gold=0.0),
    }


def main() -> None:
    options = arguments()
    on = Machine(threads=options.threads)
    reads, _, name = options.student.partition("@")
    method = recipe(f"upet-{reads}-adapter")
    backbone = load(name)
    passes_in = str(method.passes_in or "all")
    done = finished(options.out)
    for task, seed, split, design, truth in splits(options):
        key = (task.name, options.student, seed, passes_in)
        open_ = [variant for variant in options.variant if (*key, variant) not in done]
        if not open_:
            continue
        teacher = fresh(task, method.teacher, backbone, child(seed, "teacher"))
        gold = Lesson(gold=split.labeled)
        fit(teacher, gold, method.teacher, seed=child(seed, "fit", 0), on=on)
        pool = drawn(split, method, 1, seed)
        wavering = narrowed(teacher, method.passes_in)
        votes = list(annotate(wavering, pool, method.passes, seed=child(seed, "votes", 1), on=on))
        before = evaluate(teacher, design)["accuracy"]
        for variant in open_:
            chosen = variants(method)[variant]
            lesson = chosen.select(
                iter(votes), task.labels, split.labeled, pool=len(pool), number=1, seed=seed
            )
            started = time.perf_counter()
            remember(task, split, chosen, (), backbone=backbone, seed=seed, on=on)
            student = fresh(task, chosen.student[0], backbone, child(seed, "student", 1), teacher)
            fit(student, lesson, chosen.student[0], seed=child(seed, "fit", 1, 0), on=on)
            line = {
                "task": task.name,
                "student": options.student,
                "seed": seed,
                "variant": variant,
                "passes in": passes_in,
                "before": before,
                "after": evaluate(student, design)["accuracy"],
                "seconds": round(time.perf_counter() - started, 1),
                "labels right": right(lesson.audit, truth),
            }
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--task", nargs="+", default=["agnews", "sst2"], help="with --data")
    parser.add_argument("--student", default="head@minilm", help="head or prompt, @, backbone")
    parser.add_argument("--seeds", nargs="+", type=int, default=[12, 42])
    names = list(variants(recipe("upet-head-adapter")))
    parser.add_argument("--variant", nargs="+", choices=names, default=names)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/one_round.jsonl"))
    return parser.parse_args()


def splits(
    options: argparse.Namespace,
) -> Iterator[tuple[tasks.Task, int, Split, Sequence[Labeled], dict[str, str]]]:
    """Task, seed, what a run may see, design rows, and the pool's gold labels for the audit."""
    if options.data is None:
        task, rows = demo.rows_of("movies")
        truth = {row.example.uid: row.label for row in rows}
        for seed in options.seeds:
            part = demo.cut(rows, seed)
            yield task, seed, part.split(), part.design, truth
        return
    for name in options.task:
        task = tasks.find(name)
        cut = Taskset.read(options.data, task)
        truth = {row.example.uid: row.label for row in cut.rows}
        for seed in options.seeds:
            yield task, seed, cut.split(SHOTS, seed), cut.design, truth


def finished(out: Path) -> set[tuple[str | int, ...]]:
    """What need not be computed again."""
    if not out.exists():
        return set()
    found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    names = ("task", "student", "seed", "passes in", "variant")
    return {tuple(x[name] for name in names) for x in found}


def right(audit: Iterable[Judged], truth: dict[str, str]) -> dict[str, float]:
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
