"""The door to the speed tricks: without it every model gives the same answers in eval mode."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from by_hand import FILMS as TASK
from cut_models import TEXTS, planned, train_a_little
from selftrain.data.rows import Example
from selftrain.data.task import Task
from selftrain.model import fast
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone, load
from selftrain.model.batches import grouped
from selftrain.model.build import build, with_dropout_in
from selftrain.model.classifier import Classifier
from selftrain.model.pel import IA3, Adapter, BitFit, Full, LoRA, Prefix, PTuning, Tuning
from tiny import RECIPES

TUNINGS: dict[str, Tuning] = {
    "full": Full(),
    "bitfit": BitFit(),
    "adapter": Adapter(width=4),
    "prefix": Prefix(length=3),
    "prefix-mlp": Prefix(length=3, encoder="mlp"),
    "ptuning": PTuning(length=3),
    "ptuning-lstm": PTuning(length=3, encoder="lstm"),
    "lora": LoRA(rank=2),
    "ia3": IA3(),
    "bitfit-half": BitFit(layers="half"),
    "adapter-half": Adapter(width=4, layers="half"),
    "prefix-half": Prefix(length=3, layers="half"),
    "lora-last": LoRA(rank=2, layers="last"),
    "ia3-last": IA3(layers="last"),
}


def refused(family: str, name: str) -> bool:
    """Whether there is no such model: ModernBERT has no biases, ALBERT's layers are one."""
    some_layers = name.endswith(("half", "last"))
    return (family == "modernbert" and "bitfit" in name) or (family == "albert" and some_layers)


def pair_of(
    backbone: Backbone,
    architecture: Architecture,
    monkeypatch: pytest.MonkeyPatch,
    task: Task = TASK,
) -> tuple[Classifier, Classifier]:
    """The same trained model twice: with the tricks, and built as if the folder were gone."""
    quick = build(task, backbone, architecture, seed=1)
    train_a_little(quick)
    with monkeypatch.context() as patch:
        patch.setattr(fast, "install", lambda _: None)
        plain = build(task, backbone, architecture, seed=1)
    plain.load_state(quick.state())
    return quick, plain


def from_fast(model: Classifier) -> Iterator[str]:
    """Names of everything in a model that comes from the folder."""
    for name, module in model.named_modules():
        callables: list[Any] = [type(module), *vars(module).values()]
        hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
        for part in (*callables, *hooks):
            home = getattr(getattr(part, "func", part), "__module__", None) or ""
            if home.startswith("selftrain.model.fast") or type(part).__module__.startswith(
                "selftrain.model.fast"
            ):
                yield f"{name}: {part}"


@pytest.mark.parametrize("name", TUNINGS)
@pytest.mark.parametrize("reader", ["head", "prompt"])
@pytest.mark.parametrize("family", RECIPES)
def test_without_the_folder_every_answer_is_the_same(
    family: str,
    reader: Any,
    name: str,
    tiny_backbone: Callable[[str], Backbone],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if refused(family, name):
        return
    architecture = Architecture(TUNINGS[name], reader)
    quick, plain = pair_of(tiny_backbone(family), architecture, monkeypatch)
    assert list(from_fast(quick))
    assert not list(from_fast(plain))
    assert quick.state_dict().keys() == plain.state_dict().keys()
    expected = plain.read(TEXTS)
    torch.testing.assert_close(quick.read(TEXTS), expected, atol=1e-5, rtol=0)
    if family != "albert":
        one_layer = with_dropout_in(quick, 1).read(TEXTS)
        torch.testing.assert_close(one_layer, expected, atol=1e-5, rtol=0)
        assert not list(from_fast(with_dropout_in(plain, 1)))


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("name", TUNINGS)
def test_without_the_folder_every_mean_is_the_same(
    name: str,
    pair: bool,
    tiny_backbone: Callable[[str], Backbone],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backbone = replace(tiny_backbone("bert"), pooling="mean")
    task = replace(TASK, pair=pair, template=None)
    quick, plain = pair_of(backbone, Architecture(TUNINGS[name]), monkeypatch, task)
    rows = [Example(row.uid, row.text, "no film" if pair else None) for row in TEXTS]
    torch.testing.assert_close(quick.read(rows), plain.read(rows), atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "deberta-v2"])
def test_without_the_folder_nothing_is_remembered_and_the_answers_are_the_same(
    family: str, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    architecture = Architecture(Adapter(width=4, layers=1))
    quick, plain = pair_of(load(tiny_folder(family)), architecture, monkeypatch)
    assert plain.trunk is not None
    assert plain.trunk.memory is None
    assert planned(quick, TEXTS[:8])
    expected = plain.probabilities(TEXTS)
    for _ in range(2):  # when the states are computed, and when they are remembered
        torch.testing.assert_close(quick.probabilities(TEXTS), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["adapter", "prefix", "lora"])
def test_without_the_folder_passes_vary_as_much(
    name: str, tiny_backbone: Callable[[str], Backbone], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dropout draws other numbers, at the same rate in the same places."""

    def spread(model: Classifier) -> Tensor:
        torch.manual_seed(5)
        model.train()
        (batch, *_), _ = grouped(model.encode(TEXTS), model.pad, model.device)
        with torch.no_grad():
            return torch.stack([model(batch).features for _ in range(300)]).std(0).mean()

    quick, plain = pair_of(tiny_backbone("bert"), Architecture(TUNINGS[name]), monkeypatch)
    assert spread(quick).item() == pytest.approx(spread(plain).item(), rel=0.05)


def test_every_dropout_layer_is_the_cheaper_one(tiny_backbone: Callable[[str], Backbone]) -> None:
    for name in ("adapter", "prefix", "lora"):
        model = build(TASK, tiny_backbone("bert"), Architecture(TUNINGS[name]), seed=1)
        layers = [part for part in model.modules() if isinstance(part, nn.Dropout)]
        assert {type(layer).__module__ for layer in layers} == {"selftrain.model.fast.dropout"}
        assert not any(layer.training for layer in layers)


def test_installing_twice_is_installing_once(tiny_backbone: Callable[[str], Backbone]) -> None:
    model = build(TASK, tiny_backbone("bert"), Architecture(Prefix(length=3), "prompt"), seed=1)
    expected = model.read(TEXTS)
    fast.install(model)
    assert all(map(torch.equal, model.read(TEXTS), expected))


IMPORTED = """
import selftrain.model.build, selftrain.model.pel.prefix
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface
for interface in (AttentionInterface, AttentionMaskInterface):
    assert "sdpa" in interface._global_mapping
    assert not [name for name in interface._global_mapping if "selftrain" in name]
"""


def test_an_import_registers_nothing() -> None:
    subprocess.run([sys.executable, "-c", IMPORTED], check=True)


def test_one_file_outside_the_folder_uses_it() -> None:
    """Besides type hints: ``build.py``, which calls ``install``."""
    model = Path(fast.__file__).parents[1]
    inside = [path for path in model.rglob("*.py") if "fast" not in path.parts]
    lines = [
        (path.name, line)
        for path in inside
        for line in path.read_text().splitlines()
        if "import" in line and "fast" in line.split("#")[0]
    ]
    used = [(name, line) for name, line in lines if not line.startswith("    ")]
    assert used == [("build.py", "from selftrain.model import fast, saved")]
    assert (model / "build.py").read_text().count("fast.") == 1
