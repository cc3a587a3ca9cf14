"""Graphs: any batch size, prompts and learned tokens inside, weights of fewer bits, parity."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

from selftrain.data.rows import Example
from selftrain.data.task import Task
from selftrain.errors import ModelError
from selftrain.export.folder import Wanted, export
from selftrain.export.graph import graph_of
from selftrain.export.origin import read_origin
from selftrain.export.parity import check_graph, drawn_texts, session_of, without_slots
from selftrain.export.weights import converted
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.build import build
from selftrain.model.classifier import Classifier
from selftrain.model.pel import PTuning
from selftrain.runs import read as runs
from selftrain_lite import load

TASK = Task(
    "pairs",
    ("no", "yes"),
    template="{a} ? {mask} , {b}",
    words={"no": ("terrible", "no"), "yes": ("great",)},
    pair=True,
    max_length=32,
)
Prompted = tuple[Classifier, onnx.ModelProto]


@pytest.fixture(scope="module")
def prompted(tiny_backbone: Callable[[str], Backbone]) -> Prompted:
    """A prompt for pairs with learned tokens that a network makes: all that is special at once."""
    architecture = Architecture(PTuning(length=3, encoder="lstm"), "prompt")
    model = build(TASK, tiny_backbone("bert"), architecture, seed=3)
    model.temperature = 1.7
    return model, graph_of(model)


def test_a_prompt_with_learned_tokens_answers_the_same_in_every_batch(prompted: Prompted) -> None:
    model, graph = prompted
    parity = check_graph(model, graph, "fp32", drawn_texts(model), real=False)
    assert parity.difference < 1e-4
    assert parity.agreement == 1


def test_the_inputs_have_any_size_and_the_three_names(prompted: Prompted) -> None:
    inputs = {
        each.name: [size.dim_param for size in each.type.tensor_type.shape.dim]
        for each in prompted[1].graph.input
    }
    assert list(inputs) == ["input_ids", "attention_mask", "token_type_ids"]
    assert all(all(sizes) for sizes in inputs.values())


def test_the_network_that_makes_learned_tokens_is_computed_before(prompted: Prompted) -> None:
    names = {node.op_type for node in prompted[1].graph.node}
    assert not names & {"LSTM", "Loop", "Scan"}
    assert isinstance(
        prompted[0].encoder.get_submodule("embeddings.word_embeddings"), torch.nn.Module
    )


def test_fp16_is_half_the_size_and_within_a_thousandth(prompted: Prompted) -> None:
    model, graph = prompted
    half = converted(copy.deepcopy(graph), "fp16")
    assert half.ByteSize() < 0.8 * graph.ByteSize()  # the tiny one has small tensors too
    assert check_graph(model, half, "fp16", drawn_texts(model), real=False).difference < 1e-3


def test_a_weight_that_16_bits_cannot_hold_is_refused(prompted: Prompted) -> None:
    graph = copy.deepcopy(prompted[1])
    large = max(graph.graph.initializer, key=lambda tensor: math.prod(tensor.dims))
    values = onnx.numpy_helper.to_array(large) + 1e6
    large.CopyFrom(onnx.numpy_helper.from_array(values, large.name))
    with pytest.raises(ModelError, match="do not fit into 16 bits"):
        converted(graph, "fp16")


def test_int8_has_small_matrices(prompted: Prompted) -> None:
    graph = converted(copy.deepcopy(prompted[1]), "int8")
    assert {t.data_type for t in graph.graph.initializer} >= {onnx.TensorProto.INT8}
    session = session_of(prompted[0], graph)
    assert session(without_slots(prompted[0])([Example("", "great film", "yes")])).shape == (1, 2)


def test_a_graph_that_answers_otherwise_is_refused(prompted: Prompted) -> None:
    model, graph = prompted
    other = build(TASK, model.backbone, Architecture(PTuning(length=3), "prompt"), seed=9)
    examples = drawn_texts(model)
    with pytest.raises(ModelError, match="cannot become ONNX: its answers differ"):
        check_graph(other, graph, "fp32", examples, real=False)
    with pytest.raises(ModelError, match="with fp16 weights its answers differ"):
        check_graph(other, graph, "fp16", examples, real=False)
    flipped = copy.deepcopy(graph)
    name = flipped.graph.output[0].name
    for node in flipped.graph.node:
        node.output[:] = ["before" if each == name else each for each in node.output]
    flipped.graph.node.append(onnx.helper.make_node("Neg", ["before"], [name]))
    with pytest.raises(ModelError, match=r"with int8 weights 0\.0% of 200 texts") as raised:
        check_graph(model, flipped, "int8", examples, real=False)
    assert raised.value.hint == "--weights fp16, or check on your texts: --texts FILE"


def test_a_fixed_size_is_refused(prompted: Prompted) -> None:
    model, graph = prompted
    fixed = copy.deepcopy(graph)
    fixed.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    with pytest.raises(ModelError, match="its input input_ids has the fixed shape"):
        session_of(model, fixed)


def test_what_torch_cannot_trace_names_the_parts(
    prompted: Prompted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("\nno such operator\nmore")

    monkeypatch.setattr(torch.onnx, "export", fail)
    with pytest.raises(ModelError) as raised:
        graph_of(prompted[0])
    assert raised.value.message == (
        "a bert with ptuning under a prompt cannot become ONNX: no such operator"
    )


def test_drawn_texts_have_every_length_and_are_always_the_same(prompted: Prompted) -> None:
    model, _ = prompted
    texts = drawn_texts(model)
    assert texts == drawn_texts(model)
    lengths = {len(row.ids) for row in without_slots(model)(texts)}
    assert len(texts) == 200
    assert max(lengths) == model.frame.room
    assert len(lengths) > 10


def test_a_round_of_a_head_alone_is_exported_with_its_encoder(
    probes: Path, backbone: Backbone, tmp_path: Path
) -> None:
    origin = read_origin(probes, None, backbone)
    assert origin.record.encoder_of is not None
    export(origin, tmp_path / "model", Wanted())
    texts = ["great film", "a dull story", ""]
    expected = runs.load(probes, backbone=backbone).probabilities(
        [Example(str(n), text) for n, text in enumerate(texts)]
    )
    found = torch.from_numpy(load(tmp_path / "model").predict_proba(texts))
    assert (found - expected).abs().max() < 1e-4
