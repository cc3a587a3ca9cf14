"""SetFit 1.2.0 on the rows of ``on_test_rows.py``: the same encoder, labels and test rows.

    python benchmarks/development/setfit_on_test_rows.py DATA --python SETFIT_ENVIRONMENT/bin/python

SetFit runs with its default settings in an environment of its own. Tasks of more than seven classes
are left out: its pairs grow with the square of the labels. Lines that are there stay.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import variants
from on_test_rows import rows_of
from on_test_rows_summary import usual

from selftrain.model.embedded import minilm_folder

RUNS = Path(__file__).with_name("on_test_rows.jsonl")
TASKS = ("sst2", "agnews", "subj", "cr", "sst5", "imdb", "yelp5")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--python", required=True, help="of an environment with setfit==1.2.0")
    parser.add_argument("--variant", nargs="+", default=list(TASKS))
    parser.add_argument("--seed", nargs="+", type=int, default=[12, 21, 42])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("setfit_on_test_rows.jsonl"))
    options = parser.parse_args()
    plain = argparse.Namespace(labels=16, foreign=False, flipped=0, design=False)
    lines = variants.lines_of(options.out) if options.out.exists() else []
    done = {(line["variant"], line["seed"]) for line in lines}
    for seed in options.seed:
        for variant in options.variant:
            if (variant, seed) in done:
                continue
            task, split, test = rows_of(options.data, variant, seed, plain)
            with tempfile.TemporaryDirectory() as place:
                job = {
                    "model": str(minilm_folder()),
                    "classes": list(task.labels),
                    "texts": [row.example.text for row in split.labelled],
                    "labels": [row.label for row in split.labelled],
                    "asked": [row.example.text for row in test],
                    "seed": seed,
                    "threads": options.threads,
                    "place": place,
                }
                found = answered(options.python, job)
            right = [a == row.label for a, row in zip(found["answers"], test, strict=True)]
            line = {
                "variant": variant,
                "seed": seed,
                "test": len(test),
                "accuracy": sum(right) / len(right),
                "seconds": round(found["seconds"], 1),
            }
            with options.out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)
    print("\n".join(table(variants.lines_of(options.out), variants.lines_of(RUNS))))


def table(theirs: Sequence[dict[str, Any]], runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Both on the same rows, by task and seed; then the mean over the tasks."""
    ours = {(line["variant"], line["seed"]): line for line in runs if is_default(line)}
    yield "| | seed | SetFit 1.2.0 | `supcon` | difference |"
    yield "|---|---:|---:|---:|---:|"
    gains: dict[str, list[float]] = {}
    for line in sorted(theirs, key=lambda line: (line["variant"], line["seed"])):
        run = ours[line["variant"], line["seed"]]
        scores = 100 * line["accuracy"], 100 * run["accuracy"][run["final"]]
        gain = scores[1] - scores[0]
        gains.setdefault(line["variant"], []).append(gain)
        both = " | ".join(f"{score:.1f}" for score in scores)
        yield f"| {line['variant']} | {line['seed']} | {both} | {gain:+.1f} |"
    means = [fmean(each) for each in gains.values()]
    above = sum(gain > 0 for each in gains.values() for gain in each)
    yield ""
    yield (
        f"The mean over {len(means)} tasks is {fmean(means):+.1f}, the worst task "
        f"{min(means):+.1f}; {above} of {len(theirs)} pairs are above."
    )


def is_default(line: dict[str, Any]) -> bool:
    """Whether a run is one of the default as it is, on test rows."""
    return bool(line["method"] == "supcon" and usual(line))


def answered(python: str, job: dict[str, object]) -> dict[str, Any]:
    """What SetFit answers, and its seconds of training."""
    inner = Path(__file__).parents[1] / "setfit_alone.py"
    done = subprocess.run(
        [python, inner],
        input=json.dumps(job),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
