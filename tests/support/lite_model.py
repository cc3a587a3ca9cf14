"""A tiny exported model, written by hand: each word pulls towards a class.

It needs no torch and no training: the graph adds up a logit for each token of a text.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

LABELS = ("negative", "positive")
WORDS = ("dull", "bad", "film", "story", "good", "great")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PULLS = {"dull": -2.0, "bad": -1.0, "good": 1.0, "great": 2.0}


def write_model(folder: Path, *, pair: bool = False, weights: str = "fp32", **more: Any) -> Path:
    """A model folder in the layout that ``selftrain export`` writes."""
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").write_bytes(graph())
    (folder / "tokenizer.json").write_text(tokenizer(), "utf-8")
    names = ("onnx/model.onnx", "tokenizer.json")
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    facts = {
        "format": 1,
        "layout": "onnx",
        "selftrain": "0.1.0",
        "task": "film reviews",
        "labels": list(LABELS),
        "pair": pair,
        "reader": "head",
        "weights": weights,
        "max_batch": 1 if weights == "int8" else 32,
        "expected": {"accuracy": 0.9, "low": 0.8, "high": 0.95},
        "abstain": [{"above": 0.8, "share": 0.6, "right": 0.9}],
        "tokens": {
            "max_tokens": 16,
            "first": [2],
            "between": [3],
            "last": [3],
            "typed": pair,
            "pad": 0,
            "unknown": 1,
            "mask": 4,
            "special": [0, 1, 2, 3, 4],
            "template": None,
        },
        "files": digests,
    }
    (folder / "selftrain.json").write_text(json.dumps(facts | more), "utf-8")
    return folder


def tokenizer() -> str:
    """Words between blanks; any other word is unknown."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
    found = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    found.normalizer = normalizers.Lowercase()
    found.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return str(found.to_str())


def graph() -> bytes:
    """Adds the logits of all tokens; the mask and the segments count a little, and all are used."""
    from onnx import TensorProto, helper, numpy_helper

    table = np.zeros((len(SPECIAL) + len(WORDS), 2), np.float32)
    for number, word in enumerate(WORDS, len(SPECIAL)):
        table[number] = -PULLS.get(word, 0.0) / 2, PULLS.get(word, 0.0) / 2
    table[1] = 0.01, 0.0
    sizes = ["batch", "length"]
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, sizes) for name in names]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["pulls"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["types", "tenth"], ["small"]),
        helper.make_node("Add", ["mask", "small"], ["weight"]),
        helper.make_node("Unsqueeze", ["weight", "last"], ["column"]),
        helper.make_node("Mul", ["pulls", "column"], ["weighted"]),
        helper.make_node("ReduceSum", ["weighted", "second"], ["logits"], keepdims=0),
    ]
    tensors = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(np.array(0.1, np.float32), "tenth"),
        numpy_helper.from_array(np.array([2]), "last"),
        numpy_helper.from_array(np.array([1]), "second"),
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])
    found = helper.make_graph(nodes, "tiny", inputs, [output], tensors)
    model = helper.make_model(found, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return bytes(model.SerializeToString())
