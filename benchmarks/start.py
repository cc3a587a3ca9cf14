"""What several scripts begin with: warm libraries, the method a student's name means, a teacher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from selftrain.data.rows import Labelled, Lesson
from selftrain.data.task import Task
from selftrain.method.recipes import recipe
from selftrain.method.spec import Method
from selftrain.method.upet import LAPTOP
from selftrain.model.backbone import Backbone, load
from selftrain.model.build import build
from selftrain.model.classifier import Classifier
from selftrain.training.fit import fit
from selftrain.training.job import Job
from selftrain.training.loop import train_teacher
from selftrain.training.machine import Machine


def warm(task: Task, gold: Sequence[Labelled], backbone: Backbone, machine: Machine) -> None:
    """Two steps of a teacher and of a student, thrown away, and a pass without dropout.

    Whatever is loaded or started at the first use (accelerate, scikit-learn, threads) is then
    outside every clock.
    """
    for tune in (LAPTOP.teacher, LAPTOP.student[0]):
        model = build(task, backbone, tune.architecture, seed=0)
        fit(model, Lesson(gold=tuple(gold)), replace(tune, steps=2), seed=0, machine=machine)


def student_of(name: str) -> tuple[Method, Backbone]:
    """What `head@minilm` or `prompt@minilm-mlm` means: UPET's method, and the backbone."""
    reader, _, backbone = name.partition("@")
    return recipe(f"upet-{reader}-adapter"), load(backbone)


def teacher_of(job: Job, machine: Machine) -> Classifier:
    """The teacher of a run, without the run."""
    return train_teacher(job, machine).model
