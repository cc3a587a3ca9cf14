"""Whether an exported model answers as the model it comes from: checked before it is written.

A run holds no texts. They are drawn from the vocabulary of the tokenizer, of all lengths, unless
someone gives real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from selftrain.data.rows import Example
from selftrain.errors import ModelError
from selftrain.export.graph import INPUTS, OUTPUT, cannot
from selftrain.export.runtime import quiet_onnxruntime
from selftrain.export.weights import Weights
from selftrain.model.batches import Row, collate
from selftrain.model.classifier import Classifier
from selftrain.model.pel import placeholders

if TYPE_CHECKING:
    from onnx import ModelProto

TEXTS = 200
BATCHES = (1, 2, 7, 32)
LIMITS: dict[Weights, float] = {"fp32": 1e-4, "fp16": 1e-3}
"""The largest difference: of logits for fp32, of probabilities for fp16."""
AGREEMENT = 0.98
"""The smallest share of texts that int8 answers with the same label."""
SENTENCE_LIMIT = 1e-5

Answer = Callable[[Sequence[Row]], Tensor]
"""Logits [B, C] of rows that are read together."""


@dataclass(frozen=True, slots=True)
class Parity:
    """How far the answers of an exported model are from those of its origin."""

    texts: int
    difference: float
    """The largest: of logits for fp32, of probabilities otherwise."""
    agreement: float
    """The share of texts with the same label."""
    real: bool
    """Whether someone gave the texts; otherwise they are words drawn from the vocabulary."""

    def __str__(self) -> str:
        kind = "texts" if self.real else "random texts"
        return (
            f"checked on {self.texts} {kind}: {self.agreement:.1%} the same label, "
            f"largest difference {self.difference:.0e}"
        )


def drawn_texts(model: Classifier, count: int = TEXTS) -> list[Example]:
    """Texts of words of the vocabulary, from none to more than a row holds."""
    random = Random("selftrain export")  # noqa: S311
    tokenizer = model.backbone.tokenizer
    special = set(tokenizer.all_special_ids)
    words = [i for i in sorted(tokenizer.get_vocab().values()) if i not in special]

    def text(tokens: int) -> str:
        drawn: str = tokenizer.decode(random.choices(words, k=tokens))
        return drawn.replace("\ufffd", " ")

    longest = model.frame.room
    lengths = [0, 1, 2, longest, 2 * longest]
    lengths += [random.randint(1, longest) for _ in range(count - len(lengths))]
    pairs = model.task.pair
    return [
        Example(str(number), text(tokens), text(random.randint(0, longest)) if pairs else None)
        for number, tokens in enumerate(lengths)
    ]


def check_graph(
    model: Classifier,
    graph: ModelProto,
    weights: Weights,
    examples: Sequence[Example],
    *,
    real: bool,
) -> Parity:
    """Compare a graph with its model, one text at a time and in batches; raise where it differs."""
    session = session_of(model, graph)
    rows = without_slots(model)(examples)
    expected = model.read(examples).logits / model.temperature  # [N, C]
    difference = 0.0
    sizes = (1,) if weights == "int8" else BATCHES
    for size in sizes:
        found = torch.cat([session(part) for part in in_parts(rows, size)])
        difference = max(
            difference, largest_difference(found, expected, in_logits=weights == "fp32")
        )
    agreement = (found.argmax(1) == expected.argmax(1)).float().mean().item()
    parity = Parity(len(examples), difference, agreement, real)
    _check(model, parity, weights)
    return parity


def largest_difference(found: Tensor, expected: Tensor, *, in_logits: bool) -> float:
    """The largest difference of two answers; of logits beyond 1 it is relative.

    >>> largest_difference(torch.tensor([[10.0, 0.5]]), torch.tensor([[8.0, 0.0]]), in_logits=True)
    0.5
    """
    if not in_logits:
        return float((found.softmax(1) - expected.softmax(1)).abs().max())
    return float(((found - expected).abs() / expected.abs().clamp(min=1)).max())


def _check(model: Classifier, parity: Parity, weights: Weights) -> None:
    if weights == "int8":
        if parity.agreement < AGREEMENT:
            raise ModelError(
                f"with int8 weights {parity.agreement:.1%} of {parity.texts} texts have the same "
                f"label; expected {AGREEMENT:.0%}",
                "--weights fp16"
                + ("" if parity.real else ", or check on your texts: --texts FILE"),
            )
        return
    limit = LIMITS[weights]
    if not parity.difference <= limit:  # also where it is no number
        problem = f"its answers differ by {parity.difference:.1e}; expected at most {limit:.0e}"
        if weights == "fp16":
            raise ModelError(f"with fp16 weights {problem}", "--weights fp32")
        raise cannot(model, problem)


def without_slots(model: Classifier) -> Callable[[Sequence[Example]], list[Row]]:
    """Token rows as the graph takes them: placeholders of a tuning are added inside of it."""
    slots = placeholders(model.tuning)

    def rows(examples: Sequence[Example]) -> list[Row]:
        return [
            Row(row.ids[slots:], None if row.types is None else row.types[slots:])
            for row in model.encode(examples)
        ]

    return rows


def session_of(model: Classifier, graph: ModelProto) -> Answer:
    """A function that runs a graph, after its inputs were found to have any size."""
    onnxruntime = quiet_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = torch.get_num_threads()
    try:
        session: Any = onnxruntime.InferenceSession(
            graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime raises nothing narrower
        raise cannot(model, str(error)) from error
    for each in session.get_inputs():
        if any(isinstance(size, int) for size in each.shape) or each.name not in INPUTS:
            raise cannot(model, f"its input {each.name} has the fixed shape {each.shape}")
    if len(session.get_inputs()) != len(INPUTS):
        raise cannot(model, "the graph lost an input")

    def run(rows: Sequence[Row]) -> Tensor:
        batch = collate(rows, model.pad)
        types = torch.zeros_like(batch.ids) if batch.types is None else batch.types
        values = (each.numpy() for each in (batch.ids, batch.attention, types))
        try:
            (logits,) = session.run([OUTPUT], dict(zip(INPUTS, values, strict=True)))
        except Exception as error:
            raise cannot(model, str(error)) from error
        return torch.from_numpy(np.asarray(logits, np.float32))

    return run


def in_parts(items: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    """Rows in batches of this size, the last one smaller."""
    for at in range(0, len(items), size):
        yield items[at : at + size]
