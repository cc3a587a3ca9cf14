"""Signals that do not come from a round's own beliefs, for every run of probe_rounds.py.

    python benchmarks/development/guard.py FEATURES --runs probe_rounds.jsonl --out guard.jsonl

K = 4 folds of the gold rows; for each complement a logistic regression on FROZEN pretrained vectors
(never the teacher's: its encoder saw every label). ``plain`` folds saw labels alone; ``rounds``
folds then went through five proportional probe rounds on frozen vectors, each by itself, so that
they know the pool too. Their probabilities are calibrated on the held-out gold rows (one
temperature with a weak prior). Signals compare the answers of a round with those of round 0 on a
fixed slice of at most 2,048 pool rows. How right the design rows are is written beside them, to
judge rules with; no signal reads it. rules.py chooses and judges the rules.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import variants
from probe_rounds import chosen, softmax
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from variants import Run

SLICE = 2048
FOLDS = 4
ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("features", type=Path)
    parser.add_argument("--runs", type=Path, default=Path("probe_rounds.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("guard.jsonl"))
    parser.add_argument("--seed", nargs="+", type=int)
    parser.add_argument("--probe", nargs="+", help="only these; all if not given")
    options = parser.parse_args()
    key = ("variant", "seed", "teacher", "probe")
    done_lines = variants.lines_of(options.out) if options.out.exists() else []
    done = {tuple(line[k] for k in key) for line in done_lines}
    groups: dict[tuple[str, int, str], list[str]] = {}
    for line in variants.lines_of(options.runs):
        name = tuple(line[k] for k in key)
        wanted = (not options.seed or line["seed"] in options.seed) and (
            not options.probe or line["probe"] in options.probe
        )
        if name not in done and wanted:
            groups.setdefault(name[:3], []).append(line["probe"])
    for (variant, seed, teacher), probes in groups.items():
        run = variants.load(options.features, variant, seed, teacher)
        started = time.perf_counter()
        folds = Folds(run)
        seconds = time.perf_counter() - started
        for probe in probes:
            answers = options.features / "answers" / f"{variant}-{seed}-{teacher}-{probe}.npz"
            with np.load(answers) as file:
                pool, design = file["pool"].astype(int), file["design"].astype(int)
            last = len(pool) - 1
            numbers = sorted({max(1, round(last * part)) for part in (0.25, 0.5, 0.75, 1)})
            line = {
                "variant": variant,
                "seed": seed,
                "teacher": teacher,
                "probe": probe,
                "classes": run.classes,
                "gold out of fold": folds.out_of_fold,
                "temperature": folds.temperature,
                "prior": folds.priors,
                "seconds of folds": round(seconds, 2),
                "rounds": [
                    {"round": number}
                    | folds.signals(pool[0], pool[number])
                    | {"truth": truth(design[0], design[number], run.design_y)}
                    for number in numbers
                ],
            }
            with options.out.open("a") as out:
                out.write(json.dumps(rounded(line)) + "\n")
        print(variant, seed, len(probes), f"{time.perf_counter() - started:.1f}s", flush=True)


def rounded(value: object) -> object:
    """Floats with five digits: the file is committed."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def truth(before: np.ndarray, after: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """What only design labels tell: the change in accuracy, and an exact two-sided sign test."""
    lost = int(((before == y) & (after != y)).sum())
    won = int(((before != y) & (after == y)).sum())
    p = binomtest(lost, lost + won).pvalue if lost + won else 1.0
    return {
        "delta": float((after == y).mean() - (before == y).mean()),
        "lost": lost,
        "won": won,
        "p": float(p),
    }


class Folds:
    """Fold regressions on frozen vectors, and what they believe of a slice of the pool."""

    def __init__(self, run: Run) -> None:
        scale = np.linalg.norm(run.gold.frozen, axis=1).mean()
        gold, pool = run.gold.frozen / scale, run.pool.frozen / scale
        random = np.random.default_rng(run.seed)
        self.slice_rows = np.sort(random.permutation(len(pool))[:SLICE])
        k = min(FOLDS, np.bincount(run.gold_y).min())
        cuts = list(StratifiedKFold(k, shuffle=True, random_state=run.seed).split(gold, run.gold_y))
        kinds = {"plain": 0, "rounds": ROUNDS}
        gold_logits = {kind: np.zeros((len(gold), run.classes)) for kind in kinds}
        pool_logits: dict[str, list[np.ndarray]] = {kind: [] for kind in kinds}
        for learnt, left_out in cuts:
            for kind, rounds in kinds.items():
                model = fitted(gold[learnt], run.gold_y[learnt], pool, rounds)
                gold_logits[kind][left_out] = np.log(model.predict_proba(gold[left_out]) + 1e-12)
                pool_logits[kind].append(np.log(model.predict_proba(pool[self.slice_rows]) + 1e-12))
        self.temperature = {kind: temperature(gold_logits[kind], run.gold_y) for kind in kinds}
        self.out_of_fold = {
            kind: float((gold_logits[kind].argmax(1) == run.gold_y).mean()) for kind in kinds
        }
        self.belief = {
            kind: np.mean([softmax(z / self.temperature[kind]) for z in pool_logits[kind]], axis=0)
            for kind in kinds
        }  # [N, C]
        self.vote = {kind: np.stack([z.argmax(1) for z in pool_logits[kind]]) for kind in kinds}
        teacher_counts = np.bincount(
            run.pool.logits[self.slice_rows].argmax(1), minlength=run.classes
        )
        em_priors = {f"em {kind}": em_prior(self.belief[kind]) for kind in kinds}
        vote_counts = np.bincount(self.vote["rounds"].ravel(), minlength=run.classes)
        self.prior = em_priors | {
            "shares": vote_counts / vote_counts.sum(),
            "teacher": teacher_counts / teacher_counts.sum(),
        }
        self.priors = {name: np.round(prior, 4).tolist() for name, prior in self.prior.items()}
        self.classes = run.classes

    def signals(self, before: np.ndarray, after: np.ndarray) -> dict[str, float]:
        """How a round's answers on the slice compare with those of round 0."""
        old, new = before[self.slice_rows], after[self.slice_rows]
        moved = np.flatnonzero(old != new)
        values: dict[str, float] = {"changed": len(moved) / len(old)}
        for kind, belief in self.belief.items():
            gain = belief[moved, new[moved]] - belief[moved, old[moved]]
            values[f"belief {kind}"] = float(gain.sum() / len(old))
            values[f"z {kind}"] = float(gain.sum() / np.sqrt((gain**2).sum() + 1e-12))
            vote = self.vote[kind][:, moved]
            values[f"votes {kind}"] = float(
                ((vote == new[moved]).mean(0) - (vote == old[moved]).mean(0)).sum() / len(old)
            )
            # The labels are as many of each class; the pool is not: the same belief by its prior.
            for name in ("shares", "em plain", "teacher"):
                tilted = belief * self.prior[name]
                tilted /= tilted.sum(1, keepdims=True)
                gain = tilted[moved, new[moved]] - tilted[moved, old[moved]]
                values[f"tilted {kind} by {name}"] = float(gain.sum() / len(old))
        answer_shares = [
            np.bincount(answers, minlength=self.classes) / len(old) for answers in (old, new)
        ]
        for name, prior in self.prior.items():
            apart = [np.abs(share - prior).sum() / 2 for share in answer_shares]
            values[f"drift {name}"] = float(apart[1] - apart[0])
            values[f"apart {name}"] = float(apart[1])
        values["least class"] = float((answer_shares[1] / np.maximum(answer_shares[0], 1e-9)).min())
        return values


def fitted(x: np.ndarray, y: np.ndarray, pool: np.ndarray, rounds: int) -> LogisticRegression:
    """A regression on the labels, then proportional probe rounds of it."""
    model = LogisticRegression(C=10.0, max_iter=300, tol=1e-3, warm_start=True).fit(x, y)
    for number in range(1, rounds + 1):
        p = model.predict_proba(pool)
        at = chosen(p, number / rounds, "prop")
        model.fit(np.concatenate([x, pool[at]]), np.concatenate([y, p[at].argmax(1)]))
    return model


def temperature(z: np.ndarray, y: np.ndarray) -> float:
    """argmin NLL(z / T) with a weak prior on log T."""

    def cost(log_t: float) -> float:
        p = softmax(z / np.exp(log_t))
        return float(-np.log(p[np.arange(len(y)), y] + 1e-12).sum() + log_t**2 / 2)

    return float(np.exp(minimize_scalar(cost, bounds=(-3, 3), method="bounded").x))


def em_prior(p: np.ndarray, rounds: int = 200, rows: float = 32.0) -> np.ndarray:
    """Saerens' EM from equal shares, shrunk by so many rows of equal shares."""
    classes = p.shape[1]
    prior = np.full(classes, 1 / classes)
    for _ in range(rounds):
        weighed = p * prior * classes
        weighed /= weighed.sum(1, keepdims=True)
        prior = (weighed.sum(0) + rows / classes) / (len(p) + rows)
    return prior


if __name__ == "__main__":
    main()
