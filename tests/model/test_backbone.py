"""Loading encoders: what is accepted, what is refused, and with which message."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    ElectraConfig,
    ElectraForPreTraining,
    GPT2Config,
    GPT2LMHeadModel,
)

from selftrain.errors import ModelError
from selftrain.model.backbone import FAMILIES, MINILM_SHA256, Backbone, load
from tiny import RECIPES

Folders = Callable[[str], Path]


Backbones = Callable[[str], Backbone]


def test_there_are_nine_families_and_a_tiny_one_of_each() -> None:
    assert set(FAMILIES) == set(RECIPES)
    assert len(FAMILIES) == 9


@pytest.mark.parametrize("family", RECIPES)
def test_a_backbone_is_frozen_complete_and_has_its_head(
    family: str, tiny_backbone: Backbones
) -> None:
    backbone = tiny_backbone(family)
    assert not backbone.encoder.training
    assert not any(p.requires_grad for p in backbone.encoder.parameters())
    assert backbone.mlm is not None
    assert (
        backbone.mlm.weight
        is backbone.encoder.get_submodule(backbone.family.word_embeddings).weight
    )
    assert backbone.max_length == 64
    assert len(backbone.sha256) == 64


def test_the_embedded_backbone_is_the_upstream_file() -> None:
    backbone = load("minilm")
    assert backbone.sha256 == MINILM_SHA256
    assert (backbone.pooling, backbone.mlm, backbone.max_length) == ("mean", None, 512)
    assert backbone.revision is None


def test_a_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        load(tmp_path)


def test_a_pickle_is_refused(checkpoint: Path) -> None:
    (checkpoint / "model.safetensors").rename(checkpoint / "pytorch_model.bin")
    with pytest.raises(ModelError, match="pickle") as caught:
        load(checkpoint)
    assert "save_pretrained" in caught.value.hint


def test_a_folder_without_weights_is_refused(checkpoint: Path) -> None:
    (checkpoint / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"no model\.safetensors"):
        load(checkpoint)


def test_cut_off_weights_are_refused(checkpoint: Path) -> None:
    weights = checkpoint / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(checkpoint)


def test_weights_that_lack_a_tensor_are_refused(checkpoint: Path) -> None:
    tensors = {n: t.clone() for n, t in load_file(checkpoint / "model.safetensors").items()}
    del tensors["bert.encoder.layer.1.output.dense.weight"]
    save_file(tensors, checkpoint / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="1 tensors are missing"):
        load(checkpoint)


@pytest.mark.parametrize("damage", ["{", '{"model_type": "bert", "hidden_size": 16}'])
def test_a_config_that_does_not_fit_is_refused(damage: str, checkpoint: Path) -> None:
    (checkpoint / "config.json").write_text(damage)
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(checkpoint)


def sharded(folder: Path, to: str = "model-00001-of-00001.safetensors") -> None:
    """The weights as a shard, which an index says are in this file."""
    weights = folder / "model.safetensors"
    names = load_file(weights)
    weights.rename(folder / "model-00001-of-00001.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, to)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_shards_are_read_as_their_index_says(checkpoint: Path) -> None:
    whole = load(checkpoint)
    sharded(checkpoint)
    again = load(checkpoint)
    assert again.sha256 == whole.sha256
    assert all(map(torch.equal, again.encoder.parameters(), whole.encoder.parameters()))


@pytest.mark.parametrize("to", ["weights.bin", "../other.safetensors", "/etc/hostname", 5])
def test_an_index_that_leads_elsewhere_is_refused(to: str, checkpoint: Path) -> None:
    sharded(checkpoint, to)
    with pytest.raises(ModelError, match="its index names other files"):
        load(checkpoint)


@pytest.mark.parametrize("index", [None, "{", "[]", '{"weight_map": []}'])
def test_shards_without_a_sound_index_are_refused(index: str | None, checkpoint: Path) -> None:
    sharded(checkpoint)
    path = checkpoint / "model.safetensors.index.json"
    path.unlink() if index is None else path.write_text(index)
    with pytest.raises(ModelError, match="its index of shards"):
        load(checkpoint)


@pytest.mark.parametrize(
    ("file", "entry"),
    [
        ("adapter_config.json", {}),
        ("adapter_model.bin", {}),
        ("shard-00000-model-00001-of-00001.safetensors", {}),
        (None, {"transformers_weights": "other.safetensors"}),
        (None, {"quantization_config": {"quant_method": "bitsandbytes"}}),
        (None, {"attn_implementation": "kernels-community/flash-attn"}),
        (None, {"_attn_implementation": "someone/kernel"}),
    ],
)
def test_what_would_lead_to_other_weights_or_to_code_is_refused(
    file: str | None, entry: dict[str, object], checkpoint: Path
) -> None:
    if file is not None:
        (checkpoint / file).write_bytes(b"{}")
    config = checkpoint / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | entry))
    with pytest.raises(ModelError, match="is no plain checkpoint"):
        load(checkpoint)


@pytest.mark.parametrize("damage", ["{}", '{"version": "1.0", ', "[]"])
def test_a_damaged_tokenizer_is_refused(damage: str, checkpoint: Path) -> None:
    (checkpoint / "tokenizer.json").write_text(damage)
    with pytest.raises(ModelError, match="its tokenizer"):
        load(checkpoint)


def test_a_folder_without_tokenizer_is_refused(checkpoint: Path) -> None:
    for path in checkpoint.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(checkpoint)


def test_an_unknown_family_is_refused(tmp_path: Path) -> None:
    GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=9)).save_pretrained(
        tmp_path
    )
    with pytest.raises(ModelError, match="family `gpt2`; known are bert, roberta"):
        load(tmp_path)


def test_a_checkpoint_without_mlm_head_has_none(checkpoint: Path) -> None:
    """transformers would add a random head with a warning."""
    AutoModel.from_pretrained(checkpoint).save_pretrained(checkpoint)
    assert not load(checkpoint).can_prompt


def test_a_discriminator_is_no_language_model(tiny_folder: Folders, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_folder("electra"), tmp_path / "discriminator"))
    config = ElectraConfig.from_pretrained(folder)
    ElectraForPreTraining(config).save_pretrained(folder)
    assert load(folder).mlm is None


def test_the_published_layout_of_deberta_v3_is_recognised(
    tiny_folder: Folders, tiny_backbone: Backbones, tmp_path: Path
) -> None:
    """Its configurations do not say which of two MLM heads they have."""
    folder = Path(shutil.copytree(tiny_folder("deberta-v2"), tmp_path / "v3"))
    config = json.loads((folder / "config.json").read_text())
    assert config.pop("legacy") is False
    (folder / "config.json").write_text(json.dumps(config))
    head, same = load(folder).mlm, tiny_backbone("deberta-v2").mlm
    assert head is not None
    assert same is not None
    assert torch.equal(head.bias, same.bias)


def test_pooling_is_the_one_the_checkpoint_was_trained_with(checkpoint: Path) -> None:
    assert load(checkpoint).pooling == "cls"
    (checkpoint / "1_Pooling").mkdir()
    for facts in ({"pooling_mode_mean_tokens": True}, {"pooling_mode": "mean"}):
        (checkpoint / "1_Pooling" / "config.json").write_text(json.dumps(facts))
        assert load(checkpoint).pooling == "mean"


def test_half_precision_weights_are_computed_in_full(checkpoint: Path) -> None:
    tensors = {name: t.half() for name, t in load_file(checkpoint / "model.safetensors").items()}
    save_file(tensors, checkpoint / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((checkpoint / "config.json").read_text()) | {"dtype": "float16"}
    (checkpoint / "config.json").write_text(json.dumps(config))
    assert {p.dtype for p in load(checkpoint).encoder.parameters()} == {torch.float32}


def test_loading_is_silent(checkpoint: Path, capfd: pytest.CaptureFixture[str]) -> None:
    AutoModel.from_pretrained(checkpoint).save_pretrained(checkpoint)
    capfd.readouterr()
    load(checkpoint)
    assert capfd.readouterr() == ("", "")


def test_a_checkpoint_that_needs_its_own_code_is_refused_with_a_hint_that_fits(
    checkpoint: Path,
) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    ours = {"model_type": "ours", "auto_map": {"AutoConfig": "ours.Config"}}
    (checkpoint / "config.json").write_text(json.dumps({**config, **ours}))
    (checkpoint / "ours.py").write_text("raise SystemExit('code of a checkpoint was run')")
    with pytest.raises(ModelError, match="cannot be loaded") as error:
        load(checkpoint)
    assert "no code of a checkpoint is run" in error.value.hint
    assert "damaged" not in error.value.hint


@pytest.mark.parametrize("question", ["is_dir", "is_file"])
def test_a_folder_that_may_not_be_read_is_one_line_and_a_hint(
    question: str, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, question, forbidden)
    with pytest.raises(ModelError, match="cannot be read: Permission denied") as caught:
        load(checkpoint)
    assert "rights" in caught.value.hint


def test_a_revision_is_for_the_hub_alone(checkpoint: Path) -> None:
    for name in (str(checkpoint), "minilm"):
        with pytest.raises(ModelError, match="revision `main` is for a backbone on the hub"):
            load(name, revision="main")


def test_a_lack_of_memory_is_no_damaged_checkpoint(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starved(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr("selftrain.model.backbone._tokenizer", starved)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        load(checkpoint)
