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
    """The classes, and for prompts the template and label words."""
    split: Split
    """Labelled rows, dev rows and the unlabelled pool."""
    method: Method
    """The recipe with every choice made."""
    backbone: Backbone
    """The pretrained encoder."""
    seed: int
    """Decides every random draw of the run."""


def new_model(job: Job, tune: Tune, seed: int) -> Classifier:
    """A model with the pretrained weights, built as the tune says; a seed always gives the same."""
    return build(job.task, job.backbone, tune.architecture, seed=seed)
