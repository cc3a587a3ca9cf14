"""Second opinions beside the default's teacher: a tuned prompt, cross entropy, TAPT, frozen.

    python benchmarks/development/second_views.py DATA VIEWS
    python benchmarks/development/second_views.py DATA VIEWS --judge --out second_views.jsonl

The first call trains each view on the same 16 labels a class and remembers what it says of the pool
and of the design rows (one file a task, seed and view; those that are there are not trained again).
The second combines them in seconds: the mean of two views' calibrated log-probabilities, and a
regression of the teacher's vectors on the labels that the two together give to the pool.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import features
import numpy as np
import torch
from probe_rounds import DEFAULT, rounds
from prompt_view import PROMPTS
from variants import SKEWED, Rows, Run, askew, base_of

from selftrain.data.rows import Labelled, Split
from selftrain.data.task import Task
from selftrain.method.recipes import recipe
from selftrain.method.spec import TAPT, Method, Tune
from selftrain.model.backbone import load
from selftrain.model.pel import Probe
from selftrain.training.job import Job
from selftrain.training.loop import train_teacher
from selftrain.training.machine import Machine

POOL, DESIGN = 1000, 800
PROBE = replace(DEFAULT, per_row=1000.0, rounds=5, prior="half")
SCREENED = ("sst2", "cr", "subj", "agnews")
DEFAULT_METHOD = recipe("supcon")
VIEWS: dict[str, tuple[str, Method]] = {
    "default": ("minilm", DEFAULT_METHOD),
    "cross entropy": ("minilm", recipe("head-ft")),
    "prompt": ("minilm-mlm", recipe("prompt-ft")),
    "frozen": ("minilm", replace(recipe("head-ft"), teacher=Tune(tuning=Probe()))),
    "tapt": ("minilm-mlm", replace(DEFAULT_METHOD, tapt=TAPT(steps=100))),
    "default, minilm-mlm": ("minilm-mlm", DEFAULT_METHOD),
}
"""By name, the backbone and the method whose teacher is trained."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("views", type=Path, help="the folder of what the views say")
    parser.add_argument("--task", nargs="+", default=list(SCREENED))
    parser.add_argument("--seed", nargs="+", type=int, default=[12, 21])
    parser.add_argument("--view", nargs="+", default=list(VIEWS))
    parser.add_argument("--judge", action="store_true", help="combine what is there")
    parser.add_argument("--out", type=Path, default=Path("second_views.jsonl"))
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    features.POOL, features.DESIGN_ELSE = POOL, DESIGN
    features.DESIGN = {name: min(size, DESIGN) for name, size in features.SMALL_DESIGN.items()}
    if options.judge:
        judge(options)
        return
    options.views.mkdir(parents=True, exist_ok=True)
    for seed in options.seed:
        for name in options.task:
            for view in options.view:
                path = file_of(options.views, name, seed, view)
                if not path.exists():
                    remember(path, options, name, seed, view)


def file_of(folder: Path, task: str, seed: int, view: str) -> Path:
    return folder / f"{task}-{seed}-{view.replace(' ', '_').replace(',', '')}.npz"


def remember(path: Path, options: argparse.Namespace, name: str, seed: int, view: str) -> None:
    """Train one view and write what it says of all rows."""
    started = time.perf_counter()
    task, gold, pool, design = features.cut(options.data, name, seed)
    backbone, method = VIEWS[view]
    if method.teacher.reader == "prompt":
        template, words = PROMPTS[name]
        task = task.changed({"template": template, "words": words})
    split = Split(tuple(gold), tuple(row.example for row in pool))
    job = Job(task, split, method, load(backbone), seed)
    model = train_teacher(job, Machine(threads=options.threads)).model
    training = time.perf_counter() - started
    arrays: dict[str, np.ndarray] = {"seconds": np.array(training)}
    for part, rows in (("gold", gold), ("pool", pool), ("design", design)):
        said = model.read([row.example for row in rows])
        arrays[f"{part}_features"] = said.features.numpy()
        arrays[f"{part}_logits"] = said.logits.numpy()
        arrays[f"{part}_y"] = classes(rows, task)
    np.savez(path.with_suffix(".part.npz"), **arrays)
    path.with_suffix(".part.npz").rename(path)
    right = (arrays["design_logits"].argmax(1) == arrays["design_y"]).mean()
    print(name, seed, view, f"{100 * right:.1f}", f"{training:.0f} s", flush=True)


def classes(rows: list[Labelled], task: Task) -> np.ndarray:
    return np.array([task.labels.index(row.label) for row in rows])


# ── combining them ───────────────────────────────────────────────────────────────────────────


def judge(options: argparse.Namespace) -> None:
    """Write, for each task, cut and seed, the accuracy of each view and of each pair with ours."""
    with options.out.open("w") as file:
        for variant in (*options.task, *(cut for cut in SKEWED if base_of(cut) in options.task)):
            for seed in options.seed:
                base = base_of(variant)
                views = {
                    view: np.load(file_of(options.views, base, seed, view))
                    for view in options.view
                    if file_of(options.views, base, seed, view).exists()
                }
                if "default" not in views:
                    continue
                line = {"variant": variant, "seed": seed, **compared(variant, views)}
                file.write(json.dumps(line) + "\n")
                print(json.dumps(line))


def compared(variant: str, views: dict[str, np.lib.npyio.NpzFile]) -> dict[str, object]:
    """Accuracies in points: of each view, of pairs, and after five probe rounds from each."""
    ours = views["default"]
    at = {part: np.arange(len(ours[f"{part}_y"])) for part in ("pool", "design")}
    if variant in SKEWED:
        at = {part: askew(ours[f"{part}_y"], SKEWED[variant][1]) for part in at}
    truth = ours["design_y"][at["design"]]

    def says(view: str, part: str) -> np.ndarray:
        """The view's log-probabilities, at the temperature of a mean confidence of 0.8."""
        return tempered(views[view][f"{part}_logits"][at[part]])

    def points(logits: np.ndarray) -> float:
        return round(100 * float((logits.argmax(1) == truth).mean()), 2)

    found: dict[str, object] = {}
    for view in views:
        found[view] = [points(says(view, "design")), probed(views, at, truth, view)]
        if view != "default":
            both = {part: (says("default", part) + says(view, part)) / 2 for part in at}
            found[f"default and {view}"] = [
                points(both["design"]),
                probed(views, at, truth, "default", both["pool"]),
            ]
    return found


def tempered(logits: np.ndarray, confidence: float = 0.8) -> np.ndarray:
    scores = torch.from_numpy(logits).double()
    tried = torch.linspace(-3, 4, 71).exp()
    means = torch.stack([(scores / t).softmax(1).max(1).values.mean() for t in tried])
    best = tried[(means - confidence).abs().argmin()]
    return np.asarray((scores / best).log_softmax(1).numpy())


def probed(
    views: dict[str, np.lib.npyio.NpzFile],
    at: dict[str, np.ndarray],
    truth: np.ndarray,
    view: str,
    pool_logits: np.ndarray | None = None,
) -> float:
    """Accuracy after five probe rounds on a view's vectors, from its own or from given beliefs."""
    said = views[view]

    def rows(part: str, logits: np.ndarray | None = None) -> Rows:
        where = at.get(part, slice(None))
        vectors = said[f"{part}_features"][where]
        own = said[f"{part}_logits"][where]
        return Rows(vectors, own if logits is None else logits.astype(own.dtype), vectors)

    run = Run(
        variant="",
        seed=0,
        gold=rows("gold"),
        gold_y=said["gold_y"],
        pool=rows("pool", pool_logits),
        design=rows("design"),
        design_y=truth,
        pool_at=at["pool"],
    )
    _, beliefs, _ = rounds(run, PROBE)
    return round(100 * float((beliefs[-1].argmax(1) == truth).mean()), 2)


if __name__ == "__main__":
    main()
