"""The simple models every run is compared with: the majority class, a frozen encoder with LR."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from selftrain.data.rows import Example, Labelled
from selftrain.data.task import Task
from selftrain.model.architecture import Architecture
from selftrain.model.pel import Probe
from selftrain.training.evaluate import Predictor

if TYPE_CHECKING:
    from selftrain.model.backbone import Backbone
    from selftrain.model.classifier import Classifier

MAJORITY = "majority"
FROZEN = "frozen-lr"
FROZEN_APART = "frozen-lr-apart"
"""Two texts encoded separately: for tasks of pairs alone."""


class Majority:
    """Always the most frequent label of these rows; of several, the first in the task's order."""

    def __init__(self, task: Task, rows: Sequence[Labelled]) -> None:
        self.labels = task.labels
        counts = Counter(item.label for item in rows)
        self.winner = max(range(len(self.labels)), key=lambda c: (counts[self.labels[c]], -c))

    def probabilities(self, examples: Sequence[Example]) -> Tensor:
        """One for the winner, zero for the others, [N, C]."""
        p = torch.zeros(len(examples), len(self.labels))
        p[:, self.winner] = 1
        return p


class FrozenLogistic:
    """Logistic regression on the frozen encoder's pooled vectors, scaled to length 1.

    What a user would try first, and hard to beat with 16 labels a class. The penalty is
    scikit-learn's default, C = 1. A pair is encoded as one text; with ``separate`` its two texts
    u and v are encoded separately, as [u, v, |u - v|, u * v].
    """

    def __init__(
        self,
        task: Task,
        backbone: Backbone,
        labelled: Sequence[Labelled],
        *,
        separate: bool = False,
    ) -> None:
        from sklearn.linear_model import LogisticRegression

        from selftrain.model.build import build  # late: tables need only the names of references

        self.labels = task.labels
        self.separate = separate
        self.encoder: Classifier = build(task, backbone, Architecture(Probe()), seed=0)
        gold = [self.labels.index(item.label) for item in labelled]
        self.regression: Any = LogisticRegression(max_iter=1000)
        self.regression.fit(self.embed([item.example for item in labelled]).numpy(), gold)

    def embed(self, examples: Sequence[Example]) -> Tensor:
        """Pooled vectors of length 1, [N, D]; of pairs encoded separately [N, 4 D]."""
        if not self.separate:
            return self._read(examples)
        u = self._read([Example(each.uid, each.text) for each in examples])
        v = self._read([Example(each.uid, each.pair or "") for each in examples])
        return torch.cat([u, v, (u - v).abs(), u * v], dim=1)

    def _read(self, examples: Sequence[Example]) -> Tensor:
        return F.normalize(self.encoder.read(examples).features, dim=1)

    def probabilities(self, examples: Sequence[Example]) -> Tensor:
        """The regression's probabilities in the task's order, [N, C]."""
        seen = torch.from_numpy(self.regression.predict_proba(self.embed(examples).numpy()))
        p = seen.new_zeros(len(examples), len(self.labels))
        p[:, torch.from_numpy(self.regression.classes_)] = seen
        return p.float()


Reference = Callable[[Task, "Backbone", Sequence[Labelled], Sequence[Labelled]], Predictor]
"""Makes a model from a task, a backbone, the labelled rows, and the rows to score."""
REFERENCES: dict[str, Reference] = {
    MAJORITY: lambda task, _backbone, _labelled, scored: Majority(task, scored),
    FROZEN: lambda task, backbone, labelled, _: FrozenLogistic(task, backbone, labelled),
    FROZEN_APART: lambda task, backbone, labelled, _: FrozenLogistic(
        task, backbone, labelled, separate=True
    ),
}
"""By their names in a comparison. The majority class is that of the scored rows: a floor that the
same number of labels of each class cannot show."""
