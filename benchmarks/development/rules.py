"""Rules that accept or refuse rounds by the signals of guard.jsonl: thresholds, harm, gain kept.

    python benchmarks/development/rules.py guard.jsonl --out rules.jsonl

A rule keeps the last of four rounds (a quarter, half, three quarters, all of the way) whose signals
pass, or round 0. Harm: the kept round is more than 1 point below round 0 on the design rows, and an
exact sign test on the paired answers has p < 0.05. Gain kept: the sum of what the kept rounds gain,
over the runs that gain without a guard, divided by what those gain. Thresholds are chosen on the
other groups of tasks (those that share texts are one group): of those with harm in at most 1 % of
the runs the one that keeps most gain; then the left-out group is judged.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import variants
from scipy.stats import beta

GROUP = {"sst5": "sst2", "sst2": "sst2"}
MOST_HARM = 0.01
CANDIDATES = (
    "rounds=5,prior=half,per_row=1000",
    "space=both,rounds=5,prior=half,per_row=1000",
    "rounds=5,per_row=1000",
)
RULES: dict[str, list[tuple[str, float]]] = {
    # signal, and the sign that makes larger better
    "belief plain": [("belief plain", 1)],
    "tilted by em": [("tilted plain by em plain", 1)],
    "tilted by shares": [("tilted plain by shares", 1)],
    "tilted by teacher": [("tilted plain by teacher", 1)],
    "tilted rounds by teacher": [("tilted rounds by teacher", 1)],
    "both tilted by teacher": [("tilted plain by teacher", 1), ("tilted rounds by teacher", 1)],
    "tilted by teacher + drift em": [("tilted plain by teacher", 1), ("drift em plain", -1)],
    "tilted by teacher + drift teacher": [("tilted plain by teacher", 1), ("drift teacher", -1)],
    "drift em": [("drift em plain", -1)],
    "drift teacher": [("drift teacher", -1)],
    "changed": [("changed", -1)],
    "tilted by em + drift em": [("tilted plain by em plain", 1), ("drift em plain", -1)],
    "tilted by shares + drift em": [("tilted plain by shares", 1), ("drift em plain", -1)],
    "belief plain + drift em": [("belief plain", 1), ("drift em plain", -1)],
    "tilted by em + drift teacher": [("tilted plain by em plain", 1), ("drift teacher", -1)],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("signals", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument(
        "--judge-seed",
        nargs="+",
        type=int,
        help="judge on these seeds, choose thresholds on the others",
    )
    parser.add_argument(
        "--fixed",
        nargs=2,
        type=float,
        help="judge `tilted by em + drift teacher` with these thresholds alone",
    )
    parser.add_argument("--teacher", default="2e-05x60", help="or `all`")
    parser.add_argument(
        "--probe", nargs="+", help="of which thresholds are chosen; all if not given"
    )
    options = parser.parse_args()
    lines = variants.lines_of(options.signals)
    lines = [line for line in lines if options.teacher in (line["teacher"], "all")]
    if options.probe:
        lines = [line for line in lines if line["probe"] in options.probe]
    groups = np.array([group(line["variant"]) for line in lines])
    judge = np.array(
        [not options.judge_seed or line["seed"] in options.judge_seed for line in lines]
    )
    choose = np.array(
        [not options.judge_seed or line["seed"] not in options.judge_seed for line in lines]
    )
    other_quota = np.array(["quota" in line["probe"] for line in lines])
    frozen = np.array(["space=frozen" in line["probe"] for line in lines])
    families = {
        f"only {name}": np.array([line["probe"] == name for line in lines]) for name in CANDIDATES
    } | {
        "all": np.ones(len(lines), bool),
        "proportional, teacher": ~other_quota & ~frozen,
        "proportional, frozen": ~other_quota & frozen,
        "equal or no quota": other_quota,
    }
    signals = {  # [runs, 4]; runs with fewer rounds repeat their last
        name: np.array([padded([r[name] for r in line["rounds"]]) for line in lines])
        for name in {signal for rule in RULES.values() for signal, _ in rule}
    }
    delta = np.array([padded([r["truth"]["delta"] for r in line["rounds"]]) for line in lines])
    p = np.array([padded([r["truth"]["p"] for r in line["rounds"]]) for line in lines])
    harm = (delta < -0.01) & (p < 0.05)
    print(f"{len(lines)} runs, {len(set(groups))} groups")
    if options.fixed:
        parts = RULES["tilted by em + drift teacher"]
        kept_round = keeps(signals, parts, tuple(options.fixed))
        for family, member in families.items():
            if member.any():
                unguarded = np.full(member.sum(), 4)
                print(family, judged(unguarded, delta[member], harm[member]))
                print("    guarded", judged(kept_round[member], delta[member], harm[member]))
        return
    results = []
    for name, parts in {"no guard": [], **RULES}.items():
        kept_round = np.full(len(lines), 4)
        chosen: dict[str, list[float]] = {}
        if parts:
            grids = [
                np.unique(np.quantile(sign * signals[s], np.linspace(0, 0.9, 31)))
                for s, sign in parts
            ]
            cuts = list(itertools.product(*grids))
            tables = [keeps(signals, parts, cut) for cut in cuts]  # of each: [runs], 0 to 4
            for left_out in sorted(set(groups)):
                seen = (groups != left_out) & choose
                best = max(range(len(cuts)), key=lambda i: worth(tables[i], delta, harm, seen))
                chosen[left_out] = [round(float(c), 5) for c in cuts[best]]
                kept_round[groups == left_out] = tables[best][groups == left_out]
        row: dict[str, Any] = {"rule": name, "thresholds by left-out group": chosen}
        for family, member in families.items():
            judged_runs = member & judge
            if judged_runs.any():
                row[family] = judged(kept_round[judged_runs], delta[judged_runs], harm[judged_runs])
        if parts:
            best = max(range(len(cuts)), key=lambda i: worth(tables[i], delta, harm, choose))
            row["thresholds of all"] = [round(float(c), 5) for c in cuts[best]]
        results.append(row)
        print(f"{name:<30}", row.get("thresholds of all", ""))
        for family in families:
            if family in row:
                print(f"    {family:<48} {shown(row[family])}")
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in results))


def shown(verdict: dict[str, Any]) -> str:
    """What ``judged`` found, on one line."""
    percent = {name: 100 * value for name, value in verdict.items()}
    return (
        f"runs {verdict['runs']:4d}  harm {verdict['harm']:3d} ({percent['harm rate']:4.1f} %, "
        f"95 % bound {percent['bound']:4.1f})  gain kept {percent['gain kept']:5.1f} %  "
        f"mean delta {percent['mean']:+5.2f}  refused {percent['refused']:4.1f} %"
    )


def group(variant: str) -> str:
    base = variant.split("-", maxsplit=1)[0]
    return GROUP.get(base, base)


def padded(values: list[float]) -> list[float]:
    return [*values, *[values[-1]] * (4 - len(values))]


def keeps(
    signals: dict[str, np.ndarray], parts: list[tuple[str, float]], cut: tuple[float, ...]
) -> np.ndarray:
    """The last round that passes, 1 to 4, or 0."""
    passes = np.all(
        [sign * signals[s] >= c for (s, sign), c in zip(parts, cut, strict=True)], axis=0
    )
    return np.where(passes, np.arange(1, 5), 0).max(1)


def value(kept_round: np.ndarray, what: np.ndarray) -> np.ndarray:
    """What of the kept rounds; zero for round 0."""
    return np.where(
        kept_round > 0, what[np.arange(len(kept_round)), np.maximum(kept_round, 1) - 1], 0
    )


def worth(
    kept_round: np.ndarray, delta: np.ndarray, harm: np.ndarray, seen: np.ndarray
) -> tuple[float, float]:
    """Harm first, where it is above the limit; then the gain."""
    rate = value(kept_round, harm)[seen].mean()
    gain = value(kept_round, delta)[seen].sum()
    return (-max(rate, MOST_HARM), gain)


def judged(kept_round: np.ndarray, delta: np.ndarray, harm: np.ndarray) -> dict[str, float]:
    runs, bad = len(kept_round), int(value(kept_round, harm).sum())
    gains = delta[:, -1] > 0
    change = value(kept_round, delta)
    return {
        "runs": runs,
        "harm": bad,
        "harm rate": bad / runs,
        "bound": float(beta.ppf(0.95, bad + 1, runs - bad)) if bad < runs else 1.0,
        "gain kept": float(change[gains].sum() / max(1e-9, delta[gains, -1].sum())),
        "mean": float(change.mean()),
        "refused": float((kept_round < 4).mean()),
    }


if __name__ == "__main__":
    main()
