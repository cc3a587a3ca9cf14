"""Answers corrected by class shares, and how right the promise of `--abstain` is.

    python benchmarks/development/prior.py DATA FOLDER --out prior.jsonl

Recipe ``frozen`` on stored vectors of the pretrained encoder: a regression on 16 labels a class and
the class names, then five rounds of the head under the guard of folds. FOLDER remembers what the
encoder says of a task's rows; the rest takes seconds. Scored on design rows; test rows are never
read. ``cr, equal`` is cr scored on as many design rows of each class: its pool is not so.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import as_the_product
import features
import numpy as np
import torch
import variants
from torch import Tensor

from selftrain.data.rows import Labelled, Split
from selftrain.method.recipes import recipe
from selftrain.model.backbone import Backbone, load
from selftrain.training.class_names import class_name_rows
from selftrain.training.expected import (
    Judges,
    class_shares,
    expected_accuracy,
    temperature_for,
)
from selftrain.training.folds import Folds, Rows, folds_of, pool_prior
from selftrain.training.guard import BELIEF_PER_DRIFT, LEAST_BELIEF, LESS_BELIEF, MOST_DRIFT
from selftrain.training.job import Job, new_model
from selftrain.training.metrics import accuracy, macro_f1
from selftrain.training.regression import Linear, logistic

METHOD = recipe("frozen")
EQUAL = "cr, equal"
VARIANTS = (*variants.ALL, EQUAL)
AS_IT_IS, POOL, KNOWN = "as it is", "`--prior pool`", "shares known"
THRESHOLDS = (0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, slots=True)
class Task:
    """The vectors of a task's rows, and their classes; those of the pool are for audits alone."""

    gold: Rows
    names: Rows | None
    pool: Rows
    design: Rows

    @property
    def classes(self) -> int:
        return int(self.gold.labels.max()) + 1

    def shares(self, rows: Rows) -> Tensor:
        """The true class shares of some rows, [C]."""
        counts = rows.labels.bincount(minlength=self.classes).double()
        return counts / counts.sum()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", nargs="+", type=int, default=[12, 21])
    parser.add_argument("--out", type=Path, default=Path("prior.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    features.POOL, features.DESIGN = features.SMALL_POOL, features.SMALL_DESIGN
    options.folder.mkdir(parents=True, exist_ok=True)
    backbone = load("minilm")
    lines: list[dict[str, Any]] = []
    for variant in VARIANTS:
        for seed in options.seed:
            base = "cr" if variant == EQUAL else variants.base_of(variant)
            path = options.folder / f"{base}-{seed}.npz"
            if not path.exists():
                remember(options.data, path, base, seed, backbone)
            lines += lines_of(cut(stored(path), variant), variant, seed)
    options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for line in tables(lines):
        print(line)


# ── rows ─────────────────────────────────────────────────────────────────────────────────────


def remember(data: Path, path: Path, name: str, seed: int, backbone: Backbone) -> None:
    """What the pretrained encoder says of a task's rows and of its class names."""
    task, gold, pool, design = features.cut(data, name, seed)
    split = Split(tuple(gold), tuple(row.example for row in pool))
    encoder = new_model(Job(task, split, METHOD, backbone, seed), METHOD.teacher, 0)
    names = class_name_rows(encoder, gold)
    parts: dict[str, Sequence[Labelled]] = {"gold": gold, "pool": pool, "design": design}
    examples = [row.example for rows in parts.values() for row in rows]
    vectors = features.frozen_vectors(path.parent, task, backbone, examples)
    arrays = {
        f"{part}_x": np.stack([vectors[row.example.uid] for row in rows])
        for part, rows in parts.items()
    }
    if names:
        arrays["names_x"] = encoder.read([row.example for row in names]).features.numpy()
        parts["names"] = names
    arrays |= {
        f"{part}_y": np.array([task.labels.index(row.label) for row in rows])
        for part, rows in parts.items()
    }
    np.savez(path.with_suffix(".part.npz"), **arrays)
    path.with_suffix(".part.npz").rename(path)


def stored(path: Path) -> Task:
    with np.load(path) as file:
        arrays = {name: torch.from_numpy(file[name]) for name in file.files}

    def rows(part: str) -> Rows:
        return Rows(arrays[f"{part}_x"], arrays[f"{part}_y"])

    names = rows("names") if "names_x" in arrays else None
    return Task(rows("gold"), names, rows("pool"), rows("design"))


def cut(task: Task, variant: str) -> Task:
    """The rows of a variant: a cut of pool and design rows, or equal shares of the latter."""

    def askew(rows: Rows, shares: tuple[float, ...]) -> Rows:
        return rows[variants.askew(rows.labels.numpy(), shares)]

    if variant == EQUAL:
        return replace(task, design=askew(task.design, (0.5, 0.5)))
    if variant not in variants.SKEWED:
        return task
    shares = variants.SKEWED[variant][1]
    return replace(task, pool=askew(task.pool, shares), design=askew(task.design, shares))


# ── models and corrections ───────────────────────────────────────────────────────────────────


def lines_of(task: Task, variant: str, seed: int) -> Iterator[dict[str, Any]]:
    """The scores of the teacher and of the final model; nothing where there is no estimate."""
    folds = folds_of(task.gold, task.pool.vectors, task.classes, seed=seed, names=task.names)
    if folds is None or not folds.know_something:
        return
    judges = Judges.of(folds, frozen=True)
    learnt = task.gold if task.names is None else task.gold + task.names
    teacher = logistic(learnt.vectors, learnt.labels, task.classes, strength=1.0)
    models = {"teacher": teacher, "final": final_head(task, teacher, folds)}
    for name, model in models.items():
        logits = model(task.pool.vectors)
        expected = expected_accuracy(logits.argmax(1), judges).accuracy
        temperature = temperature_for(logits, expected)
        pool, design = (
            (model(rows.vectors) / temperature).softmax(1).double()
            for rows in (task.pool, task.design)
        )
        scores = {}
        for correction, weights in corrections(task, pool, folds).items():
            answers = (design * weights).argmax(1)
            f1 = macro_f1(answers, task.design.labels, task.classes)
            scores[correction] = [round(100 * accuracy(answers, task.design.labels), 2)]
            scores[correction].append(round(100 * f1, 2))
        yield {
            "variant": variant,
            "seed": seed,
            "model": name,
            "rows": {"pool": len(pool), "design": len(design)},
            "accuracy, macro F1": scores,
            "shares off": shares_off(task, pool, folds),
            "abstain": promises(design, task.design.labels),
        }


def final_head(task: Task, teacher: Linear, folds: Folds) -> Linear:
    """The head after the probe rounds that the guard accepts."""
    first = teacher(task.pool.vectors)
    if folds.tilted(first.argmax(1)) < LEAST_BELIEF:
        return teacher
    limits = (LESS_BELIEF, BELIEF_PER_DRIFT, MOST_DRIFT)
    accept = as_the_product.passes(folds, first.argmax(1), limits)
    gold, pool = task.gold, task.pool
    heads = as_the_product.rounds(gold.vectors, gold.labels, pool.vectors, first, accept)
    return (heads or [teacher])[-1]


def corrections(task: Task, pool: Tensor, folds: Folds) -> dict[str, Tensor]:
    """By name, what calibrated probabilities are multiplied by, [C]; ``pool`` are the pool's.

    EM takes the labels' shares, which are equal, as those that the model believes: with its own
    mean belief in their place, EM is at its end before it starts.
    """
    belief, answered = class_shares(pool)
    return {
        AS_IT_IS: torch.ones_like(belief),
        **{f"EM, {rows} rows": pool_prior(pool, rows) * task.classes for rows in (0, 32, 128)},
        "folds": folds.prior / belief,
        POOL: answered / belief,
        "pool known": task.shares(task.pool) / belief,
        KNOWN: task.shares(task.design) / belief,
    }


def shares_off(task: Task, pool: Tensor, folds: Folds) -> dict[str, float]:
    """How far estimates of the pool's class shares are from the truth: total variation."""
    belief, answered = class_shares(pool)
    found = {"answers": answered, "belief": belief, "folds": folds.prior, "EM": pool_prior(pool)}
    truth = task.shares(task.pool)
    return {name: round(float((each - truth).abs().sum() / 2), 4) for name, each in found.items()}


def promises(p: Tensor, labels: Tensor) -> dict[str, list[float]]:
    """By threshold, the share of rows that have a label, what `predict` promises, what is right."""
    confidence, answers = p.max(1)
    found = {}
    for threshold in THRESHOLDS:
        labelled = confidence >= threshold
        if labelled.any():
            right = (answers == labels)[labelled]
            numbers = labelled, confidence[labelled], right
            found[str(threshold)] = [round(float(each.double().mean()), 4) for each in numbers]
    return found


# ── tables ───────────────────────────────────────────────────────────────────────────────────


def tables(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What the README shows."""
    names = [name for name in lines[0]["accuracy, macro F1"] if name != AS_IT_IS]
    yield f"| final model | runs | {' | '.join([AS_IT_IS, *names])} |"
    yield f"|---|---:|{'---:|' * (len(names) + 1)}"
    final = [line for line in lines if line["model"] == "final"]
    for variant in VARIANTS:
        own = [line for line in final if line["variant"] == variant]
        if own:
            yield row(variant, own, names)
    groups = {"base tasks": variants.BASE, "skewed cuts": tuple(variants.SKEWED)}
    for title, members in groups.items():
        yield row(title, [line for line in final if line["variant"] in members], names)
    teachers = [line for line in lines if line["model"] == "teacher"]
    for title, members in groups.items():
        own = [line for line in teachers if line["variant"] in members]
        yield row(f"{title}, teacher", own, names)
    for name, own in (("final", final), ("teacher", teachers)):
        off = [line["shares off"] for line in own if line["variant"] != EQUAL]
        means = ", ".join(f"{each} {fmean(one[each] for one in off):.3f}" for each in off[0])
        yield f"shares off, {name}: {means}"
    yield ""
    yield "| `--abstain` | runs | texts with a label | promised | right | mean difference |"
    yield "|---|---:|---:|---:|---:|---:|"
    scored = [line for line in final if line["variant"] != EQUAL]
    for threshold in THRESHOLDS:
        found = [line["abstain"].get(str(threshold)) for line in scored]
        numbers = [each for each in found if each]
        share, promised, right = (fmean(column) for column in zip(*numbers, strict=True))
        apart = fmean(abs(each[1] - each[2]) for each in numbers)
        yield (
            f"| {threshold} | {len(numbers)} | {share:.0%} | {promised:.3f} | {right:.3f} "
            f"| {apart:.3f} |"
        )


def row(title: str, lines: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    """Mean accuracy / macro F1 over runs as they are, and by how much each correction moves it."""
    scores = [line["accuracy, macro F1"] for line in lines]

    def mean(name: str) -> list[float]:
        return [fmean(each[name][part] for each in scores) for part in (0, 1)]

    before = mean(AS_IT_IS)
    moved = [
        [round(a - b, 1) + 0.0 for a, b in zip(mean(name), before, strict=True)] for name in names
    ]  # without a zero that has a sign of its own
    cells = ["{:.1f} / {:.1f}".format(*before), *("{:+.1f} / {:+.1f}".format(*m) for m in moved)]
    return f"| {title} | {len(lines)} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
