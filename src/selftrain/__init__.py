"""selftrain: a few labels and many unlabelled texts become a text classifier you can check.

Names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import logging
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selftrain.data.rows import Example, Labelled, Lesson, Split
    from selftrain.data.task import Task
    from selftrain.errors import SelftrainError
    from selftrain.estimator import SelfTrainingClassifier
    from selftrain.method.recipes import recipe
    from selftrain.method.spec import Method, Tune
    from selftrain.model.backbone import load as load_backbone
    from selftrain.runs.saved import SavedRun, read_run
    from selftrain.training.evaluate import evaluate
    from selftrain.training.job import Job
    from selftrain.training.loop import Round, self_train

__version__ = version("selftrain")

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent unless a user asks

_HOMES = {
    "Example": "data.rows",
    "Labelled": "data.rows",
    "Job": "training.job",
    "Lesson": "data.rows",
    "Method": "method.spec",
    "Round": "training.loop",
    "SavedRun": "runs.saved",
    "SelfTrainingClassifier": "estimator",
    "SelftrainError": "errors",
    "Split": "data.rows",
    "Task": "data.task",
    "Tune": "method.spec",
    "evaluate": "training.evaluate",
    "load_backbone": "model.backbone",
    "read_run": "runs.saved",
    "recipe": "method.recipes",
    "self_train": "training.loop",
}

__all__ = [
    "Example",
    "Job",
    "Labelled",
    "Lesson",
    "Method",
    "Round",
    "SavedRun",
    "SelfTrainingClassifier",
    "SelftrainError",
    "Split",
    "Task",
    "Tune",
    "__version__",
    "evaluate",
    "load_backbone",
    "read_run",
    "recipe",
    "self_train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module `selftrain` has no name `{name}`")
    home = import_module(f"selftrain.{_HOMES[name]}")
    return getattr(home, "load" if name == "load_backbone" else name)
