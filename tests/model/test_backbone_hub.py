"""Backbones from the hub: what is downloaded, what is recorded, and no network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub.utils import filter_repo_objects

import small_run
from selftrain.errors import ModelError
from selftrain.model.backbone import load
from selftrain.model.card import Source
from selftrain.runs.manifest import MANIFEST, Manifest
from selftrain.runs.write import Run

Folders = Callable[[str], Path]


def test_a_missing_folder_is_not_looked_for_on_the_hub(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        load(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="does not exist"):
        load("./nowhere")


COMMIT = "0123456789abcdef0123456789abcdef01234567"


UNWANTED = ("pytorch_model.bin", "modeling_x.py", "optimizer.pkl", "rust_model.ot", "tf_model.h5")


@pytest.fixture
def hub(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub whose one repository holds pickles and code beside its checkpoint; its cache."""
    for name in UNWANTED:
        (checkpoint / name).write_bytes(b"not to be fetched")
    (checkpoint / "1_Pooling").mkdir()
    (checkpoint / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    cache = tmp_path / "models--someone--encoder" / "snapshots"

    def snapshot_download(name: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        assert name == "someone/encoder"
        assert revision in (None, "main")
        names = [
            str(path.relative_to(checkpoint)) for path in checkpoint.rglob("*") if path.is_file()
        ]
        for wanted in filter_repo_objects(names, allow_patterns=allow_patterns):
            (cache / COMMIT / wanted).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(checkpoint / wanted, cache / COMMIT / wanted)
        return str(cache / COMMIT)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return cache


@pytest.mark.parametrize("revision", [None, "main"])
def test_a_backbone_from_the_hub_is_named_by_its_commit(
    revision: str | None, hub: Path, checkpoint: Path
) -> None:
    """Not by a branch, which moves on."""
    backbone = load("someone/encoder", revision=revision)
    assert (backbone.name, backbone.revision) == ("someone/encoder", COMMIT)
    assert backbone.sha256 == load(checkpoint).sha256
    assert backbone.pooling == "mean"
    assert backbone.mlm is not None


def test_weights_and_tokenizer_are_fetched_from_the_hub_and_neither_pickle_nor_code(
    hub: Path, checkpoint: Path
) -> None:
    load("someone/encoder")
    fetched = {str(path.relative_to(hub / COMMIT)) for path in hub.rglob("*.*") if path.is_file()}
    available = {
        str(path.relative_to(checkpoint)) for path in checkpoint.rglob("*.*") if path.is_file()
    }
    assert fetched == available - set(UNWANTED)
    assert {"config.json", "tokenizer.json", "model.safetensors"} <= fetched


def test_a_run_records_the_commit_its_backbone_came_from(hub: Path, tmp_path: Path) -> None:
    backbone = load("someone/encoder")
    with Run.start(tmp_path / "run", small_run.manifest(backbone)):
        pass
    base = Manifest.read(tmp_path / "run" / MANIFEST).backbone
    assert base == Source("someone/encoder", COMMIT, backbone.sha256)


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
    assert "`someone/something` is no folder, and downloading it from the hub failed" in done.stdout
