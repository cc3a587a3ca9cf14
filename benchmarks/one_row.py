"""What T dropout passes in the last layer cost, with that layer for one position and for all.

    python benchmarks/one_row.py

`minilm-mlm` read by a prompt, 256 made-up texts, one thread. Both ways take turns in one process
and the median is kept; seconds are those of the processor, so that other work on the machine
counts little. A plain pass is the whole model once over the same rows, without dropout.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from selftrain.data import task as tasks
from selftrain.data.rows import Example, examples
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import load
from selftrain.model.build import build, with_dropout_in
from selftrain.model.classifier import Classifier, states_at
from selftrain.model.pel import Adapter
from selftrain.training.annotate import annotate
from selftrain.training.machine import Machine

SENTENCES = (
    "a great film",
    "the story is long and dull, and nobody in it seems to care",
    "funny, warm and well acted",
    "it opens with a promise that the second half does not keep, whatever the music tries to say",
    "no",
    "two hours of noise",
    "what could have been a small and honest drama about a father and his sons becomes, under a "
    "director who trusts neither his actors nor his audience, one loud scene after another",
)
ROWS = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/one_row.json"))
    options = parser.parse_args()
    machine, rows = Machine(device="cpu", threads=1), texts()
    torch.set_num_threads(1)
    model = build(
        tasks.find("sst2"), load("minilm-mlm"), Architecture(Adapter(width=64), "prompt"), seed=1
    )
    narrow = with_dropout_in(model, "last")
    jobs: dict[str, Callable[[], object]] = {
        "plain pass": lambda: model.probabilities(rows),
        "passes": lambda: list(annotate(narrow, rows, options.passes, seed=1, machine=machine)),
    }
    spent: dict[tuple[str, str], list[float]] = {}
    for repeat in range(options.repeats + 1):
        for position in ("one", "all"):
            with last_layer_of(position, model, narrow):
                for name, job in jobs.items():
                    started = time.process_time()
                    job()
                    if repeat:  # the first warms up
                        seconds = time.process_time() - started
                        spent.setdefault((position, name), []).append(seconds)
    cost = {key: statistics.median(values) for key, values in spent.items()}
    lengths = [len(row.ids) for row in model.encode(rows)]
    result: dict[str, object] = {
        "backbone": "minilm-mlm",
        "rows": len(rows),
        "tokens": {"mean": round(statistics.mean(lengths), 1), "most": max(lengths)},
        "T": options.passes,
        "repeats": options.repeats,
        "torch": torch.__version__,
    }
    for position in ("one", "all"):
        passes = cost[position, "passes"]
        result[f"last layer of {position}"] = {
            "seconds of a plain pass": round(cost[position, "plain pass"], 3),
            f"seconds of {options.passes} passes": round(passes, 3),
            "least and most": [round(edge(spent[position, "passes"]), 3) for edge in (min, max)],
            "in its own plain passes": round(passes / cost[position, "plain pass"], 2),
            "in plain passes of all": round(passes / cost["all", "plain pass"], 2),
        }
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


def texts() -> list[Example]:
    """Of one sentence or two, from one word to 64."""
    count = len(SENTENCES)
    pairs = [(SENTENCES[i % count], SENTENCES[i // count % count]) for i in range(ROWS)]
    return examples([a if i % 3 else f"{a}. {b}" for i, (a, b) in enumerate(pairs)])


@contextmanager
def last_layer_of(position: str, *models: Classifier) -> Iterator[None]:
    """For `all`, let models compute the last layer for all positions."""
    before = [model.states_at for model in models]
    if position == "all":
        for model in models:
            model.states_at = states_at
    try:
        yield
    finally:
        for model, quick in zip(models, before, strict=True):
            model.states_at = quick


if __name__ == "__main__":
    main()
