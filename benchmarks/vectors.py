"""Vectors of an encoder that no fit changes: each text is read once for all fits of a script."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from selftrain.data.rows import Example
from selftrain.model.classifier import Classifier, Progress
from selftrain.model.heads import Output
from selftrain.training.probe import logits_of


def read_each_text_once() -> None:
    """Let all models share the vectors of the encoder, which a probe never changes."""
    vectors: dict[tuple[str, str | None], Tensor] = {}
    read = Classifier.read

    def remembered(
        model: Classifier, examples: Sequence[Example], progress: Progress | None = None
    ) -> Output:
        unread = {(each.text, each.pair): each for each in examples}
        unread = {key: each for key, each in unread.items() if key not in vectors}
        if unread:
            found = read(model, [*unread.values()], progress).features
            vectors.update(zip(unread, found, strict=True))
        features = torch.stack([vectors[each.text, each.pair] for each in examples])
        return Output(logits_of(model, features), features)

    Classifier.read = remembered  # type: ignore[method-assign]
