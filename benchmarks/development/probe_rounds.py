"""Self-training of a logistic regression on remembered features: the head alone moves.

    python benchmarks/development/probe_rounds.py FEATURES --out probe_rounds.jsonl

In round r of R the surest r/R of the pool (by the last round's beliefs; at first the teacher's, or
on frozen features those of a regression on the labels) get their hard label, and a regression is
fitted on them and the gold rows. ``quota``: that share of each predicted class (``prop``), as many
of each class (``equal``), or the surest over all classes (``none``). Answers of each round are kept
beside the features for guard.py. scikit-learn's logistic regression, started from the last round's
weights. Design rows are answered and counted after the fact.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import variants
from sklearn.linear_model import LogisticRegression
from variants import Run

SEEDS = (12, 21, 42, 87, 100)


@dataclass(frozen=True, slots=True)
class Probe:
    """How the rounds go."""

    space: str = "teacher"  # teacher, frozen, both
    quota: str = "prop"  # prop, equal, none
    penalty: float = 10.0  # C of scikit-learn
    rounds: int = 20
    until: float = 1.0  # the share of the last round
    gold: float = 1.0  # the weight of a gold row; a pseudo-labelled one has 1
    scale: str = "mean"  # vectors divided by the mean length, or each by its own ("unit")
    anchor: float = 0.0  # the share of round 0's beliefs in each round's, on the scale of logits
    prior: str = "free"  # "held": each round's mean belief is shifted to round 0's answers
    agree: bool = False  # take only rows whose label a regression on the other vectors gives too
    per_row: float = 0.0  # if set, C = per_row / rows: the same penalty on the mean loss
    pool: int = 0  # if set, only so many rows of the pool are learnt from
    mean: bool = False  # answer by the mean belief of all rounds, round 0 included

    @property
    def name(self) -> str:
        """What differs from the default."""
        base = asdict(Probe())
        changed = [
            f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}"
            for k, v in asdict(self).items()
            if v != base[k]
        ]
        return ",".join(changed) or "default"


DEFAULT = Probe()
FROZEN = replace(DEFAULT, space="frozen")
SETS: dict[str, list[Probe]] = {
    "main": [
        DEFAULT,
        FROZEN,
        replace(DEFAULT, quota="equal"),
        replace(DEFAULT, quota="none"),
        replace(DEFAULT, rounds=5),
        replace(FROZEN, quota="equal"),
    ],
    "screen": [
        replace(DEFAULT, penalty=1.0),
        replace(DEFAULT, penalty=100.0),
        replace(DEFAULT, rounds=2),
        replace(DEFAULT, rounds=1),
        replace(DEFAULT, rounds=10),
        replace(DEFAULT, until=0.5),
        replace(DEFAULT, gold=10.0),
        replace(DEFAULT, scale="unit"),
        replace(DEFAULT, space="both"),
        replace(FROZEN, penalty=1.0),
        replace(FROZEN, rounds=5),
    ],
    "penalty": [
        replace(DEFAULT, penalty=0.3),
        replace(DEFAULT, penalty=0.5),
        replace(DEFAULT, penalty=2.0),
        replace(DEFAULT, penalty=3.0),
        *(
            replace(DEFAULT, penalty=1.0, **change)
            for change in (
                {"rounds": 10},
                {"rounds": 40},
                {"until": 0.5},
                {"until": 0.8},
                {"gold": 10.0},
                {"quota": "equal"},
                {"quota": "none"},
                {"space": "both"},
                {"agree": True},
                {"mean": True},
                {"anchor": 0.25},
                {"prior": "held"},
                {"scale": "unit"},
            )
        ),
        replace(FROZEN, penalty=3.0),
        replace(FROZEN, penalty=3.0, rounds=5),
        replace(FROZEN, penalty=1.0, quota="equal"),
    ],
    "per row": [
        *(
            replace(DEFAULT, per_row=c, rounds=r)
            for c in (300.0, 1000.0, 3000.0, 10000.0)
            for r in (5, 20)
        ),
        *(
            replace(DEFAULT, per_row=c, rounds=r, **change)
            for c in (1000.0, 3000.0)
            for r in (5, 20)
            for change in (
                {"prior": "held"},
                {"prior": "half"},
                {"anchor": 0.25},
                {"agree": True},
                {"agree": True, "prior": "half"},
                {"gold": 10.0},
                {"space": "both"},
                {"mean": True},
            )
        ),
        replace(DEFAULT, per_row=3000.0, quota="equal"),
        replace(FROZEN, per_row=3000.0, rounds=5),
        replace(FROZEN, per_row=10000.0, rounds=5),
        replace(FROZEN, per_row=3000.0),
    ],
    "final": [
        *(
            replace(DEFAULT, per_row=1000.0, rounds=5, **change)
            for change in (
                {},
                {"prior": "half"},
                {"prior": "held"},
                {"anchor": 0.25},
                {"space": "both"},
                {"space": "both", "prior": "half"},
                {"space": "both", "anchor": 0.25},
                {"prior": "half", "anchor": 0.25},
                {"quota": "equal"},
                {"quota": "none"},
            )
        ),
        replace(DEFAULT, per_row=1000.0),
        replace(DEFAULT, per_row=1000.0, prior="half"),
        replace(DEFAULT, penalty=1.0, rounds=5),
        replace(DEFAULT, penalty=1.0),
        replace(FROZEN, per_row=3000.0, rounds=5),
        replace(FROZEN, per_row=3000.0, rounds=5, prior="half"),
        replace(FROZEN, per_row=3000.0, rounds=5, anchor=0.25),
    ],
    "pool sizes": [
        replace(DEFAULT, per_row=1000.0, rounds=5, prior="half", pool=size)
        for size in (250, 500, 1000, 2000)
    ],
    "safer": [
        replace(DEFAULT, anchor=0.25),
        replace(DEFAULT, anchor=0.5),
        replace(DEFAULT, prior="held"),
        replace(DEFAULT, prior="held", anchor=0.5),
        replace(DEFAULT, agree=True),
        replace(DEFAULT, mean=True),
        replace(DEFAULT, penalty=0.1),
        replace(DEFAULT, penalty=1.0, rounds=5),
        replace(DEFAULT, penalty=1.0, anchor=0.5),
        replace(DEFAULT, space="both", anchor=0.5),
        replace(DEFAULT, until=0.5, anchor=0.5),
        replace(FROZEN, anchor=0.5),
        replace(FROZEN, prior="held"),
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("features", type=Path)
    parser.add_argument("--out", type=Path, default=Path("probe_rounds.jsonl"))
    parser.add_argument("--variant", nargs="+", default=list(variants.ALL))
    parser.add_argument("--seed", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--set", nargs="+", default=["main"], choices=list(SETS))
    parser.add_argument("--teacher", default="2e-05x60")
    options = parser.parse_args()
    done = set()
    if options.out.exists():
        for line in variants.lines_of(options.out):
            done.add((line["variant"], line["seed"], line["teacher"], line["probe"]))
    answers_folder = options.features / "answers"
    answers_folder.mkdir(exist_ok=True)
    probes = [probe for name in options.set for probe in SETS[name]]
    for seed in options.seed:
        for variant in options.variant:
            if not variants.file_of(options.features, variant, seed, options.teacher).exists():
                continue
            todo = [p for p in probes if (variant, seed, options.teacher, p.name) not in done]
            if not todo:
                continue
            run = variants.load(options.features, variant, seed, options.teacher)
            for probe in todo:
                line, answers = measured(run, probe)
                place = answers_folder / f"{variant}-{seed}-{options.teacher}-{probe.name}.npz"
                np.savez_compressed(place, **answers)
                line = {
                    "variant": variant,
                    "seed": seed,
                    "teacher": options.teacher,
                    "probe": probe.name,
                } | line
                with options.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(
                    variant,
                    seed,
                    probe.name,
                    f"{line['before']['accuracy']:.3f}",
                    f"{line['after']['accuracy']:.3f}",
                    f"{line['seconds']:.1f}s",
                    flush=True,
                )


def measured(run: Run, probe: Probe) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """One run of all rounds, its answers, and how right they are on the design rows."""
    started = time.perf_counter()
    pool_p, design_p, labels_alone = rounds(run, probe)
    seconds = time.perf_counter() - started
    answers = design_p.argmax(2)  # [R + 1, N]
    y = run.design_y
    right = answers == y
    counts = np.stack([np.bincount(a, minlength=run.classes) for a in pool_p.argmax(2)])
    line = {
        "rows": {"pool": pool_p.shape[1], "design": len(y)},
        "before": scores(answers[0], y, run.classes),
        "labels alone": labels_alone,
        "after": scores(answers[-1], y, run.classes),
        "lost": int((right[0] & ~right[-1]).sum()),
        "won": int((~right[0] & right[-1]).sum()),
        "accuracy of rounds": right.mean(1).round(4).tolist(),
        "pool answers": [counts[0].tolist(), counts[-1].tolist()],
        "changed": float((pool_p[0].argmax(1) != pool_p[-1].argmax(1)).mean()),
        "seconds": round(seconds, 2),
    }
    every_answer = {
        "pool": pool_p.argmax(2).astype(np.int8),
        "design": answers.astype(np.int8),
        "pool_p_last": pool_p[-1].astype(np.float16),
    }
    return line, every_answer


def rounds(run: Run, probe: Probe) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Beliefs about pool and design rows before and after each round, [R + 1, N, C]."""
    gold_x, pool_x, design_x = spaces(run, probe)
    gold_w = np.full(len(gold_x), probe.gold)
    model = LogisticRegression(C=probe.penalty, max_iter=300, tol=1e-3, warm_start=True)
    model.fit(gold_x, run.gold_y, gold_w)
    labels_alone = scores(model.predict_proba(design_x).argmax(1), run.design_y, run.classes)
    if probe.space == "frozen":
        pool, design = [model.predict_proba(pool_x)], [model.predict_proba(design_x)]
    else:
        pool, design = [softmax(run.pool.logits)], [softmax(run.design.logits)]
    allowed = np.ones(len(pool_x), dtype=bool)
    if probe.pool:  # the first rows: their order is that of a hash of the text
        allowed[probe.pool :] = False
    if probe.agree:
        other = replace(probe, space="teacher" if probe.space == "frozen" else "frozen")
        other_gold, other_pool, _ = spaces(run, other)
        second = LogisticRegression(C=probe.penalty, max_iter=300).fit(other_gold, run.gold_y)
        other_labels = second.predict(other_pool)
    for number in range(1, probe.rounds + 1):
        share = probe.until * number / probe.rounds
        if probe.agree:
            allowed = pool[-1].argmax(1) == other_labels
        at = np.flatnonzero(allowed)[chosen(pool[-1][allowed], share, probe.quota)]
        x = np.concatenate([gold_x, pool_x[at]])
        if probe.per_row:
            model.C = probe.per_row / (gold_w.sum() + len(at))
        y = np.concatenate([run.gold_y, pool[-1][at].argmax(1)])
        model.fit(x, y, np.concatenate([gold_w, np.ones(len(at))]))
        logits_now = [log(model.predict_proba(pool_x)), log(model.predict_proba(design_x))]
        if probe.anchor:
            first = [log(pool[0]), log(design[0])]
            spread = logits_now[0].std() / first[0].std()
            logits_now = [
                (1 - probe.anchor) * z + probe.anchor * spread * z0
                for z, z0 in zip(logits_now, first, strict=True)
            ]
        if probe.prior != "free":
            shift = shift_to(logits_now[0], np.bincount(pool[0].argmax(1), minlength=run.classes))
            shift *= {"held": 1.0, "half": 0.5}[probe.prior]
            logits_now = [z + shift for z in logits_now]
        pool.append(softmax(logits_now[0]))
        design.append(softmax(logits_now[1]))
    if probe.mean:
        pool.append(np.mean(pool, axis=0))
        design.append(np.mean(design, axis=0))
    return np.stack(pool), np.stack(design), labels_alone


def log(p: np.ndarray) -> np.ndarray:
    """Centred logits."""
    z = np.log(p + 1e-9)
    return z - z.mean(1, keepdims=True)


def shift_to(z: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """What to add to the logits so that the mean belief has these shares."""
    wanted, shift = (counts + 1) / (counts + 1).sum(), np.zeros(z.shape[1])
    for _ in range(50):
        shift = shift + np.log(wanted / softmax(z + shift).mean(0))
    return shift


def spaces(run: Run, probe: Probe) -> list[np.ndarray]:
    """Gold, pool and design rows as the regression reads them."""

    def scaled(parts: list[np.ndarray]) -> list[np.ndarray]:
        if probe.scale == "unit":
            return [x / np.linalg.norm(x, axis=1, keepdims=True) for x in parts]
        length = np.linalg.norm(parts[0], axis=1).mean()
        return [x / length for x in parts]

    parts_of_run = (run.gold, run.pool, run.design)
    teacher = scaled([rows.features for rows in parts_of_run])
    frozen = scaled([rows.frozen for rows in parts_of_run])
    if probe.space == "both":
        return [np.concatenate(pair, axis=1) / 2**0.5 for pair in zip(teacher, frozen, strict=True)]
    return frozen if probe.space == "frozen" else teacher


def chosen(p: np.ndarray, share: float, quota: str) -> np.ndarray:
    """The rows whose labels are learnt from."""
    label, sure = p.argmax(1), p.max(1)
    order = np.argsort(-sure, kind="stable")
    total = share * len(p)
    if quota == "none":
        return order[: int(np.ceil(total))]
    chosen_of_class = []
    for c in range(p.shape[1]):
        of_class = order[label[order] == c]
        count = share * len(of_class) if quota == "prop" else total / p.shape[1]
        chosen_of_class.append(of_class[: int(np.ceil(count - 1e-9))])
    return np.concatenate(chosen_of_class)


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def scores(answers: np.ndarray, y: np.ndarray, classes: int) -> dict[str, float]:
    """Accuracy and macro F1."""
    f1 = []
    for c in range(classes):
        both = ((answers == c) & (y == c)).sum()
        f1.append(2 * both / max(1, (answers == c).sum() + (y == c).sum()))
    return {"accuracy": float((answers == y).mean()), "macro f1": float(np.mean(f1))}


if __name__ == "__main__":
    main()
