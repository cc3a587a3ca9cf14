"""One round from the same teacher and votes, with one choice changed at a time, on design rows.

    python benchmarks/one_round.py --seeds 12 42 --variant laptop half
    python benchmarks/one_round.py --data DATA --task agnews sst2 --student prompt@minilm-mlm

Without --data the demo's movie sentences. The pool's gold labels are read after the fact, for
the audit. Seconds are those of the student's training with the trunk's pass, and of nothing else.
One JSON line for each variant and seed is appended to --out; a line that is there is not computed
again. Older lines have another entry, `seconds`, which includes the scoring and is not shown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

import lines
from cuts import SHOTS
from start import student_of, teacher_of

from selftrain.data import task as tasks
from selftrain.data.rows import AuditLine, Labelled, Split
from selftrain.experiments import demo
from selftrain.experiments.stats import MISSING
from selftrain.experiments.tasksets import Taskset
from selftrain.method.losses import EasyHard, Soft
from selftrain.method.recipes import recipe
from selftrain.method.selection import RoundDraw
from selftrain.method.spec import Method
from selftrain.model.build import with_dropout_in
from selftrain.model.pel import Adapter
from selftrain.seeds import child
from selftrain.training.annotate import annotate
from selftrain.training.draw import pool_of_round
from selftrain.training.evaluate import evaluate
from selftrain.training.fit import fit
from selftrain.training.job import Job, new_model
from selftrain.training.machine import Machine
from selftrain.training.memory import frozen_layers_remembered

PRESET = "laptop"
SECONDS = "seconds without scoring"
KEY = ("task", "student", "seed", "passes in", "variant")


def variants(method: Method) -> dict[str, Method]:
    """The method, and what else it could have been."""

    def student(**changes: object) -> Method:
        return replace(method, student=(replace(method.student[0], **changes),))

    def select(**changes: object) -> Method:
        return replace(method, select=replace(method.select, **changes))

    half = select(shares=(0.5,))
    return {
        PRESET: method,
        **{f"top {k}": student(tuning=Adapter(width=64, layers=k)) for k in (1, 2, 3)},
        **{
            f"top {k}, {steps} steps": student(tuning=Adapter(width=64, layers=k), steps=steps)
            for k in (1, 2, 3)
            for steps in (160, 320)
        },
        "top 2, fast": student(tuning=Adapter(width=64, layers=2), learning_rate=3e-3),
        "top 3, fast": student(tuning=Adapter(width=64, layers=3), learning_rate=3e-3),
        "top 2, wide": student(tuning=Adapter(width=256, layers=2)),
        "half": half,
        "no contrast": student(contrast=None),
        "contrast 0.1": student(contrast=EasyHard(0.1, 2, 0.1)),
        "half, soft": replace(half, student=(replace(method.student[0], loss=Soft()),)),
        "half, sampled": select(shares=(0.5,), how="sample"),
        "random head": student(head_start="random", head_learning_rate=5e-3),
        "no gold": student(gold_share=0.0),
    }


def main() -> None:
    options = arguments()
    machine = Machine(threads=options.threads)
    machine.torch_device()
    method, backbone = student_of(options.student)
    dropout_layers = str(method.dropout_layers or "all")
    done = lines.measured(options.out, *KEY)
    for task, seed, split, design, truth in splits(options):
        place = {
            "task": task.name,
            "student": options.student,
            "seed": seed,
            "passes in": dropout_layers,
        }
        wanted = [name for name in options.variant if (*place.values(), name) not in done]
        if not wanted:
            continue
        job = Job(task, split, method, backbone, seed)
        teacher = teacher_of(job, machine)
        pool = pool_of_round(job, 1)
        mc_model = with_dropout_in(teacher, method.dropout_layers)
        draws = child(seed, "votes", 1)
        votes = list(annotate(mc_model, pool, method.passes, seed=draws, machine=machine))
        before = evaluate(teacher, design)["accuracy"]
        for name in wanted:
            chosen = replace(variants(method)[name], rounds=1)
            lesson = chosen.select(
                iter(votes), task.labels, split.labelled, RoundDraw(len(pool), 1, seed)
            )
            started = time.perf_counter()
            run = replace(job, method=chosen)
            with frozen_layers_remembered(run, (), machine):
                student = new_model(run, chosen.student[0], child(seed, "student", 1))
                fit_seed = child(seed, "fit", 1, 0)
                fit(student, lesson, chosen.student[0], seed=fit_seed, machine=machine)
            seconds = time.perf_counter() - started
            line = {
                **place,
                "variant": name,
                "before": before,
                "after": evaluate(student, design)["accuracy"],
                SECONDS: round(seconds, 1),
                "labels right": right(lesson.audit, truth),
            }
            lines.append(options.out, line)
    show(options.out)


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
) -> Iterator[tuple[tasks.Task, int, Split, Sequence[Labelled], dict[str, str]]]:
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


def right(audit: Iterable[AuditLine], truth: dict[str, str]) -> dict[str, float]:
    """The share of pseudo labels that are right: of all rows, and by what became of them."""
    found = {"all": list(audit)}
    for line in audit:
        found.setdefault(line.role, []).append(line)
    return {
        role: round(sum(truth[line.uid] == line.label for line in lines) / len(lines), 3)
        for role, lines in found.items()
    }


def show(out: Path) -> None:
    """Means over the seeds; beside the preset, seed by seed, what a variant gains and spares."""
    rows = []
    for place, here in lines.groups(lines.read(out), "task", "student", "passes in").items():
        by_variant = {
            name: {line["seed"]: line for line in mine}
            for (name,), mine in lines.groups(here, "variant").items()
        }
        preset = by_variant.get(PRESET, {})
        for name, mine in by_variant.items():
            before, after = (
                f"{100 * fmean(line[when] for line in mine.values()):.1f}"
                for when in ("before", "after")
            )
            both = [(preset[seed], mine[seed]) for seed in mine if seed in preset]
            gains = [100 * (line["after"] - base["after"]) for base, line in both]
            ratios = [
                base[SECONDS] / line[SECONDS]
                for base, line in both
                if SECONDS in base and SECONDS in line
            ]
            gain = f"{fmean(gains):+.1f} (n = {len(gains)})" if gains else MISSING
            ratio = f"{median(ratios):.2f} (n = {len(ratios)})" if ratios else MISSING
            rows.append((*place, name, len(mine), before, after, gain, ratio))
    head = ("task", "student", "passes in", "variant", "seeds", "before", "after")
    lines.show_table((*head, f"after - {PRESET}", f"time of {PRESET} / this"), rows)


if __name__ == "__main__":
    main()
