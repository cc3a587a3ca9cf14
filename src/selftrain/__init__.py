"""selftrain: a few labels and many unlabelled texts become a text classifier you can check.

Names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selftrain.backbone import load as load_backbone
    from selftrain.data import Example, Labeled, Lesson, Split
    from selftrain.errors import SelftrainError
    from selftrain.estimator import SelfTrainingClassifier
    from selftrain.evaluate import evaluate
    from selftrain.loop import Round, self_train
    from selftrain.method import Method, Tune
    from selftrain.recipes import recipe
    from selftrain.task import Task

__version__ = version("selftrain")

_HOMES = {
    "Example": "data",
    "Labeled": "data",
    "Lesson": "data",
    "Method": "method",
    "Round": "loop",
    "SelfTrainingClassifier": "estimator",
    "SelftrainError": "errors",
    "Split": "data",
    "Task": "task",
    "Tune": "method",
    "evaluate": "evaluate",
    "load_backbone": "backbone",
    "recipe": "recipes",
    "self_train": "loop",
}

__all__ = [
    "Example",
    "Labeled",
    "Lesson",
    "Method",
    "Round",
    "SelfTrainingClassifier",
    "SelftrainError",
    "Split",
    "Task",
    "Tune",
    "__version__",
    "evaluate",
    "load_backbone",
    "recipe",
    "self_train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module `selftrain` has no name `{name}`")
    home = import_module(f"selftrain.{_HOMES[name]}")
    return getattr(home, "load" if name == "load_backbone" else name)
