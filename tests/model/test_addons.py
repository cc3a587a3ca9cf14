"""Add-ons: an MLM head for an encoder without one, and which files are refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from selftrain.errors import ModelError
from selftrain.model.backbone import MINILM_SHA256, load


def test_the_add_on_gives_the_embedded_backbone_a_head_that_has_learnt() -> None:
    plain, changed = load("minilm"), load("minilm-mlm")
    assert changed.mlm is not None
    assert changed.can_prompt
    assert not plain.can_prompt
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
        Path(sys.modules["selftrain.model.embedded"].ADDONS) / "minilm-mlm/addon.safetensors"
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
    visited = []
    is_dir = Path.is_dir
    monkeypatch.setattr(Path, "is_dir", lambda path: visited.append(path) or is_dir(path))
    facts = {"base": base, "base_sha256": "0" * 64}
    save_file({"mlm.bias": torch.zeros(3)}, tmp_path / "addon.safetensors", metadata=facts)
    with pytest.raises(ModelError, match="is no folder with an encoder here"):
        load(tmp_path)
    assert not any("host" in str(path) for path in visited)


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
        sys.modules["selftrain.model.embedded"].ADDONS / "minilm-mlm/addon.safetensors"
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
