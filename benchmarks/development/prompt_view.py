"""A second view, frozen: what `minilm-mlm` says at the mask of a prompt, computed once a task.

    python benchmarks/development/prompt_view.py DATA FEATURES --task sst2 cr --seed 12 21

For every text that the seeds use: the hidden state at the mask and the logits of the label words.
Tasks whose text is in the add-on's corpus (dbpedia, imdb, yelp5) are left out.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import features
import numpy as np
import torch

from selftrain.data.rows import Example
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import load
from selftrain.model.build import build
from selftrain.model.pel import Adapter

REVIEW = "{text} It was {mask} ."
PROMPTS: dict[str, tuple[str, dict[str, str]]] = {
    "sst2": (REVIEW, {"negative": "terrible", "positive": "great"}),
    "cr": (REVIEW, {"negative": "terrible", "positive": "great"}),
    "sst5": (
        REVIEW,
        {
            "very_negative": "terrible",
            "negative": "bad",
            "neutral": "okay",
            "positive": "good",
            "very_positive": "great",
        },
    ),
    "agnews": (
        "{mask} News: {text}",
        {"World": "World", "Sports": "Sports", "Business": "Business", "Sci/Tech": "Tech"},
    ),
    "subj": (REVIEW, {"objective": "real", "subjective": "great"}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("features", type=Path)
    parser.add_argument("--task", nargs="+", default=list(PROMPTS))
    parser.add_argument("--seed", nargs="+", type=int, default=[12, 21, 42])
    options = parser.parse_args()
    torch.set_num_threads(1)
    backbone = load("minilm-mlm")
    for name in options.task:
        path = options.features / f"{name}-prompt.npz"
        if path.exists():
            continue
        started = time.perf_counter()
        example_by_uid: dict[str, Example] = {}
        for seed in options.seed:
            task, *parts = features.cut(options.data, name, seed)
            example_by_uid |= {row.example.uid: row.example for rows in parts for row in rows}
        template, words = PROMPTS[name]
        task = task.changed({"template": template, "words": words})
        model = build(task, backbone, Architecture(Adapter(width=1), "prompt"), seed=0)
        out = model.read(list(example_by_uid.values()))
        np.savez(
            path,
            uid=np.array(list(example_by_uid)),
            vectors=out.features.numpy(),
            logits=out.logits.numpy(),
        )
        print(name, len(example_by_uid), f"{time.perf_counter() - started:.1f}s", flush=True)


if __name__ == "__main__":
    main()
