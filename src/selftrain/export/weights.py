"""The weights of a graph in fewer bits: stored in 16, or computed with in 8."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import numpy as np

from selftrain.errors import ModelError
from selftrain.export.graph import quiet
from selftrain.export.runtime import quiet_onnxruntime

if TYPE_CHECKING:
    from onnx import ModelProto

Weights = Literal["fp32", "fp16", "int8"]
FEWEST_ELEMENTS = 256
"""Of a tensor that is stored in 16 bits: smaller ones save nothing."""


def converted(graph: ModelProto, weights: Weights) -> ModelProto:
    """The graph with its weights as wanted; the one that is given may change."""
    if weights == "fp16":
        return in_16_bits(graph)
    if weights == "int8":
        return in_8_bits(graph)
    return graph


def in_16_bits(graph: ModelProto) -> ModelProto:
    """Large tensors are stored in 16 bits, and read back to 32 when a program loads the graph."""
    from onnx import TensorProto, helper, numpy_helper

    casts = []
    for tensor in graph.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or np.prod(tensor.dims) < FEWEST_ELEMENTS:
            continue
        with np.errstate(over="ignore"):
            half = numpy_helper.to_array(tensor).astype(np.float16)
        if not np.isfinite(half).all():
            raise ModelError(
                f"tensor `{tensor.name}` has numbers that do not fit into 16 bits",
                "keep 32: --weights fp32",
            )
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(half, f"{name}_fp16"))
        casts.append(helper.make_node("Cast", [tensor.name], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.graph.node]
    del graph.graph.node[:]
    graph.graph.node.extend(nodes)
    return graph


def in_8_bits(graph: ModelProto) -> ModelProto:
    """Matrices of 8 bits for each channel; what goes through them is rounded text by text."""
    import onnx

    quiet_onnxruntime()
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with TemporaryDirectory(prefix="selftrain-") as folder, quiet():
        place = Path(folder) / "model.onnx"
        quantize_dynamic(graph, place, per_channel=True, weight_type=QuantType.QInt8)
        return onnx.load(place)
