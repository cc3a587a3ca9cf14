"""The protocol of text-embeddings-inference: ``POST /predict``, ``GET /info``.

{"inputs": "text"}                       one text
{"inputs": ["a", "b"]}                   one pair of texts, not two texts
{"inputs": [["text"], ["a", "b"]]}       several
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from selftrain_lite.serve.batcher import Row, Text
from selftrain_lite.serve.refusal import RefusedError
from selftrain_lite.version import __version__

LARGEST_TEXT = 100_000  # characters
SHAPES = 'expected "text", ["a", "b"] for a pair, or [["text"], ["text"]] for several'


def texts_of(request: Any, *, pair: bool, most: int) -> tuple[list[Text], bool]:
    """The texts of a request, and whether it asks for several."""
    if not isinstance(request, dict) or "inputs" not in request:
        raise RefusedError(422, "the request has no `inputs`")
    if request.get("raw_scores"):
        raise RefusedError(422, "raw_scores is not offered: scores are calibrated probabilities")
    inputs = request["inputs"]
    if isinstance(inputs, str):
        return [text_of([inputs], 1, pair=pair)], False
    if not isinstance(inputs, list):
        raise RefusedError(422, f"`inputs` is {kind_of(inputs)}; {SHAPES}")
    if not inputs:
        raise RefusedError(400, "`inputs` is empty")
    if isinstance(inputs[0], str):
        return [text_of(inputs, 1, pair=pair)], False
    if len(inputs) > most:
        raise RefusedError(413, f"a request has {len(inputs):,} texts; expected at most {most:,}")
    return [text_of(each, number, pair=pair) for number, each in enumerate(inputs, 1)], True


def text_of(parts: Any, number: int, *, pair: bool) -> Text:
    """One text or pair; what is wrong with it is said without a word of it."""
    if not isinstance(parts, list):
        raise RefusedError(422, f"entry {number} of `inputs` is {kind_of(parts)}; {SHAPES}")
    for part in parts:
        if not isinstance(part, str):
            raise RefusedError(422, f"entry {number} of `inputs` has {kind_of(part)}; {SHAPES}")
        check_text(part, number)
    if len(parts) != 1 + pair:
        wanted = "pairs of texts" if pair else "single texts"
        raise RefusedError(
            422, f"entry {number} of `inputs` has {len(parts)} texts; the model reads {wanted}"
        )
    return (parts[0], parts[1]) if pair else parts[0]


def check_text(text: str, number: int) -> None:
    """Raise for a text too long to be tokenised, or with half a character."""
    if len(text) > LARGEST_TEXT:
        raise RefusedError(
            413, f"text {number} has {len(text):,} characters; expected at most {LARGEST_TEXT:,}"
        )
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise RefusedError(422, f"text {number} has half a character")


def kind_of(value: Any) -> str:
    """The kind of a JSON value in words.

    >>> kind_of(None), kind_of(True), kind_of([])
    ('null', 'true or false', 'a list')
    """
    if value is None:
        return "null"
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text"}
    return names.get(type(value), "a list" if isinstance(value, list) else "an object")


def answer(row: Row, labels: Sequence[str], abstain: float) -> list[dict[str, Any]]:
    """Labels and scores, best first; an empty label comes before them where none is given."""
    order = sorted(range(len(row)), key=lambda place: -row[place])
    best = row[order[0]]
    listed = [{"label": labels[place], "score": round(row[place], 6)} for place in order]
    return listed if best >= abstain else [{"label": "", "score": round(best, 6)}, *listed]


def info(facts: dict[str, Any], name: str, *, queue: int, max_batch: int) -> dict[str, Any]:
    """What text-embeddings-inference says of a model, and what selftrain knows of it."""
    labels = facts["labels"]
    return {
        "model_id": name,
        "model_sha": facts["sha256"],
        "model_dtype": facts["weights"],
        "model_type": {
            "classifier": {
                "id2label": {str(number): label for number, label in enumerate(labels)},
                "label2id": {label: number for number, label in enumerate(labels)},
            }
        },
        "max_concurrent_requests": queue,
        "max_input_length": facts["max_tokens"],
        "max_batch_requests": max_batch,
        "max_client_batch_size": queue,
        "auto_truncate": True,
        "version": __version__,
        "selftrain": facts,
    }
