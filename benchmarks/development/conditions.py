"""Expected accuracy and doubtful labels under other conditions, on stored frozen vectors.

    python benchmarks/development/conditions.py DATA FOLDER --out conditions.jsonl

Recipe ``frozen`` (see ``prior.py``) with 4, 8, 16 and 64 labels a class, on skewed cuts, with a
fifth of foreign texts in the pool, and with 1, 2 or 4 of 32 labels wrong. Of each run the teacher
and the final head are asked for their expected accuracy; the truth is that of design rows. Test
rows are never read. FOLDER remembers the vectors of texts. ``--judge`` prints tables of the lines.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import features
import numpy as np
import torch
import variants
from expected_accuracy import Constants, Run, fitted, group_of
from on_test_rows import flipped, foreign_texts
from prior import METHOD, final_head
from prior import Task as Vectors
from torch import Tensor

from selftrain.data.fewshot import sample
from selftrain.data.rows import Example, Labelled, Split
from selftrain.data.task import Task
from selftrain.model.backbone import Backbone, load
from selftrain.training.class_names import class_name_rows
from selftrain.training.expected import FROZEN_MARGIN, Judges, expected_accuracy, half_width
from selftrain.training.folds import Folds, Rows, folds_of
from selftrain.training.job import Job, new_model
from selftrain.training.regression import logistic

MOST_LABELS = 64
FIRST_DOUBTS = 5


@dataclass(frozen=True, slots=True)
class Condition:
    """What differs from 16 right labels a class and a pool of the task's own texts."""

    name: str
    labels: int = 16
    foreign: bool = False
    flipped: int = 0
    """Wrong labels of every 32."""


CONDITIONS = (
    Condition("16 labels"),
    Condition("4 labels", labels=4),
    Condition("8 labels", labels=8),
    Condition("64 labels", labels=64),
    Condition("a fifth foreign", foreign=True),
    Condition("1 of 32 wrong", flipped=1),
    Condition("2 of 32 wrong", flipped=2),
    Condition("4 of 32 wrong", flipped=4),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("conditions.jsonl"))
    parser.add_argument("--variant", nargs="+", default=list(variants.ALL))
    parser.add_argument("--seed", nargs="+", type=int, default=[12, 21, 42, 87, 100])
    parser.add_argument("--judge", action="store_true")
    options = parser.parse_args()
    if options.judge:
        for text in tables(variants.lines_of(options.out)):
            print(text)
        return
    torch.set_num_threads(1)
    features.SHOTS, features.POOL = MOST_LABELS, features.SMALL_POOL
    features.DESIGN = features.SMALL_DESIGN
    options.folder.mkdir(parents=True, exist_ok=True)
    lines = variants.lines_of(options.out) if options.out.exists() else []
    done = {(line["variant"], line["seed"], line["condition"]) for line in lines}
    backbone = load("minilm")
    for variant in sorted(options.variant, key=variants.base_of):
        for seed in options.seed:
            wanted = CONDITIONS[:1] if variant in variants.SKEWED else CONDITIONS
            left = [each for each in wanted if (variant, seed, each.name) not in done]
            if left:
                bench = Bench(options.data, options.folder, variant, seed, backbone)
                with options.out.open("a") as file:
                    for condition in left:
                        for line in bench.lines(condition):
                            file.write(json.dumps(line) + "\n")
                print(variant, seed, flush=True)


# ── runs ─────────────────────────────────────────────────────────────────────────────────────


class Bench:
    """The rows of a task or cut and of a seed, with 64 labels a class, and their vectors."""

    def __init__(
        self, data: Path, folder: Path, variant: str, seed: int, backbone: Backbone
    ) -> None:
        self.variant, self.seed = variant, seed
        base = variants.base_of(variant)
        self.task, self.gold, pool, design = features.cut(data, base, seed)
        if variant in variants.SKEWED:
            shares = variants.SKEWED[variant][1]
            pool, design = (cut(rows, self.task, shares) for rows in (pool, design))
        self.pool = [row.example for row in pool]
        self.design = design
        self.foreign = foreign_texts(data, base, len(pool) // 4)
        examples = [row.example for row in (*self.gold, *design)]
        self.vectors = features.frozen_vectors(
            folder, self.task, backbone, [*examples, *self.pool, *self.foreign]
        )
        split = Split(tuple(self.gold), tuple(self.pool))
        job = Job(self.task, split, METHOD, backbone, seed)
        self.encoder = new_model(job, METHOD.teacher, 0)

    def read(self, examples: Sequence[Example]) -> Tensor:
        return torch.from_numpy(np.stack([self.vectors[each.uid] for each in examples]))

    def rows(self, rows: Sequence[Labelled]) -> Rows:
        labels = [self.task.labels.index(row.label) for row in rows]
        return Rows(self.read([row.example for row in rows]), torch.tensor(labels))

    def lines(self, condition: Condition) -> Iterator[dict[str, Any]]:
        """The teacher and the final head: what is expected of them, and the truth."""
        gold, _ = sample(self.gold, condition.labels, self.seed)
        right = {row.example.uid: row.label for row in gold}
        gold = flipped(gold, self.task, condition.flipped * len(gold) // 32, self.seed)
        names = class_name_rows(self.encoder, gold)
        names_read = self.encoder.read([row.example for row in names]).features if names else None
        texts = [*self.pool, *(self.foreign if condition.foreign else ())]
        vectors = Vectors(
            gold=self.rows(gold),
            names=None if names_read is None else Rows(names_read, self.classes(names)),
            pool=Rows(self.read(texts), torch.zeros(len(texts), dtype=torch.long)),
            design=self.rows(self.design),
        )
        classes = len(self.task.labels)
        folds = folds_of(
            vectors.gold, vectors.pool.vectors, classes, seed=self.seed, names=vectors.names
        )
        facts = {
            "variant": self.variant,
            "seed": self.seed,
            "condition": condition.name,
            "labels": len(gold),
        }
        if folds is None or not folds.know_something:
            yield facts | {"model": None}
            return
        judges = Judges.of(folds, frozen=True)
        learnt = vectors.gold if vectors.names is None else vectors.gold + vectors.names
        teacher = logistic(learnt.vectors, learnt.labels, classes, strength=1.0)
        doubtful = {
            "wrong": sum(right[row.example.uid] != row.label for row in gold),
            "found": found_doubts(gold, right, folds),
        }
        for name, model in {
            "teacher": teacher,
            "final": final_head(vectors, teacher, folds),
        }.items():
            answers = model(vectors.design.vectors).argmax(1)
            expected = expected_accuracy(model(vectors.pool.vectors).argmax(1), judges)
            yield facts | {
                "model": name,
                "accuracy": float((answers == vectors.design.labels).double().mean()),
                "expected": expected.accuracy,
                "low": expected.low,
                "high": expected.high,
                "belief": expected.belief,
                "agreement": expected.agreement,
                "hits": list(folds.hits()),
                "mixture": expected.mixture,
                **(doubtful if condition.flipped else {}),
            }

    def classes(self, rows: Sequence[Labelled]) -> Tensor:
        return torch.tensor([self.task.labels.index(row.label) for row in rows])


def cut(rows: Sequence[Labelled], task: Task, shares: tuple[float, ...]) -> list[Labelled]:
    y = np.array([task.labels.index(row.label) for row in rows])
    return [rows[place] for place in variants.askew(y, shares)]


def found_doubts(gold: Sequence[Labelled], right: dict[str, str], folds: Folds) -> int:
    """How many of the wrong labels are among the five surest doubts."""
    probability, answers = folds.gold.max(1)
    order = probability.argsort(descending=True).tolist()
    doubted = [at for at in order if answers[at] != folds.labels[at]]
    first = [gold[at] for at in doubted[:FIRST_DOUBTS]]
    return sum(right[row.example.uid] != row.label for row in first)


# ── tables ───────────────────────────────────────────────────────────────────────────────────


def tables(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Errors and intervals by condition and by task; how many wrong labels are found."""
    known = [line for line in lines if line["model"] is not None]
    judged = all_judged(known)
    head = "models | no estimate | hits | belief, agreement | mixture | estimate | bias | right"
    yield f"| condition | {head} |"
    yield f"|---|{'---:|' * 8}"
    for name in (*(each.name for each in CONDITIONS), "skewed pools"):
        none = sum(1 for x in lines if x["model"] is None and condition_of(x) == name)
        yield f"| {name} | {cells([x for x in judged if condition_of(x.line) == name], none)} |"
    yield f"| all | {cells(judged, len(lines) - len(known))} |"
    yield ""
    yield f"| task, all conditions | {head} |"
    yield f"|---|{'---:|' * 8}"
    for base in variants.BASE:
        own = [each for each in judged if variants.base_of(each.line["variant"]) == base]
        none = [x for x in lines if x["model"] is None and variants.base_of(x["variant"]) == base]
        yield f"| {base} | {cells(own, len(none))} |"
    yield ""
    yield "| wrong labels | runs | wrong | among the five surest doubts |"
    yield "|---|---:|---:|---:|"
    for condition in CONDITIONS:
        runs = [x for x in known if x["condition"] == condition.name and x["model"] == "final"]
        if condition.flipped and runs:
            wrong, found = (sum(line[name] for line in runs) for name in ("wrong", "found"))
            yield f"| {condition.name} | {len(runs)} | {wrong} | {found} ({found / wrong:.0%}) |"


@dataclass(frozen=True, slots=True)
class Judged:
    """A line, and how far estimates of its accuracy are off, in points."""

    line: dict[str, Any]
    hits: float
    """The share of labels that models without them answer right: cross-validation."""
    weighed: float
    """Belief and agreement by weights of other tasks, as for models that trained their encoder."""
    mixture: float
    estimate: float
    """The product's: the mean of belief and mixture."""
    right: bool
    """Whether the product's interval has the truth in it."""


def with_constants(
    lines: Sequence[dict[str, Any]],
) -> Iterator[tuple[Constants, dict[str, Any]]]:
    """Each line with the weights that 16 labels a class of other tasks give."""
    usual = [line for line in lines if line["condition"] == CONDITIONS[0].name]
    for group in sorted({group_of(line["variant"]) for line in lines}):
        others = [run_of(line) for line in usual if group_of(line["variant"]) != group]
        constants = fitted(others)
        yield from ((constants, x) for x in lines if group_of(x["variant"]) == group)


def all_judged(lines: Sequence[dict[str, Any]]) -> list[Judged]:
    """Every line that has a model, and how far its estimates are off."""
    return [judge(line, constants) for constants, line in with_constants(lines)]


def intervals(path: Path) -> tuple[int, int]:
    """``FROZEN_INTERVALS`` of the product."""
    judged = all_judged([line for line in variants.lines_of(path) if line["model"] is not None])
    return sum(each.right for each in judged), len(judged)


def judge(line: dict[str, Any], constants: Constants) -> Judged:
    """How far each estimate is off."""
    truth, hits = line["accuracy"], line["hits"]
    weighed = constants.belief * line["belief"] + constants.agreement * line["agreement"]
    at_most = (hits[1] + 0.5) / (hits[1] + 1)
    estimate = min(at_most, (line["belief"] + line["mixture"]) / 2)
    half = max(FROZEN_MARGIN, half_width(*hits))

    def off(expected: float) -> float:
        return 100 * (expected - truth)

    right = abs(estimate - truth) <= half
    return Judged(line, off(hits[0]), off(weighed), off(line["mixture"]), off(estimate), right)


def run_of(line: dict[str, Any]) -> Run:
    return Run(
        variant=line["variant"],
        task=group_of(line["variant"]),
        seed=line["seed"],
        final=line["model"] == "final",
        belief=line["belief"],
        agreement=line["agreement"],
        half=half_width(*line["hits"]),
        accuracy=line["accuracy"],
        bare=0.0,
        calibrated=0.0,
    )


def condition_of(line: dict[str, Any]) -> str:
    return "skewed pools" if line["variant"] in variants.SKEWED else str(line["condition"])


def cells(found: Sequence[Judged], none: int) -> str:
    """Models, those without an estimate, mean errors, bias, and intervals that were right."""
    if not found:
        return f"0 | {none} | | | | | | "
    errors = [
        f"{fmean(abs(each) for each in column):.1f}"
        for column in zip(*((x.hits, x.weighed, x.mixture, x.estimate) for x in found), strict=True)
    ]
    bias, right = fmean(x.estimate for x in found), fmean(x.right for x in found)
    return f"{len(found)} | {none} | {' | '.join(errors)} | {bias:+.1f} | {right:.0%}"


if __name__ == "__main__":
    main()
