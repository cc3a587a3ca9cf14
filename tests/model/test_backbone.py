"""Loading encoders: what is accepted, what is refused and how, and second trees on one memory."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import huggingface_hub
import pytest
import torch
from huggingface_hub.utils import filter_repo_objects
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import (
    AutoModel,
    ElectraConfig,
    ElectraForPreTraining,
    GPT2Config,
    GPT2LMHeadModel,
)

import small_run
from selftrain.errors import ConfigError, ModelError
from selftrain.model.backbone import FAMILIES, MINILM_SHA256, Backbone, load
from selftrain.model.surgery import cut, twin
from selftrain.runs.manifest import MANIFEST, Base, Manifest
from selftrain.runs.write import Run
from tiny import RECIPES

Folders = Callable[[str], Path]
Backbones = Callable[[str], Backbone]


@pytest.fixture
def broken(tiny_folder: Folders, tmp_path: Path) -> Path:
    """A copy of the tiny BERT, to be damaged."""
    return Path(shutil.copytree(tiny_folder("bert"), tmp_path / "broken"))


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
    assert backbone.mlm.weight is backbone.encoder.get_submodule(backbone.family.words).weight
    assert backbone.max_length == 64
    assert len(backbone.sha256) == 64


def test_the_embedded_backbone_is_the_upstream_file() -> None:
    backbone = load("minilm")
    assert backbone.sha256 == MINILM_SHA256
    assert (backbone.pooling, backbone.mlm, backbone.max_length) == ("mean", None, 512)
    assert backbone.revision is None


def test_the_add_on_gives_the_embedded_backbone_a_head_that_has_learnt() -> None:
    plain, changed = load("minilm"), load("minilm-mlm")
    assert changed.mlm is not None
    assert changed.sha256 != plain.sha256
    tokenizer = changed.tokenizer
    ids = tokenizer("the capital of france is [MASK] .", return_tensors="pt")
    at = ids["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    words = torch.tensor(tokenizer.convert_tokens_to_ids(["paris", "banana"]))
    with torch.no_grad():
        hidden = changed.encoder(**ids).last_hidden_state[:, at]
        paris, banana = changed.mlm(hidden, words)[0]
    assert paris > banana + 2


def test_the_low_rank_update_is_b_times_a() -> None:
    addon = load_file(
        Path(sys.modules["selftrain.model.backbone"].ADDONS) / "minilm-mlm/addon.safetensors"
    )
    name = "encoder.layer.3.attention.self.query"
    before = load("minilm").encoder.get_parameter(f"{name}.weight")
    after = load("minilm-mlm").encoder.get_parameter(f"{name}.weight")
    a, b = addon[f"{name}.lora_A.weight"].float(), addon[f"{name}.lora_B.weight"].float()
    torch.testing.assert_close(after, before + b @ a)


def test_an_add_on_for_another_base_is_refused(tmp_path: Path) -> None:
    facts = {"base": "minilm", "base_sha256": "0" * 64}
    save_file({"mlm.bias": torch.zeros(3)}, tmp_path / "addon.safetensors", metadata=facts)
    with pytest.raises(ModelError, match="was trained for `minilm` with sha256 0000"):
        load(tmp_path)


@pytest.mark.parametrize("base", ["someone/encoder", "nowhere", "."])
def test_an_add_on_leads_to_a_folder_with_an_encoder_and_nowhere_else(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not to the hub, and not to itself without end."""
    monkeypatch.chdir(tmp_path)
    facts = {"base": base, "base_sha256": "0" * 64}
    save_file({"mlm.bias": torch.zeros(3)}, tmp_path / "addon.safetensors", metadata=facts)
    with pytest.raises(ModelError, match="is no folder with an encoder here"):
        load(tmp_path)


@pytest.mark.parametrize("base", ["//host/share", r"\\host\share", r"/\host\share", "x" * 300])
def test_an_add_on_leads_to_no_other_machine_and_to_no_name_the_system_refuses(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []
    really = Path.is_dir
    monkeypatch.setattr(Path, "is_dir", lambda path: looked.append(path) or really(path))
    facts = {"base": base, "base_sha256": "0" * 64}
    save_file({"mlm.bias": torch.zeros(3)}, tmp_path / "addon.safetensors", metadata=facts)
    with pytest.raises(ModelError, match="is no folder with an encoder here"):
        load(tmp_path)
    assert not any("host" in str(path) for path in looked)


DENSE = "encoder.layer.0.attention.output.dense"
A, B = f"{DENSE}.lora_A.weight", f"{DENSE}.lora_B.weight"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({A: None}, f"it lacks tensor `{A}`"),
        ({B: None}, f"it lacks tensor `{B}`"),
        ({"mlm.bias": None}, "it lacks tensor `mlm.bias`"),
        ({A: (1, 3000), B: (3000, 1)}, "shape [3000, 1] times [1, 3000]; expected [384, 384]"),
        ({A: (1, 1), B: (1, 1)}, "shape [1, 1] times [1, 1]; expected [384, 384]"),
        ({A: (384,), B: (384,)}, "shape [384] times [384]; expected [384, 384]"),
        ({A: (4, 2, 384)}, "shape [384, 64] times [4, 2, 384]; expected [384, 384]"),
        ({"mlm.bias": (1,)}, "shape [1]; expected [30522]"),
    ],
)
def test_an_add_on_that_is_not_whole_or_does_not_fit_is_refused(
    changes: dict[str, tuple[int, ...] | None], problem: str, tmp_path: Path
) -> None:
    tensors = load_file(
        sys.modules["selftrain.model.backbone"].ADDONS / "minilm-mlm/addon.safetensors"
    )
    for name, shape in changes.items():
        del tensors[name]
        if shape is not None:
            tensors[name] = torch.zeros(shape)
    facts = {"base": "minilm", "base_sha256": MINILM_SHA256}
    save_file(tensors, tmp_path / "addon.safetensors", metadata=facts)
    with pytest.raises(ModelError, match=re.escape(f"the add-on does not fit: {problem}")):
        load(tmp_path)


def test_an_add_on_that_is_no_file_of_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "addon.safetensors").write_bytes(b"nonsense")
    with pytest.raises(ModelError, match="cannot be read"):
        load(tmp_path)


def test_a_twin_shares_its_memory_and_owns_what_it_is_told(tiny_backbone: Backbones) -> None:
    backbone = tiny_backbone("bert")
    name = "embeddings.word_embeddings.weight"
    second = twin(backbone.encoder, {name})
    for (path, mine), theirs in zip(
        second.named_parameters(), backbone.encoder.parameters(), strict=True
    ):
        assert (mine.data_ptr() == theirs.data_ptr()) == (path != name)
    assert torch.equal(second.get_parameter(name), backbone.encoder.get_parameter(name))


def test_a_twin_keeps_a_tied_decoder_tied(tiny_backbone: Backbones) -> None:
    backbone = tiny_backbone("roberta")
    assert backbone.mlm is not None
    both = nn.ModuleDict({"encoder": backbone.encoder, "mlm": backbone.mlm})
    second = twin(both, {"encoder.embeddings.word_embeddings.weight"})
    words = second["encoder"].get_submodule("embeddings.word_embeddings").weight
    assert second["mlm"].weight is words
    assert words is not backbone.mlm.weight


def test_what_is_put_into_a_twin_leaves_the_first_alone(tiny_backbone: Backbones) -> None:
    encoder = tiny_backbone("bert").encoder
    names = [name for name, _ in encoder.named_modules()]
    second = twin(encoder)
    second.encoder.layer[0].output.dense = nn.Identity()
    second.config._attn_implementation = "eager"
    assert [name for name, _ in encoder.named_modules()] == names
    assert isinstance(encoder.encoder.layer[0].output.dense, nn.Linear)
    assert encoder.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("family", [name for name in RECIPES if name != "albert"])
def test_an_encoder_cut_in_two_says_the_same_to_the_last_bit(
    family: str, at: int, tiny_backbone: Backbones
) -> None:
    backbone = tiny_backbone(family)
    rows = backbone.tokenizer(["a great film", "no"], padding=True, return_tensors="pt")
    ids, mask = rows["input_ids"], rows["attention_mask"]
    lower, upper = cut(backbone.encoder, backbone.family, at)
    with torch.no_grad():
        whole = backbone.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        middle = lower(input_ids=ids, attention_mask=mask).last_hidden_state
        halves = upper(inputs_embeds=middle, attention_mask=mask).last_hidden_state
    assert torch.equal(whole[mask.bool()], halves[mask.bool()])


def test_shared_layers_cannot_be_cut(tiny_backbone: Backbones) -> None:
    backbone = tiny_backbone("albert")
    with pytest.raises(ConfigError, match="cannot be cut"):
        cut(backbone.encoder, backbone.family, 1)


def test_a_missing_folder_is_not_looked_for_on_the_hub(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        load(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="does not exist"):
        load("./nowhere")


def test_a_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        load(tmp_path)


def test_a_pickle_is_refused(broken: Path) -> None:
    (broken / "model.safetensors").rename(broken / "pytorch_model.bin")
    with pytest.raises(ModelError, match="pickle") as caught:
        load(broken)
    assert "save_pretrained" in caught.value.hint


def test_a_folder_without_weights_is_refused(broken: Path) -> None:
    (broken / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"no model\.safetensors"):
        load(broken)


def test_cut_off_weights_are_refused(broken: Path) -> None:
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(broken)


def test_weights_that_lack_a_tensor_are_refused(broken: Path) -> None:
    tensors = {n: t.clone() for n, t in load_file(broken / "model.safetensors").items()}
    del tensors["bert.encoder.layer.1.output.dense.weight"]
    save_file(tensors, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="1 tensors are missing"):
        load(broken)


@pytest.mark.parametrize("damage", ["{", '{"model_type": "bert", "hidden_size": 16}'])
def test_a_config_that_does_not_fit_is_refused(damage: str, broken: Path) -> None:
    (broken / "config.json").write_text(damage)
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(broken)


def sharded(folder: Path, to: str = "model-00001-of-00001.safetensors") -> None:
    """The weights as a shard, which an index says are in this file."""
    weights = folder / "model.safetensors"
    names = load_file(weights)
    weights.rename(folder / "model-00001-of-00001.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, to)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_shards_are_read_as_their_index_says(broken: Path) -> None:
    whole = load(broken)
    sharded(broken)
    again = load(broken)
    assert again.sha256 == whole.sha256
    assert all(map(torch.equal, again.encoder.parameters(), whole.encoder.parameters()))


@pytest.mark.parametrize("to", ["weights.bin", "../other.safetensors", "/etc/hostname", 5])
def test_an_index_that_leads_elsewhere_is_refused(to: str, broken: Path) -> None:
    sharded(broken, to)
    with pytest.raises(ModelError, match="its index names other files"):
        load(broken)


@pytest.mark.parametrize("index", [None, "{", "[]", '{"weight_map": []}'])
def test_shards_without_a_sound_index_are_refused(index: str | None, broken: Path) -> None:
    sharded(broken)
    path = broken / "model.safetensors.index.json"
    path.unlink() if index is None else path.write_text(index)
    with pytest.raises(ModelError, match="its index of shards"):
        load(broken)


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
    file: str | None, entry: dict[str, object], broken: Path
) -> None:
    if file is not None:
        (broken / file).write_bytes(b"{}")
    config = broken / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | entry))
    with pytest.raises(ModelError, match="is no plain checkpoint"):
        load(broken)


@pytest.mark.parametrize("damage", ["{}", '{"version": "1.0", ', "[]"])
def test_a_damaged_tokenizer_is_refused(damage: str, broken: Path) -> None:
    (broken / "tokenizer.json").write_text(damage)
    with pytest.raises(ModelError, match="its tokenizer"):
        load(broken)


def test_a_folder_without_tokenizer_is_refused(broken: Path) -> None:
    for path in broken.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(broken)


def test_an_unknown_family_is_refused(tmp_path: Path) -> None:
    GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=9)).save_pretrained(
        tmp_path
    )
    with pytest.raises(ModelError, match="family `gpt2`; known are bert, roberta"):
        load(tmp_path)


def test_a_checkpoint_without_mlm_head_has_none(broken: Path) -> None:
    """transformers would hand out a random head with a warning."""
    AutoModel.from_pretrained(broken).save_pretrained(broken)
    assert load(broken).mlm is None


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


def test_pooling_is_the_one_the_checkpoint_was_trained_with(broken: Path) -> None:
    assert load(broken).pooling == "cls"
    (broken / "1_Pooling").mkdir()
    for facts in ({"pooling_mode_mean_tokens": True}, {"pooling_mode": "mean"}):
        (broken / "1_Pooling" / "config.json").write_text(json.dumps(facts))
        assert load(broken).pooling == "mean"


def test_half_precision_weights_are_computed_in_full(broken: Path) -> None:
    tensors = {name: t.half() for name, t in load_file(broken / "model.safetensors").items()}
    save_file(tensors, broken / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((broken / "config.json").read_text()) | {"dtype": "float16"}
    (broken / "config.json").write_text(json.dumps(config))
    assert {p.dtype for p in load(broken).encoder.parameters()} == {torch.float32}


def test_loading_is_silent(broken: Path, capfd: pytest.CaptureFixture[str]) -> None:
    AutoModel.from_pretrained(broken).save_pretrained(broken)
    capfd.readouterr()
    load(broken)
    assert capfd.readouterr() == ("", "")


COMMIT = "0123456789abcdef0123456789abcdef01234567"
UNWANTED = ("pytorch_model.bin", "modeling_x.py", "optimizer.pkl", "rust_model.ot", "tf_model.h5")


@pytest.fixture
def hub(broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub whose one repository holds pickles and code beside its checkpoint; its cache."""
    for name in UNWANTED:
        (broken / name).write_bytes(b"not to be fetched")
    (broken / "1_Pooling").mkdir()
    (broken / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    cache = tmp_path / "models--someone--encoder" / "snapshots"

    def snapshot_download(name: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        assert name == "someone/encoder"
        assert revision in (None, "main")
        names = [str(path.relative_to(broken)) for path in broken.rglob("*") if path.is_file()]
        for wanted in filter_repo_objects(names, allow_patterns=allow_patterns):
            (cache / COMMIT / wanted).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(broken / wanted, cache / COMMIT / wanted)
        return str(cache / COMMIT)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return cache


@pytest.mark.parametrize("revision", [None, "main"])
def test_a_backbone_from_the_hub_is_named_by_its_commit(
    revision: str | None, hub: Path, broken: Path
) -> None:
    """Not by a branch, which moves on."""
    backbone = load("someone/encoder", revision=revision)
    assert (backbone.name, backbone.revision) == ("someone/encoder", COMMIT)
    assert backbone.sha256 == load(broken).sha256
    assert backbone.pooling == "mean"
    assert backbone.mlm is not None


def test_weights_and_tokenizer_are_fetched_from_the_hub_and_neither_pickle_nor_code(
    hub: Path, broken: Path
) -> None:
    load("someone/encoder")
    fetched = {str(path.relative_to(hub / COMMIT)) for path in hub.rglob("*.*") if path.is_file()}
    there = {str(path.relative_to(broken)) for path in broken.rglob("*.*") if path.is_file()}
    assert fetched == there - set(UNWANTED)
    assert {"config.json", "tokenizer.json", "model.safetensors"} <= fetched


def test_a_run_records_the_commit_its_backbone_came_from(hub: Path, tmp_path: Path) -> None:
    backbone = load("someone/encoder")
    with Run.start(tmp_path / "run", small_run.manifest(backbone)):
        pass
    base = Manifest.read(tmp_path / "run" / MANIFEST).backbone
    assert base == Base("someone/encoder", COMMIT, backbone.sha256)


def test_a_name_fetched_once_is_found_again_without_the_network(
    tiny_folder: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder as the hub's own cache lays it out."""
    repository = tmp_path / "models--someone--encoder"
    shutil.copytree(tiny_folder("bert"), repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert load("someone/encoder").revision == COMMIT


OFFLINE = """
import sys
from selftrain.model.backbone import load
from selftrain.errors import ModelError
assert load(sys.argv[1]).mlm is not None
assert load("minilm-mlm").mlm is not None
try:
    load("someone/something")
except ModelError as error:
    print(error)
"""


def test_a_folder_needs_no_network_and_a_hub_name_says_that_it_does(
    tiny_folder: Folders, tmp_path: Path
) -> None:
    """With the network really gone: a namespace of its own, without even a loopback."""
    done = subprocess.run(
        ["unshare", "-rn", sys.executable, "-c", OFFLINE, str(tiny_folder("modernbert"))],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "`someone/something` is no folder and could not be had from the hub" in done.stdout
