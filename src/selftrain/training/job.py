"""A job: what one run is, as data."""

from __future__ import annotations

from dataclasses import dataclass

from selftrain.data.rows import Split
from selftrain.data.task import Task
from selftrain.method.spec import Method, Tune
from selftrain.model.backbone import Backbone
from selftrain.model.build import build
from selftrain.model.classifier import Classifier


@dataclass(frozen=True, slots=True)
class Job:
    """What one run is: all that decides its result."""

    task: Task
    split: Split
    method: Method
    backbone: Backbone
    seed: int


def new_model(job: Job, tune: Tune, seed: int) -> Classifier:
    """A model with the pretrained weights, made as the tune says; the same seed, the same model."""
    return build(job.task, job.backbone, tune.architecture, seed=seed)
