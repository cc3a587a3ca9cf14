"""The protocol of KServe, version 2 (Open Inference Protocol), with JSON tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from selftrain_lite.serve.batcher import Row, Text
from selftrain_lite.serve.refusal import RefusedError
from selftrain_lite.serve.tei import check_text, kind_of

PLATFORM = "onnx_selftrain"
NAMES = ("text", "pair")
OUTPUTS = ("label", "score", "probabilities")


def description(name: str, labels: Sequence[str], *, pair: bool) -> dict[str, Any]:
    """The tensors that a model takes and gives."""
    inputs = NAMES if pair else NAMES[:1]
    return {
        "name": name,
        "versions": ["1"],
        "platform": PLATFORM,
        "inputs": [{"name": each, "datatype": "BYTES", "shape": [-1]} for each in inputs],
        "outputs": [
            {"name": "label", "datatype": "BYTES", "shape": [-1]},
            {"name": "score", "datatype": "FP64", "shape": [-1]},
            {"name": "probabilities", "datatype": "FP64", "shape": [-1, len(labels)]},
        ],
        "parameters": {"labels": list(labels)},
    }


def texts_of(request: Any, *, pair: bool, most: int) -> list[Text]:
    """The texts of an inference request."""
    tensors = request.get("inputs") if isinstance(request, dict) else None
    if not isinstance(tensors, list) or not all(isinstance(each, dict) for each in tensors):
        raise RefusedError(422, "`inputs` is no list of tensors")
    wanted = NAMES if pair else NAMES[:1]
    found = {each["name"]: each for each in tensors if isinstance(each.get("name"), str)}
    if len(found) != len(tensors) or sorted(found) != sorted(wanted):
        raise RefusedError(422, f"expected the tensors {' and '.join(wanted)}, each once")
    columns = [column(name, found[name], most) for name in wanted]
    if len({len(each) for each in columns}) != 1:
        raise RefusedError(422, "text and pair have different lengths")
    if not pair:
        return list(columns[0])
    return list(zip(*columns, strict=True))


def column(name: str, tensor: dict[str, Any], most: int) -> list[str]:
    """The texts of one tensor of shape [N] or [N, 1]."""
    if tensor.get("datatype") != "BYTES":
        raise RefusedError(422, f"tensor {name} has another datatype than BYTES")
    data = tensor.get("data")
    if not isinstance(data, list):
        raise RefusedError(422, f"the data of tensor {name} is {kind_of(data)}; expected a list")
    if not data:
        raise RefusedError(400, f"tensor {name} is empty")
    if len(data) > most:
        raise RefusedError(413, f"a request has {len(data):,} texts; expected at most {most:,}")
    if tensor.get("shape") not in ([len(data)], [len(data), 1]):
        raise RefusedError(422, f"the shape of tensor {name} is not [{len(data)}], as its data is")
    texts = [each[0] if isinstance(each, list) and len(each) == 1 else each for each in data]
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise RefusedError(422, f"text {number} is {kind_of(text)}")
        check_text(text, number)
    return texts


def outputs(rows: Sequence[Row], labels: Sequence[str], abstain: float) -> dict[str, Any]:
    """The tensors of an answer by name; the label is empty where none is given."""
    best = [max(range(len(row)), key=row.__getitem__) for row in rows]
    scores = [row[place] for row, place in zip(rows, best, strict=True)]
    given = [
        labels[place] if score >= abstain else "" for place, score in zip(best, scores, strict=True)
    ]
    flat = [round(p, 6) for row in rows for p in row]
    shape = [len(rows)]
    return {
        "label": {"name": "label", "datatype": "BYTES", "shape": shape, "data": given},
        "score": {
            "name": "score",
            "datatype": "FP64",
            "shape": shape,
            "data": [round(score, 6) for score in scores],
        },
        "probabilities": {
            "name": "probabilities",
            "datatype": "FP64",
            "shape": [*shape, len(labels)],
            "data": flat,
        },
    }


def answer(request: dict[str, Any], name: str, tensors: Sequence[Any]) -> dict[str, Any]:
    """An inference response; it repeats the id of the request."""
    head = {"id": request["id"][:200]} if isinstance(request.get("id"), str) else {}
    return {"model_name": name, "model_version": "1", **head, "outputs": list(tensors)}


def wanted_outputs(request: dict[str, Any]) -> list[str]:
    """The names of the tensors that a client asks for; all without a list."""
    chosen = request.get("outputs") or [{"name": each} for each in OUTPUTS]
    right = isinstance(chosen, list) and all(
        isinstance(each, dict) and each.get("name") in OUTPUTS for each in chosen
    )
    if not right or len(chosen) > len(OUTPUTS):
        raise RefusedError(422, f"`outputs` may name {', '.join(OUTPUTS)}")
    return [each["name"] for each in chosen]


def example(*, pair: bool) -> dict[str, Any]:
    """An inference request, for the page of the interface."""
    texts = {"text": "a moving and funny film", "pair": "the film is sad"}
    return {
        "inputs": [
            {"name": name, "datatype": "BYTES", "shape": [1], "data": [texts[name]]}
            for name in (NAMES if pair else NAMES[:1])
        ]
    }
