"""A sentence-transformers folder gives the logits of the run, and the shared weights stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from selftrain.data.task import Task
from selftrain.errors import ConfigError
from selftrain.export import sentence
from selftrain.export.folder import write_tokenizer
from selftrain.export.parity import drawn_texts
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.build import build
from selftrain.model.classifier import Classifier
from selftrain.model.pel import IA3, Adapter, AnyTuning, BitFit, Full, LoRA, Prefix, Probe, PTuning
from selftrain_lite import LiteError, load

TASK = Task("small", ("no", "maybe", "yes"), max_length=32)


def moved(backbone: Backbone, tuning: AnyTuning, head: str = "linear") -> Classifier:
    """A model whose tuned weights are not those it started with."""
    model = build(TASK, backbone, Architecture(tuning, head=head), seed=1)  # type: ignore[arg-type]
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.trainable().values():
            parameter.add_(0.05 * torch.randn_like(parameter))
    model.temperature = 1.4
    return model


def difference(model: Classifier, folder: Path) -> float:
    folder.mkdir()
    sentence.write_folder(model, folder)
    write_tokenizer(model, folder)
    return sentence.check_folder(model, folder, drawn_texts(model), real=False).difference


@pytest.mark.parametrize("tuning", [LoRA(rank=2, layers=1), IA3()], ids=lambda each: each.kind)
def test_what_a_module_learnt_is_merged_on_a_copy(
    backbone: Backbone, tuning: AnyTuning, tmp_path: Path
) -> None:
    frozen = {name: p.clone() for name, p in backbone.encoder.named_parameters()}
    model = moved(backbone, tuning, head="dense")
    digest = model.digest()
    assert difference(model, tmp_path / "folder") < 1e-5
    assert model.digest() == digest
    for name, parameter in backbone.encoder.named_parameters():
        assert torch.equal(parameter, frozen[name])
    assert backbone.encoder.config._attn_implementation == "sdpa"


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    ["bert", "roberta", "xlm-roberta", "electra", "albert", "distilbert", "deberta-v2",
     "modernbert", "mpnet"],
)  # fmt: skip
@pytest.mark.parametrize(
    "tuning", [Full(), BitFit(), LoRA(rank=2), IA3(), Probe()], ids=lambda each: each.kind
)
def test_every_family_has_such_a_folder(
    tiny_backbone: Callable[[str], Backbone], family: str, tuning: AnyTuning, tmp_path: Path
) -> None:
    if family == "modernbert" and isinstance(tuning, BitFit):
        with pytest.raises(ConfigError, match="has no biases"):
            moved(tiny_backbone(family), tuning)
        return
    assert difference(moved(tiny_backbone(family), tuning), tmp_path / "folder") < 1e-5


@pytest.mark.parametrize("tuning", [Adapter(width=4), Prefix(length=2), PTuning(length=2)])
def test_what_cannot_be_merged_is_refused_by_name(backbone: Backbone, tuning: AnyTuning) -> None:
    with pytest.raises(ConfigError, match=f"a model with {tuning.kind} has no") as raised:
        sentence.check_shape(moved(backbone, tuning))
    assert raised.value.hint == "--format onnx"


def test_prompts_and_pairs_are_refused(backbone: Backbone) -> None:
    words = {"no": ("terrible",), "yes": ("great",)}
    task = Task("p", ("no", "yes"), template="{text} It was {mask} .", words=words)
    with pytest.raises(ConfigError, match="a prompt has no sentence-transformers folder"):
        sentence.check_shape(build(task, backbone, Architecture(Full(), "prompt"), seed=0))
    pairs = Task("p", ("no", "yes"), pair=True)
    with pytest.raises(ConfigError, match="a model of pairs has no"):
        sentence.check_shape(build(pairs, backbone, Architecture(Full()), seed=0))


def test_lite_says_which_folder_it_reads(sentences: Path) -> None:
    with pytest.raises(LiteError, match="is a sentence-transformers folder") as raised:
        load(sentences)
    assert "selftrain export" in raised.value.hint
    assert (sentences / "2_Dense" / "model.safetensors").is_file()
    assert "from sentence_transformers import" in (sentences / "README.md").read_text()
