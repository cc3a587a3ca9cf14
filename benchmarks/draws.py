"""What alpha, its scale and the draw pick, from votes that are there: no student is trained.

    selftrain bench DATA -o runs/paper --grid benchmarks/paper/first.toml
    python benchmarks/draws.py DATA runs/paper/shared --student head@minilm-mlm

For each choice of Table 4, and a uniform draw: how many of the picked pseudo labels are right, of
the hard ones too, and how many of the picked rows the preset's own choice picks as well. A choice
that picks nearly the same rows cannot teach anything else, whatever a student makes of them. The
pool's gold labels are read for these figures alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import lines
from cuts import SEEDS, SHOTS
from start import student_of

from selftrain.data import task as tasks
from selftrain.data.rows import Labelled
from selftrain.experiments.shared import Shared, read_votes
from selftrain.experiments.stats import spread
from selftrain.experiments.tasksets import Taskset
from selftrain.method.recipes import recipe
from selftrain.method.selection import RoundDraw
from selftrain.training.draw import pool_of_round
from selftrain.training.job import Job

ALPHAS = ("0", "0.2", "0.4", "0.6", "0.8", "1")
KINDS = ("raw-topk", "rank-topk", "raw-sample", "rank-sample")
WITHOUT = ("wo-res-uniform",)
PRESET = "alpha-0.4-raw-topk"
KEY = ("task", "student", "seed", "choice")
FIGURES = ("picked right", "hard right", "also picked by the preset")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("shared", type=Path, help="the folder `shared` of a bench")
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--student", default="head@minilm-mlm", help="head or prompt, @, backbone")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/paper/draws.jsonl"))
    options = parser.parse_args()
    method, backbone = student_of(options.student)
    choices = [f"alpha-{alpha}-{kind}" for kind in KINDS for alpha in ALPHAS]
    done = lines.measured(options.out, *KEY)
    for name in options.task:
        task = tasks.find(name)
        cut = Taskset.read(options.data, task)
        truth = {row.example.uid: row.label for row in cut.rows}
        for seed in options.seeds:
            place = {"task": name, "student": options.student, "seed": seed}
            wanted = [each for each in (*choices, *WITHOUT) if (*place.values(), each) not in done]
            if not wanted:
                continue
            split = cut.split(SHOTS, seed)
            job = Job(task, split, method, backbone, seed)
            pool = pool_of_round(job, 1)
            shared = Shared.of(options.shared, job)
            votes = read_votes(shared.votes_path, pool, len(task.labels), method.passes)
            if votes is None:
                print(f"{options.shared} has no votes of {name} with seed {seed}", file=sys.stderr)
                continue
            lessons = {
                choice: recipe(f"{method.name}-{choice}").select(
                    iter([(pool, votes)]),
                    task.labels,
                    split.labelled,
                    RoundDraw(len(pool), 1, seed),
                )
                for choice in (PRESET, *wanted)
            }
            own = {row.example.uid for row in lessons[PRESET].easy}
            for choice in wanted:
                lesson = lessons[choice]
                also = fmean(row.example.uid in own for row in lesson.easy)
                found = (right(lesson.easy, truth), right(lesson.hard, truth), also)
                line = {"rows": len(pool), "picked": len(lesson.easy)}
                figures = dict(zip(FIGURES, found, strict=True))
                lines.append(options.out, {**place, "choice": choice, **line, **figures})
    show(options.out)


def right(rows: Sequence[Labelled], truth: Mapping[str, str]) -> float:
    """The share of rows whose pseudo label is right."""
    return fmean(row.label == truth[row.example.uid] for row in rows)


def show(out: Path) -> None:
    """Means and standard deviations over the seeds, in percent."""
    rows = []
    for place, mine in lines.groups(lines.read(out), "task", "student", "choice").items():
        told = [spread([100 * line[name] for line in mine]) for name in FIGURES]
        rows.append((*place, len(mine), *told))
    lines.show_table(("task", "student", "choice", "seeds", *FIGURES), rows)


if __name__ == "__main__":
    main()
