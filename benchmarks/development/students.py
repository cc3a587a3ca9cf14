"""Candidates for the deep student of the default, all from the same teacher and the same lesson.

    python benchmarks/development/students.py DATA --out students.jsonl

The teacher and its probe rounds are those of ``supcon``. Each candidate then trains on the lesson
of round 6, and five probe rounds follow, judged by the guard. Scored on design rows. Beside each
stands the mean of the probabilities of all its accepted rounds; ``three students`` is the mean of
three runs after the same teacher, which draw other rows of the pool. Lines that are in the file are
not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
import variants
from on_test_rows import rows_of

from selftrain.data.rows import Labelled
from selftrain.method.losses import PHCE, EasyHard, Soft
from selftrain.method.recipes import recipe
from selftrain.method.spec import Method
from selftrain.model.backbone import load
from selftrain.model.pel import Adapter, LoRA
from selftrain.training.job import Job
from selftrain.training.loop import Round, last_accepted, self_train
from selftrain.training.machine import Machine
from selftrain.training.metrics import accuracy
from selftrain.training.probe import logits_of

SCREENED = ("sst2", "subj", "cr", "agnews-60-25-10-5")
Vectors = dict[int, torch.Tensor]
"""By the number of the round that trained the encoder, its vectors of the design rows."""
DESIGN = 800
DEEP = 6
"""The number of the deep student's round: five probe rounds come before it."""
ROWS = argparse.Namespace(labels=16, foreign=False, flipped=0, design=True)
"""16 labels a class, scored on design rows: the setting of ``on_test_rows.py --design``."""


def student(**changes: Any) -> Callable[[Method], Method]:
    """The default with another student."""
    return lambda method: replace(method, student=(replace(method.student[0], **changes),))


def by_loss(**changes: Any) -> Callable[[Method], Method]:
    """A student that learns by a loss of its answers in place of the contrast of its features."""
    return student(
        **{"supcon": None, "steps": 80, "learning_rate": 2e-5, "head_learning_rate": 1e-3} | changes
    )


def from_pretrained(
    tuning: Any, learning_rate: float, **changes: Any
) -> Callable[[Method], Method]:
    """A student with a module, from the pretrained weights as in the paper."""
    settings = {
        "tuning": tuning,
        "starts_from": "pretrained",
        "head_start": "regression",
        "learning_rate": learning_rate,
        "head_learning_rate": None,
        "steps": 120,
    }
    return by_loss(**settings | changes)


THREE = "three students"
CANDIDATES: dict[str, Callable[[Method], Method]] = {
    "default": student(),
    THREE: student(),
    "three quarters of the way": student(interpolation=0.75),
    "half of the way": student(interpolation=0.5),
    "gold share 0": student(gold_share=0.0),
    "gold share 0.5": student(gold_share=0.5),
    "cross entropy": by_loss(),
    "soft labels": by_loss(loss=Soft()),
    "PHCE, tau 2": by_loss(loss=PHCE(tau=2)),
    "PHCE, tau 4": by_loss(loss=PHCE(tau=4)),
    "easy-hard contrast": lambda method: replace(
        by_loss(contrast=EasyHard(weight=0.1, negatives=2, temperature=0.1))(method),
        select=replace(method.select, hard="bottom"),
    ),
    "cross entropy, all at 5e-5 from the pretrained weights": by_loss(
        starts_from="pretrained", head_start="regression", learning_rate=5e-5, steps=120
    ),
    "adapter, width 64": from_pretrained(Adapter(width=64), 1e-3),
    "adapter, width 8": from_pretrained(Adapter(width=8), 1e-3),
    "LoRA": from_pretrained(LoRA(), 1e-3),
    "adapter, width 64, by contrast": from_pretrained(
        Adapter(width=64), 1e-3, supcon=recipe("supcon").student[0].supcon, head_start="random"
    ),
    "dropout 0.3, from the pretrained weights": by_loss(
        dropout=0.3,
        starts_from="pretrained",
        head_start="regression",
        learning_rate=5e-5,
        steps=120,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("students.jsonl"))
    parser.add_argument("--variant", nargs="+", default=list(SCREENED))
    parser.add_argument("--seed", nargs="+", type=int, default=[12, 21])
    parser.add_argument("--candidate", nargs="+", default=list(CANDIDATES))
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    machine = Machine(threads=options.threads)
    done = variants.lines_of(options.out) if options.out.exists() else []
    names = ("candidate", "variant", "seed")
    keys = {tuple(line[name] for name in names) for line in done}
    backbone = load("minilm")
    for seed in options.seed:
        for variant in options.variant:
            todo = [name for name in options.candidate if (name, variant, seed) not in keys]
            if not todo:
                continue
            task, split, rows = rows_of(options.data, variant, seed, ROWS)
            design = rows[:DESIGN]
            job = Job(task, split, recipe("supcon"), backbone, seed)
            before: list[Round] = []
            for round_ in self_train(job, machine=machine):
                before.append(round_)
                if round_.number == DEEP - 1:
                    break
            first: Vectors = {}
            for name in todo:
                method = CANDIDATES[name](job.method)
                vectors = {number: each for number, each in first.items() if number == 0}
                started = time.perf_counter()
                line = dict(zip(names, (name, variant, seed), strict=True))
                if name == THREE:
                    line |= three_students(job, before, design, machine)
                else:
                    changed = replace(job, method=method)
                    after = list(self_train(changed, done=before, machine=machine))
                    line |= scored(before, after, design, vectors)
                line |= {"seconds": round(time.perf_counter() - started, 1)}
                first = vectors
                with options.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)
    for seed in options.seed:
        print("\n".join(table(variants.lines_of(options.out), seed)))


def table(lines: Sequence[dict[str, Any]], seed: int) -> Iterator[str]:
    """The student and the end of each candidate on the screened tasks, the best end first."""
    by: dict[str, dict[str, dict[str, Any]]] = {}
    for line in lines:
        if line["seed"] == seed:
            by.setdefault(line["candidate"], {})[line["variant"]] = line

    def gain(name: str, what: str) -> float | None:
        """Over the default's, on the mean of the tasks that both have."""
        both = [(by[name][each], by["default"][each]) for each in by[name] if each in by["default"]]
        pairs = [(one[what], other[what]) for one, other in both if what in one]
        return fmean(one - other for one, other in pairs) if pairs else None

    ends = {name: gain(name, "final") for name in by}
    yield f"| student, seed {seed} | {' | '.join(SCREENED)} | student | end |"
    yield f"|---|{'---:|' * (len(SCREENED) + 2)}"
    for name in sorted(by, key=lambda name: (-(ends[name] or 0), name)):
        cells = [shown(by[name].get(variant)) for variant in SCREENED]
        gains = [
            "–" if each is None else f"{each:+.1f}" for each in (gain(name, "student"), ends[name])
        ]
        yield f"| {name} | {' | '.join([*cells, *gains])} |"


def shown(line: dict[str, Any] | None) -> str:
    """The accuracy of the student, in brackets where the guard refused it, and of the end."""
    if line is None:
        return "–"
    if "student" not in line:
        return f"{line['final']:.1f}"
    student = f"{line['student']:.1f}" if line["accepted"] else f"({line['student']:.1f})"
    return f"{student} / {line['final']:.1f}"


def scored(
    before: Sequence[Round], after: Sequence[Round], design: Sequence[Labelled], vectors: Vectors
) -> dict[str, Any]:
    """Accuracies of the teacher, of the heads before the student, of the student, at the end."""
    deep = after[0]
    rounds = {
        "teacher": before[0],
        "heads": last_accepted(before),
        "student": deep,
        "last": after[-1],
        "final": last_accepted([*before, *after]),
    }
    accepted = [each for each in (*before, *after) if each.accepted]
    mean = torch.stack([probabilities(each, design, vectors) for each in accepted]).mean(0)
    return {name: accuracy_of(round_, design, vectors) for name, round_ in rounds.items()} | {
        "rounds averaged": points(mean, before[0], design),
        "accepted": deep.accepted,
        "belief gain": deep.numbers.get("belief gain"),
        "drift": deep.numbers.get("drift"),
    }


def three_students(
    job: Job, before: Sequence[Round], design: Sequence[Labelled], machine: Machine
) -> dict[str, Any]:
    """The accuracy of the mean of three runs after the same teacher, beside that of each."""
    believed, alone = [], []
    for place in range(3):
        other = replace(job, seed=job.seed + 1000 * place)
        final = last_accepted([*before, *self_train(other, done=before, machine=machine)])
        believed.append(probabilities(final, design, {}))
        alone.append(points(believed[-1], final, design))
    return {"final": points(torch.stack(believed).mean(0), final, design), "alone": alone}


def accuracy_of(round_: Round, rows: Sequence[Labelled], vectors: Vectors) -> float:
    """Of a round on these rows, in points."""
    return points(probabilities(round_, rows, vectors), round_, rows)


def probabilities(round_: Round, rows: Sequence[Labelled], vectors: Vectors) -> torch.Tensor:
    """Of each class by the model of a round, [N, C]; each encoder reads the rows once."""
    if round_.encoder not in vectors:
        vectors[round_.encoder] = round_.model.read([row.example for row in rows]).features
    return logits_of(round_.model, vectors[round_.encoder]).softmax(1)


def points(believed: torch.Tensor, round_: Round, rows: Sequence[Labelled]) -> float:
    """The accuracy of the most probable classes, in points."""
    gold = torch.tensor([round_.model.labels.index(row.label) for row in rows])
    return round(100 * accuracy(believed.argmax(1), gold), 2)


if __name__ == "__main__":
    main()
