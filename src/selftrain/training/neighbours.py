"""Which easy rows lie next to each other, as the teacher sees them (CEST)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch.nn.functional as F
from torch import Tensor

from selftrain.data.rows import Lesson
from selftrain.method.spec import Tune
from selftrain.model.classifier import Classifier

ROWS_AT_ONCE = 1024  # compared with all others


def with_neighbours(lesson: Lesson, teacher: Classifier, tunes: Sequence[Tune]) -> Lesson:
    """The lesson with the neighbours that its students ask for; unchanged where none does."""
    wanted = max((tune.smooth.neighbours for tune in tunes if tune.smooth is not None), default=0)
    if not wanted or not lesson.easy:
        return lesson
    features = teacher.read([row.example for row in lesson.easy]).features
    return replace(lesson, near=nearest(features, wanted))


def nearest(features: Tensor, count: int) -> tuple[tuple[int, ...], ...]:
    """For each row [N, D] the places of the most similar others, by cosine, the closest first.

    >>> import torch
    >>> nearest(torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]), 1)
    ((1,), (0,), (1,))
    """
    unit = F.normalize(features, dim=1)
    count = min(count, len(unit) - 1)
    neighbours: list[tuple[int, ...]] = []
    for start in range(0, len(unit), ROWS_AT_ONCE):
        similarity = unit[start : start + ROWS_AT_ONCE] @ unit.T  # [n, N]
        for place in range(len(similarity)):
            similarity[place, start + place] = -2  # a row is no neighbour of itself
        neighbours += map(tuple, similarity.topk(count, dim=1).indices.tolist())
    return tuple(neighbours)
