"""The simple models that runs are compared with: a constant answer, regressions on fixed inputs."""

from __future__ import annotations

import warnings
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


WORD = r"(?u)\w+|[^\w\s]"


class TfidfLogistic:
    """Logistic regression on tf-idf of words and pairs of words; two texts are joined by a blank.

    Both are scikit-learn's, with C = 1. A sign that belongs to no word counts as one, so that every
    text has a word.
    """

    def __init__(self, task: Task, labelled: Sequence[Labelled]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        self.labels = task.labels
        gold = [self.labels.index(item.label) for item in labelled]
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORD)
        self.regression: Any = make_pipeline(words, LogisticRegression(max_iter=1000))
        with warnings.catch_warnings():  # of many classes, with a few labels each
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            self.regression.fit(joined([item.example for item in labelled]), gold)

    def probabilities(self, examples: Sequence[Example]) -> Tensor:
        """The regression's probabilities in the task's order, [N, C]."""
        return in_order(self.regression, joined(examples), len(self.labels))


def joined(examples: Sequence[Example]) -> list[str]:
    """The texts of examples, the two of a pair with a blank between them."""
    return [each.text if each.pair is None else f"{each.text} {each.pair}" for each in examples]


def in_order(regression: Any, inputs: Any, classes: int) -> Tensor:
    """The probabilities of scikit-learn's regression, 0 for a class that it never saw, [N, C]."""
    seen = torch.from_numpy(regression.predict_proba(inputs))
    p = seen.new_zeros(len(seen), classes)
    p[:, torch.from_numpy(regression.classes_)] = seen
    return p.float()


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
        return in_order(self.regression, self.embed(examples).numpy(), len(self.labels))


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
