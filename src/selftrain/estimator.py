"""The scikit-learn face: fit, predict, predict_proba, save, load.

from selftrain import SelfTrainingClassifier

model = SelfTrainingClassifier().fit(texts, labels, unlabelled=pool)
model.predict(["a fine film"])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from selftrain.data import Example, Labeled, Notes, make_split, uid_of
from selftrain.errors import DataError

if TYPE_CHECKING:
    from selftrain.classifier import Classifier
    from selftrain.loop import Round


class SelfTrainingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A text classifier from a few labels and many unlabelled texts.

    Texts are strings, or pairs of strings. Unlabelled texts come as ``unlabelled=``, or in
    ``X`` with a label of None. Parameters are those of ``selftrain fit``.
    """

    def __init__(
        self,
        method: str = "upet-head-adapter",
        *,
        preset: str = "laptop",
        backbone: str | None = None,
        rounds: int | None = None,
        changes: Mapping[str, Any] | None = None,
        template: str | None = None,
        words: Mapping[str, str] | None = None,
        seed: int = 12,
        device: str | None = None,
        threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.preset = preset
        self.backbone = backbone
        self.rounds = rounds
        self.changes = changes
        self.template = template
        self.words = words
        self.seed = seed
        self.device = device
        self.threads = threads
        self.verbose = verbose

    def fit(
        self,
        X: Iterable[str | tuple[str, str]],  # noqa: N803  (scikit-learn's name)
        y: Iterable[object],
        unlabelled: Iterable[str | tuple[str, str]] = (),
    ) -> SelfTrainingClassifier:
        """Learn from labelled texts, and from those labelled None or given as unlabelled."""
        from selftrain.backbone import load
        from selftrain.config import method_of
        from selftrain.loop import self_train
        from selftrain.machine import Machine
        from selftrain.report import line_of
        from selftrain.task import from_labels

        texts, labels = list(X), list(y)
        if len(texts) != len(labels):
            raise DataError(f"{len(texts)} texts have {len(labels)} labels; expected one for each")
        rows = examples_of(texts)
        gold = [
            Labeled(row, str(label))
            for row, label in zip(rows, labels, strict=True)
            if not missing(label)
        ]
        pool = [row for row, label in zip(rows, labels, strict=True) if missing(label)]
        notes = Notes()
        split = make_split(gold, [*pool, *examples_of(unlabelled)], notes=notes)
        names = {str(label): label for label in labels if not missing(label)}
        pair = split.labeled[0].example.pair is not None
        task = from_labels(names, pair=pair).changed(
            {"template": self.template, "words": self.words or {}}
        )
        chosen = method_of(self.method, self.preset, self.changes or {}, self.rounds)
        backbone = load(self.backbone or ("minilm-mlm" if chosen.prompts else "minilm"))
        on = Machine(device=self.device, threads=self.threads)
        self.rounds_: list[Round] = []
        for round_ in self_train(task, split, chosen, backbone=backbone, seed=self.seed, on=on):
            if self.verbose:
                print(line_of(round_, chosen.rounds))
            self.rounds_.append(round_)
        self.notes_ = dict(notes)
        self.model_: Classifier = [r.model for r in self.rounds_ if r.accepted][-1]
        self.classes_ = np.asarray([names[label] for label in self.model_.labels])
        return self

    def predict_proba(self, X: Iterable[str | tuple[str, str]]) -> Any:  # noqa: N803
        """The probability of each class, [N, C], in the order of ``classes_``."""
        check_is_fitted(self, "model_")
        return self.model_.probabilities(examples_of(X)).double().numpy()

    def predict(self, X: Iterable[str | tuple[str, str]]) -> Any:  # noqa: N803
        """The most probable label of each text."""
        return self.classes_[self.predict_proba(X).argmax(1)]

    def save(self, folder: str | Path) -> None:
        """Write the model: its label names, its trained tensors, and which backbone it needs."""
        check_is_fitted(self, "model_")
        self.model_.save(Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> SelfTrainingClassifier:
        """A fitted classifier from a saved model; its labels are strings."""
        from selftrain.classifier import Classifier

        self = cls()
        self.model_ = Classifier.load(Path(folder))
        self.classes_ = np.asarray(self.model_.labels)
        return self


def examples_of(texts: Iterable[str | tuple[str, str]]) -> list[Example]:
    """Strings, or pairs of strings, as examples."""
    found = []
    for text in texts:
        first, second = (text, None) if isinstance(text, str) else text
        found.append(Example(uid_of(first, second), first, second))
    return found


def missing(label: object) -> bool:
    """Whether a label says "none": None, or NaN as data frames have it."""
    return label is None or (isinstance(label, float) and label != label)
