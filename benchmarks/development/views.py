"""Two views: the teacher's features, and what a frozen prompt says of the same texts.

    python benchmarks/development/views.py FEATURES --out views.jsonl

The words' probabilities are divided by the pool's mean. ``product``: the teacher's centred logits
and a prompt view's, each divided by its spread over the pool, added; ``weighed``: the prompt's
share is how far its out-of-fold accuracy on the gold rows is above chance, against that of a
regression on frozen vectors (folds of four). Probe rounds (five, proportional, C = 1000 / rows,
half-held prior) then start from those beliefs, on the teacher's features or on both side by side.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import variants
from probe_rounds import DEFAULT, log, rounds, scores, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from variants import Rows, Run

PROBE = replace(DEFAULT, per_row=1000.0, rounds=5, prior="half")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("features", type=Path)
    parser.add_argument("--seed", nargs="+", type=int, default=[12, 21, 42, 87, 100])
    parser.add_argument("--out", type=Path, default=Path("views.jsonl"))
    parser.add_argument("--teacher", default="2e-05x60")
    options = parser.parse_args()
    lines = []
    for seed in options.seed:
        for variant in variants.ALL:
            base = variants.SKEWED[variant][0] if variant in variants.SKEWED else variant
            words = options.features / f"{base}-prompt.npz"
            path = variants.file_of(options.features, variant, seed, options.teacher)
            if words.exists() and path.exists():
                found = measured(options.features, variant, seed, words, options.teacher)
                lines.append({"variant": variant, "seed": seed, "teacher": options.teacher} | found)
    options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    names = [name for name in lines[0] if isinstance(lines[0][name], dict)]
    print(f"{'variant':<20}", *(f"{name[:16]:>16}" for name in names))
    for variant in dict.fromkeys(line["variant"] for line in lines):
        of_variant = [line for line in lines if line["variant"] == variant]
        print(
            f"{variant:<20}",
            *(f"{100 * mean_accuracy(of_variant, name):16.1f}" for name in names),
            len(of_variant),
        )


def mean_accuracy(lines: list[dict[str, Any]], name: str) -> float:
    return float(np.mean([line[name]["accuracy"] for line in lines]))


def measured(folder: Path, variant: str, seed: int, words: Path, teacher: str) -> dict[str, Any]:
    run = variants.load(folder, variant, seed, teacher)
    path = variants.file_of(folder, variant, seed, teacher)
    with np.load(words) as file:
        row_of_uid = {uid: i for i, uid in enumerate(file["uid"].tolist())}
        vectors, logits = file["vectors"], file["logits"]
    with np.load(path) as file:
        uids = {part: file[f"{part}_uid"].tolist() for part in ("gold", "pool", "design")}
        design_y = file["design_y"]
    design_at = np.arange(len(design_y))
    if variant in variants.SKEWED:
        design_at = variants.askew(design_y, variants.SKEWED[variant][1])
    uids["pool"] = [uids["pool"][i] for i in run.pool_at]
    uids["design"] = [uids["design"][i] for i in design_at]
    rows = {part: [row_of_uid[uid] for uid in uids[part] if uid in row_of_uid] for part in uids}
    assert all(len(rows[part]) == len(uids[part]) for part in uids), "texts without a prompt's view"
    by_words = {part: log(softmax(logits[numbers])) for part, numbers in rows.items()}
    pool_mean = np.log(softmax(by_words["pool"]).mean(0))
    by_words = {part: z - pool_mean for part, z in by_words.items()}  # divided by the pool's mean
    mask = {
        part: vectors[numbers] / np.linalg.norm(vectors[rows["gold"]], axis=1).mean()
        for part, numbers in rows.items()
    }
    mask_mean = mask["pool"].mean(0)
    mask = {part: 3 * (x - mask_mean) for part, x in mask.items()}
    length = np.linalg.norm(mask["gold"], axis=1).mean()
    mask = {part: x / length for part, x in mask.items()}
    mask_model = LogisticRegression(C=1.0, max_iter=500).fit(mask["gold"], run.gold_y)
    by_mask = {part: log(mask_model.predict_proba(mask[part])) for part in mask}
    y, classes = run.design_y, run.classes
    frozen = run.gold.frozen / np.linalg.norm(run.gold.frozen, axis=1).mean()
    out_of_fold_frozen = cross_val_predict(
        LogisticRegression(C=10.0, max_iter=500), frozen, run.gold_y, cv=4
    )
    out_of_fold_mask = cross_val_predict(
        LogisticRegression(C=1.0, max_iter=500), mask["gold"], run.gold_y, cv=4
    )
    above = {
        "frozen": max(0.0, float((out_of_fold_frozen == run.gold_y).mean()) - 1 / classes),
        "mask": max(0.0, float((out_of_fold_mask == run.gold_y).mean()) - 1 / classes),
        "words": max(0.0, float((by_words["gold"].argmax(1) == run.gold_y).mean()) - 1 / classes),
    }
    by_teacher = {"pool": log(softmax(run.pool.logits)), "design": log(softmax(run.design.logits))}

    def mixed(parts: list[tuple[float, dict[str, np.ndarray]]]) -> dict[str, np.ndarray]:
        return {
            part: sum(w * log(softmax(z[part])) / log(softmax(z["pool"])).std() for w, z in parts)
            for part in ("pool", "design")
        }

    starts = {
        "product words": mixed([(1, by_teacher), (1, by_words)]),
        "product mask": mixed([(1, by_teacher), (1, by_mask)]),
        "weighed words": mixed([(above["frozen"], by_teacher), (above["words"], by_words)]),
        "weighed all": mixed(
            [(above["frozen"], by_teacher), (above["words"], by_words), (above["mask"], by_mask)]
        ),
    }

    def score(z: np.ndarray) -> dict[str, float]:
        return scores(z.argmax(1), y, classes)

    found = {
        "above chance": list(above.items()),
        "teacher score": score(run.design.logits),
        "words": score(by_words["design"]),
        "mask regression": score(by_mask["design"]),
        **{name: score(z["design"]) for name, z in starts.items()},
        "probe": score(rounds(run, PROBE)[1][-1]),
    }
    both = {
        part: np.concatenate(
            [
                getattr(run, part).features / np.linalg.norm(run.gold.features, axis=1).mean(),
                mask[part],
            ],
            1,
        )
        / 2**0.5
        for part in mask
    }
    for name in ("product words", "weighed all"):
        z = starts[name]
        # Which rows are surest does not depend on the spread of the logits; the shift does.
        spread = 4.0
        changed_run = replace_rows(run, z, spread, None)
        found[f"probe of {name}"] = score(rounds(changed_run, PROBE)[1][-1])
        changed_run = replace_rows(run, z, spread, both)
        found[f"on both, {name}"] = score(rounds(changed_run, PROBE)[1][-1])
    return found


def replace_rows(
    run: Run, z: dict[str, np.ndarray], spread: float, features: dict[str, np.ndarray] | None
) -> Run:
    """The run with other beliefs to start from, and other features to go on with."""

    def rows(part: str) -> Rows:
        old = getattr(run, part)
        return replace(
            old,
            logits=spread * z[part] if part in z else old.logits,
            features=old.features if features is None else features[part],
        )

    return replace(run, gold=rows("gold"), pool=rows("pool"), design=rows("design"))


if __name__ == "__main__":
    main()
