"""``selftrain.json``: what a program must know of an exported model, and the sha256 of its files.

selftrain-lite reads it (``lite/src/selftrain_lite/folder.py``), so its entries are a format.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Literal

from selftrain.data.columns import clean_label
from selftrain.errors import DataError
from selftrain.export.origin import Origin
from selftrain.export.parity import Parity
from selftrain.export.weights import Weights
from selftrain.model.classifier import Classifier

FACTS = "selftrain.json"
FORMAT = 1
MAX_BATCH = 32
Layout = Literal["onnx", "sentence-transformers"]


def facts_of(
    origin: Origin, layout: Layout, weights: Weights, parity: Parity, files: dict[str, str]
) -> dict[str, Any]:
    """The content of ``selftrain.json``; ``files`` has the sha256 of each file."""
    model = origin.model
    expected = origin.expected
    return {
        "format": FORMAT,
        "layout": layout,
        "selftrain": version("selftrain"),
        "task": model.task.name,
        "labels": list(model.labels),
        "pair": model.task.pair,
        "reader": model.card.reader,
        "tuning": model.tuning.kind,
        "round": origin.number,
        "rung": origin.rung,
        "weights": weights,
        # What goes through matrices of 8 bits is rounded by the largest number of a batch, so the
        # answer to a text would depend on the texts beside it.
        "max_batch": 1 if weights == "int8" else MAX_BATCH,
        "temperature": model.temperature,
        "expected": None if expected is None else expected.numbers(),
        "abstain": origin.abstain,
        "parity": {
            "texts": parity.texts,
            "difference": parity.difference,
            "agreement": parity.agreement,
        },
        "tokens": tokens_of(model),
        "files": files,
    }


def tokens_of(model: Classifier) -> dict[str, Any]:
    """What decides a token row besides the tokenizer."""
    tokenizer, frame = model.backbone.tokenizer, model.frame
    return {
        "max_tokens": frame.room,
        "first": list(frame.first),
        "between": list(frame.between),
        "last": list(frame.last),
        "typed": frame.typed,
        "pad": tokenizer.pad_token_id,
        "unknown": tokenizer.unk_token_id,
        "mask": tokenizer.mask_token_id,
        "special": sorted(set(tokenizer.all_special_ids)),
        "template": model.task.template if model.template is not None else None,
    }


def check_labels(labels: Sequence[str]) -> None:
    """Raise for labels that look like one: accents in pieces, invisible characters."""
    first_of: dict[str, str] = {}
    for label in labels:
        first = first_of.setdefault(clean_label(label), label)
        if first != label:
            raise DataError(
                f"the labels {first!r:.40} and {label!r:.40} are one when normalised",
                "train again with labels that differ in what one sees",
            )
