"""Runs small enough to be killed fifty times: eight labels, forty texts, two rounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import torch

from selftrain.data.rows import Example, Labelled, Split
from selftrain.data.task import Task
from selftrain.method.losses import PHCE, EasyHard
from selftrain.method.recipes import recipe
from selftrain.method.selection import Selection
from selftrain.method.spec import Method, ProbeRounds, Tune
from selftrain.model.backbone import Backbone, load
from selftrain.model.classifier import Classifier
from selftrain.model.fast import trunk
from selftrain.model.pel import Adapter, Full
from selftrain.runs.manifest import Manifest
from selftrain.runs.train import train
from selftrain.training.job import Job
from selftrain.training.machine import Machine

WORDS = {"good": "great good fine yes film", "bad": "terrible bad dull no story"}
MACHINE = Machine(device="cpu", threads=1)
TASK = Task("small", tuple(WORDS))
METHOD = Method(
    "small",
    Tune(tuning=Full(), steps=20, batch_size=4, learning_rate=1e-3, head_learning_rate=3e-2),
    (
        Tune(
            tuning=Adapter(width=4, layers=1),
            loss=PHCE(),
            contrast=EasyHard(),
            steps=10,
            batch_size=4,
            learning_rate=3e-3,
            head_learning_rate=3e-2,
        ),
    ),
    rounds=2,
    pool=24,
    passes=3,
    dropout_layers=2,
    select=Selection(count=12),
    converged=0,
)


def shrunk(method: Method) -> Method:
    """The same choices in other sizes."""
    (student,) = method.student
    return replace(
        method,
        teacher=replace(
            method.teacher, steps=20, batch_size=4, learning_rate=1e-3, head_learning_rate=3e-2
        ),
        student=(
            replace(student, tuning=Adapter(width=4), steps=10, batch_size=8, learning_rate=3e-3),
        ),
        rounds=2,
        pool=24,
        passes=3,
        converged=0,
    )


LAPTOP = shrunk(recipe("upet-head-adapter"))
"""Heads that start from regression, gold rows in every batch, the largest and smallest scores."""
PROBE = replace(
    LAPTOP,
    rounds=1,
    probe=ProbeRounds(rounds=2, select=Selection(count=None, shares=(0.5, 1.0), how="topk")),
)
"""Two rounds of the teacher's head, a student, and two rounds of its head."""
DEFAULT = recipe("supcon")
CONTRAST = replace(
    DEFAULT,
    teacher=replace(DEFAULT.teacher, steps=8, min_epochs=None, batch_size=4, learning_rate=1e-3),
    student=(replace(DEFAULT.student[0], steps=6, batch_size=8, learning_rate=1e-3),),
    probe=PROBE.probe,
    pool=24,
    passes=3,
)
"""The default: teacher and student by contrast, class names, a guard of folds."""
METHODS = {"sampled": METHOD, "laptop": LAPTOP, "probe": PROBE, "contrast": CONTRAST}


def example(label: str, number: int) -> Example:
    words = Random(f"{label}/{number}").choices(WORDS[label].split(), k=5)
    return Example(f"{label}-{number}", " ".join(words))


def split() -> Split:
    gold = tuple(Labelled(example(label, n), label) for n in range(4) for label in WORDS)
    return Split(gold, [example(label, n) for n in range(4, 24) for label in WORDS])


def job(backbone: Backbone, method: Method = METHOD, seed: int = 7) -> Job:
    """The small run as a job."""
    return Job(TASK, split(), method, backbone, seed)


def manifest(backbone: Backbone, seed: int = 7) -> Manifest:
    return Manifest.of(job(backbone, seed=seed), MACHINE)


def probabilities(model: Classifier) -> torch.Tensor:
    return model.probabilities([row.example for row in split().labelled])


def go(folder: Path, backbone: Path, method: Method = METHOD) -> None:
    """The command that is killed and given again."""
    torch.set_num_threads(1)
    trunk.BLOCK = 8  # several blocks, first asked for in another order after a kill
    base = load(backbone)
    for _ in train(folder, job(base, method), MACHINE):
        pass
