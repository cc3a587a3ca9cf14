"""A small scikit-learn classifier: its texts, and settings that train in a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from command import sentences
from selftrain import SelfTrainingClassifier

TEXTS, LABELS = map(list, zip(*sentences(8), strict=True))
POOL = [text for text, _ in sentences(30, first=100)]
NEW = [text for text, _ in sentences(6, first=300)]
TUNE = {"steps": 3, "batch_size": 4}
QUICK = {"pool": 24, "passes": 2, "converged": 0, "teacher": TUNE, "student": TUNE}

Make = Callable[..., SelfTrainingClassifier]


def quick_estimator(backbone: Path, **params: Any) -> SelfTrainingClassifier:
    """A classifier with these parameters, and quick ones otherwise."""
    usual = {"backbone": str(backbone), "rounds": 1, "changes": QUICK}
    return SelfTrainingClassifier(**{**usual, **params})
