"""A classifier as one ONNX graph: token ids in, calibrated logits out.

The graph takes what any tokenizer of the family gives. Placeholders of P-tuning and the place of a
prompt's mask are found inside of it, and the temperature is folded in.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from selftrain.errors import ModelError, out_of_memory
from selftrain.model.batches import Batch, collate
from selftrain.model.classifier import Classifier
from selftrain.model.pel import placeholders
from selftrain.model.pel.prefix import KeysValues
from selftrain.model.pel.ptuning import LearnedTokens

if TYPE_CHECKING:
    from onnx import ModelProto

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUT = "logits"
OPSET = 18
LARGEST_GRAPH = 2**31 - 2**20  # bytes: one file of this format ends at two gigabytes


class Graph(nn.Module):
    """What the graph computes, in torch."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = model
        self.slots = placeholders(model.tuning)
        self.typed = reads_types(model)
        self.mask: int | None = model.backbone.tokenizer.mask_token_id if model.template else None

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Three of [B, L] to [B, C]."""
        ids, attention = self._with_slots(input_ids), self._with_slots(attention_mask)
        types = self._with_slots(token_type_ids) if self.typed else None
        at = torch.zeros_like(ids[:, 0])
        if self.mask is not None:
            at = (ids == self.mask).to(torch.int64).argmax(1)
        logits: Tensor = self.model(Batch(ids, attention, types, at)).logits
        return logits / self.model.temperature

    def _with_slots(self, tokens: Tensor) -> Tensor:
        """The first token repeated, where a tuning overwrites what stands behind it."""
        if not self.slots:
            return tokens
        return torch.cat([tokens[:, :1].expand(-1, self.slots), tokens], dim=1)


def reads_types(model: Classifier) -> bool:
    """Whether segment ids change an answer: those of a pair under a head."""
    return model.frame.typed and model.task.pair and model.template is None


def graph_of(model: Classifier) -> ModelProto:
    """The graph of a model with weights of 32 bits; the model stays as it is."""
    graph = Graph(frozen_copy(model)).eval()
    example = _example(model)
    shapes = {name: {0: _size("batch"), 1: _size("length")} for name in INPUTS}
    try:
        with quiet(), torch.no_grad():
            program = torch.onnx.export(
                graph,
                example,
                dynamo=True,
                input_names=list(INPUTS),
                output_names=[OUTPUT],
                dynamic_shapes=shapes,
                opset_version=OPSET,
                external_data=False,
                verbose=False,
            )
    except Exception as error:  # torch raises almost anything for what it cannot trace
        if out_of_memory(error):
            raise
        raise cannot(model, str(error)) from error
    assert program is not None
    proto: ModelProto = program.model_proto
    forget_where(proto)
    if proto.ByteSize() > LARGEST_GRAPH:
        raise cannot(model, f"its graph has {proto.ByteSize():,} bytes; one file holds 2 GB")
    return proto


def forget_where(graph: ModelProto) -> None:
    """Remove what the exporter notes of this machine: paths, lines of code, names of modules."""
    inner = graph.graph
    # Shapes of inner values too: they are not those of other weights, and would be refused.
    del inner.value_info[:]
    parts = (graph, inner, *inner.node, *inner.initializer, *inner.input, *inner.output)
    for part in parts:
        part.ClearField("metadata_props")
        part.ClearField("doc_string")


def cannot(model: Classifier, reason: str) -> ModelError:
    """The error for a model that becomes no graph, with the names of its parts."""
    first = next((line for line in reason.strip().splitlines() if line.strip()), "no reason given")
    return ModelError(
        f"a {model.backbone.family.name} with {model.tuning.kind} under a {model.card.reader} "
        f"cannot become ONNX: {first.strip()[:200]}",
        "answer with `selftrain predict`, or use another tuning or backbone",
    )


def frozen_copy(model: Classifier) -> Classifier:
    """A copy that computes once and for all what does not depend on a text.

    The backbone is the same; every tensor of the model is a copy, because other models of this
    process share the frozen ones.
    """
    copy = deepcopy(model, {id(model.backbone): model.backbone}).cpu().eval()
    copy.temperature = model.temperature
    copy.requires_grad_(False)
    if copy.trunk is not None:
        copy.trunk.memory = None
    for part in list(copy.modules()):
        if isinstance(part, LearnedTokens):
            part.vectors = nn.Parameter(part.encoder(part.vectors), requires_grad=False)
            part.encoder = nn.Identity()
        if isinstance(part, KeysValues):
            part.fix()
    return copy


def _example(model: Classifier) -> tuple[Tensor, Tensor, Tensor]:
    """Two rows of unlike length: a batch of one would fix its size."""
    from selftrain.data.rows import Example

    pair = "a" if model.task.pair else None
    rows = model.encode([Example("", "a a a a a", pair), Example("", "a", pair)])
    batch = collate(rows, model.pad)
    slots = placeholders(model.tuning)
    ids, attention = batch.ids[:, slots:], batch.attention[:, slots:]
    types = torch.zeros_like(ids) if batch.types is None else batch.types[:, slots:]
    return ids.contiguous(), attention.contiguous(), types.contiguous()


def _size(name: str) -> Any:
    return torch.export.Dim(name) if name == "batch" else torch.export.Dim.DYNAMIC


@contextmanager
def quiet() -> Iterator[None]:
    """Hide what the tools write of their progress: real problems are raised."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
