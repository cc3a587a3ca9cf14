"""Every tuning on every family becomes a graph; reader and pairs go by turns."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch

import tiny
from selftrain.data.task import Task
from selftrain.errors import ConfigError
from selftrain.export.graph import graph_of
from selftrain.export.parity import check_graph, drawn_texts
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone, load
from selftrain.model.build import build
from selftrain.model.pel import IA3, Adapter, AnyTuning, BitFit, Full, LoRA, Prefix, Probe, PTuning

pytestmark = pytest.mark.slow

TUNINGS = [
    Full(),
    BitFit(),
    Adapter(width=4, layers=1),
    Prefix(length=3, encoder="mlp"),
    PTuning(length=3, encoder="mlp"),
    LoRA(rank=2),
    IA3(),
    Probe(),
]
TEMPLATES = {False: "{text} It was {mask} .", True: "{a} ? {mask} , {b}"}


@pytest.fixture(scope="module")
def shallow(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Backbone]:
    """Tiny backbones of two layers: the time of an export grows with their number."""

    @cache
    def make(family: str) -> Backbone:
        with pytest.MonkeyPatch.context() as patched:
            patched.setitem(tiny.SIZES, "num_hidden_layers", 2)
            folder: Path = tiny.make(family, tmp_path_factory.mktemp(family))
        return load(folder)

    return make


@pytest.mark.parametrize("tuning", TUNINGS, ids=lambda each: each.kind)
@pytest.mark.parametrize("family", tiny.RECIPES)
def test_a_graph_of_every_family_answers_as_its_model(
    shallow: Callable[[str], Backbone], family: str, tuning: AnyTuning
) -> None:
    turn = list(tiny.RECIPES).index(family) + TUNINGS.index(tuning)
    reader = "prompt" if turn % 2 and not isinstance(tuning, Probe) else "head"
    if family == "albert" and isinstance(tuning, Adapter):
        tuning = Adapter(width=4)  # all of its layers are one
    pair = bool(turn // 2 % 2)
    words = {"no": ("terrible",), "yes": ("great",)}
    template = TEMPLATES[pair]
    task = Task("small", ("no", "yes"), template=template, words=words, pair=pair, max_length=32)
    architecture = Architecture(tuning, reader)  # type: ignore[arg-type]
    if family == "modernbert" and isinstance(tuning, BitFit):
        with pytest.raises(ConfigError, match="has no biases"):
            build(task, shallow(family), architecture, seed=1)
        return
    model = build(task, shallow(family), architecture, seed=1)
    with torch.no_grad():
        for parameter in model.trainable().values():
            parameter.add_(0.05 * torch.randn(parameter.shape))
    model.temperature = 1.7
    check_graph(model, graph_of(model), "fp32", drawn_texts(model, 60), real=False)
