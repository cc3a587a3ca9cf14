"""An exported model made by hand: a graph that adds a number for each token, in milliseconds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "great", "it", "was"]
GOOD, BAD = 1.5, -2.0
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def table() -> np.ndarray[Any, Any]:
    """What a token adds to both logits, [V, 2]."""
    values = np.zeros((len(WORDS), 2), np.float32)
    values[WORDS.index("good"), 0] = GOOD
    values[WORDS.index("bad"), 0] = BAD
    return values


def graph(
    *names: str, output: str = "logits", batch: str | int = "batch", classes: int = 2
) -> bytes:
    """A graph: the sum over the tokens of a row that are not padding."""
    names = names or INPUTS
    nodes = [
        helper.make_node("Gather", ["table", names[0]], ["values"]),
        helper.make_node("Cast", [names[1]], ["seen"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["seen", "two"], ["column"]),
        helper.make_node("Mul", ["values", "column"], ["real"]),
        helper.make_node("ReduceSum", ["real", "one"], [output], keepdims=0),
    ]
    ids = [helper.make_tensor_value_info(n, TensorProto.INT64, [batch, "length"]) for n in names]
    out = helper.make_tensor_value_info(output, TensorProto.FLOAT, [batch, classes])
    tensors = [
        numpy_helper.from_array(np.resize(table(), (len(WORDS), classes)), "table"),
        numpy_helper.from_array(np.array([1]), "one"),
        numpy_helper.from_array(np.array([2]), "two"),
    ]
    made = helper.make_graph(nodes, "by hand", ids, [out], tensors)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(model.SerializeToString())


def facts(**changes: Any) -> dict[str, Any]:
    """What ``selftrain.json`` says."""
    tokens = {
        "max_tokens": 12,
        "first": [2],
        "between": [3],
        "last": [3],
        "typed": True,
        "pad": 0,
        "unknown": 1,
        "mask": 4,
        "special": [0, 1, 2, 3, 4],
        "template": None,
    }
    return {
        "format": 1,
        "layout": "onnx",
        "selftrain": "0.1.0",
        "task": "films",
        "labels": ["good", "bad"],
        "pair": False,
        "reader": "head",
        "weights": "fp32",
        "max_batch": 32,
        "expected": {"accuracy": 0.9, "low": 0.8, "high": 1.0, "right": 108, "judged": 116},
        "abstain": [{"above": 0.8, "share": 0.6, "right": 0.9}],
        "tokens": tokens | changes.pop("tokens", {}),
    } | changes


def tokenizer() -> Tokenizer:
    """One token for each word it knows."""
    made = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, "[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return made


def write(
    folder: Path,
    content: bytes | None = None,
    spoil: Callable[[dict[str, Any]], object] | None = None,
    **changes: Any,
) -> Path:
    """A model folder; ``spoil`` changes the facts at the end."""
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").write_bytes(graph() if content is None else content)
    tokenizer().save(str(folder / "tokenizer.json"))
    files = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("onnx/model.onnx", "tokenizer.json")
    }
    written = facts(**changes) | {"files": files}
    if spoil is not None:
        spoil(written)
    (folder / "selftrain.json").write_text(json.dumps(written))
    return folder
