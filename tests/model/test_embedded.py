"""What files show of a backbone before it is loaded, and which methods can use it."""

from __future__ import annotations

import shutil

import pytest
from safetensors.torch import load_file, save_file

from selftrain.method.changes import backbone_for, can_use
from selftrain.method.recipes import recipe
from selftrain.model.backbone import load
from selftrain.model.embedded import may_have_mlm_head
from selftrain.model.families import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_the_files_of_a_checkpoint_show_its_mlm_head(tiny_folder, family):
    assert may_have_mlm_head(str(tiny_folder(family)))


def test_a_checkpoint_without_a_head_shows_that_as_loading_does(tiny_folder, tmp_path):
    folder = tmp_path / "headless"
    shutil.copytree(tiny_folder("bert"), folder)
    weights = load_file(folder / "model.safetensors")
    encoder = {name: value for name, value in weights.items() if not name.startswith("cls.")}
    save_file(encoder, folder / "model.safetensors", {"format": "pt"})
    assert not may_have_mlm_head(str(folder))
    assert not load(folder).can_prompt


def test_of_the_embedded_backbones_only_one_has_a_head():
    assert not may_have_mlm_head("minilm")
    assert may_have_mlm_head("minilm-mlm")


@pytest.mark.parametrize("name", ["someone/on-the-hub", "/nowhere/at/all"])
def test_what_is_no_folder_may_have_a_head(name):
    assert may_have_mlm_head(name)


def test_a_damaged_file_may_have_a_head(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"no tensors")
    assert may_have_mlm_head(str(tmp_path))


@pytest.mark.parametrize("name", ["prompt-ft", "tapt-head-ft"])
def test_prompts_and_tapt_need_an_mlm_head(name, backbone):
    method = recipe(name)
    assert can_use(method, backbone)
    assert not can_use(method, "minilm")
    assert backbone_for(method) == "minilm-mlm"


def test_a_head_method_can_use_every_backbone():
    assert can_use(recipe("head-ft"), "minilm")
