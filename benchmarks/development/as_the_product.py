"""Probe rounds as the product runs them, on stored features: a refused round is no teacher.

    python benchmarks/development/features.py DATA FEATURES --small --seed 12 21
    python benchmarks/development/as_the_product.py FEATURES --out as_the_product.jsonl

For each variant and seed: the gain on design rows without a guard, with the product's limits, and
with the earlier fixed ones; and how far estimates of the pool's class shares are from the truth,
which only this audit reads (total variation).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
import variants
from probe_rounds import chosen
from torch import Tensor

from selftrain.method.spec import PROBE_SHARES, ProbeRounds
from selftrain.training.folds import Folds, Rows, folds_of
from selftrain.training.guard import BELIEF_PER_DRIFT, LESS_BELIEF, MOST_DRIFT
from selftrain.training.probe import shares, shift_to
from selftrain.training.regression import Linear, logistic

PROBE = ProbeRounds()
Limits = tuple[float, float, float]
GUARDS: dict[str, Limits | None] = {
    "no guard": None,
    "the product's": (LESS_BELIEF, BELIEF_PER_DRIFT, MOST_DRIFT),
    "fixed": (0.006, 0.0, 0.14),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("features", type=Path)
    parser.add_argument("--seed", nargs="+", type=int, default=[12, 21])
    parser.add_argument("--out", type=Path, default=Path("as_the_product.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [
        measured(options.features, variant, seed)
        for variant in variants.ALL
        for seed in options.seed
    ]
    options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name, members in (("base", variants.BASE), ("skewed", tuple(variants.SKEWED))):
        own = [line for line in lines if line["variant"] in members]
        for guard in GUARDS:
            gains = [line["gain"][guard] for line in own]
            print(f"{name:7} {guard:14} mean {fmean(gains):+.2f} worst {min(gains):+.1f}")
        for estimate in own[0]["apart"]:
            print(f"{name:7} {estimate:14} {fmean(line['apart'][estimate] for line in own):.3f}")


def measured(folder: Path, variant: str, seed: int) -> dict[str, Any]:
    """One variant and seed."""
    run = variants.load(folder, variant, seed)
    gold, pool, design = (
        torch.from_numpy(rows.features) for rows in (run.gold, run.pool, run.design)
    )
    labels, y = torch.from_numpy(run.gold_y), torch.from_numpy(run.design_y)
    frozen = torch.from_numpy(run.gold.frozen), torch.from_numpy(run.pool.frozen)
    folds = folds_of(Rows(frozen[0], labels), frozen[1], run.classes, seed=seed)
    assert folds is not None
    first = torch.from_numpy(run.pool.logits)
    teacher = accuracy(torch.from_numpy(run.design.logits), y)
    gain, answers = {}, first
    for name, limits in GUARDS.items():
        heads = rounds(gold, labels, pool, first, passes(folds, first.argmax(1), limits))
        final = heads[-1](design) if heads else torch.from_numpy(run.design.logits)
        gain[name] = round(accuracy(final, y) - teacher, 2)
        if name == "the product's" and heads:
            answers = heads[-1](pool)
    truth = np.bincount(variants.pool_gold(folder, run), minlength=run.classes) / len(pool)
    estimates = {
        "em": folds.prior,
        "teacher": shares(first.argmax(1), run.classes),
        "final round": shares(answers.argmax(1), run.classes),
    }
    apart = {k: round(float(np.abs(v.numpy() - truth).sum() / 2), 4) for k, v in estimates.items()}
    return {"variant": variant, "seed": seed, "teacher": teacher, "gain": gain, "apart": apart}


def rounds(
    gold: Tensor, labels: Tensor, pool: Tensor, first: Tensor, accept: Callable[[Tensor], bool]
) -> list[Linear]:
    """The heads of the accepted rounds, in order."""
    teacher = first
    heads: list[Linear] = []
    wanted = shares(first.argmax(1), first.shape[1])
    for share in PROBE_SHARES:
        at = torch.from_numpy(chosen(teacher.softmax(1).numpy(), share, "prop"))
        x, y = torch.cat([gold, pool[at]]), torch.cat([labels, teacher.argmax(1)[at]])
        head = logistic(x, y, first.shape[1], strength=1 / (PROBE.penalty * len(y)))
        head = head.shifted(PROBE.prior * shift_to(head(pool), wanted))
        if accept(head(pool).argmax(1)):
            teacher = head(pool)
            heads.append(head)
    return heads


def passes(folds: Folds, first: Tensor, limits: Limits | None) -> Callable[[Tensor], bool]:
    """The guard's test of answers on the pool."""

    def accept(after: Tensor) -> bool:
        if limits is None:
            return True
        less, per_drift, most = limits
        classes = len(folds.prior)
        counts = [answers.bincount(minlength=classes) for answers in (first, after)]
        drift = float((counts[0] - counts[1]).abs().sum()) / 2 / len(first)
        gain = folds.tilted(after) - folds.tilted(first)
        return gain >= per_drift * drift - less and drift <= most

    return accept


def accuracy(logits: Tensor, y: Tensor) -> float:
    return 100 * float((logits.argmax(1) == y).double().mean())


if __name__ == "__main__":
    main()
