"""What this machine has, for a bug report: facts, and nothing of the user's."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from selftrain.cli.doctor import (
    PACKAGES,
    device,
    facts,
    from_hub,
    installed,
    precisions,
    processes,
)


def test_every_package_we_stand_on_is_named_with_its_version() -> None:
    found = facts()
    for package in PACKAGES:
        assert found[package] == version(package)
    assert found["threads"] == str(torch.get_num_threads())
    assert found["backbone minilm"] == "installed"


def test_nothing_of_the_users_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SELFTRAIN_CACHE", str(tmp_path / "secret"))
    found = facts()
    assert found["demo set"] == "not fetched yet"
    assert not [value for value in found.values() if "secret" in value or str(Path.home()) in value]


def test_the_demo_set_is_seen_once_it_is_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SELFTRAIN_CACHE", str(tmp_path))
    (tmp_path / "vaderSentiment-3.3.2.tar.gz").touch()
    assert facts()["demo set"] == "cached"


def test_backbones_from_the_hub_are_named_as_one_asks_for_them(tmp_path: Path) -> None:
    for name in ("models--roberta-base", "models--org--small-bert", "datasets--org--rows"):
        (tmp_path / name).mkdir()
    assert from_hub(tmp_path) == ["org/small-bert", "roberta-base"]
    assert from_hub(tmp_path / "nowhere") == []


def test_a_package_that_is_not_there_is_no_error() -> None:
    assert installed("no-such-package-anywhere") == "not installed"


def test_the_device_is_the_best_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert device() == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "T4")
    assert device() == "cuda (T4)"


def test_what_a_gpu_would_do_is_said_with_what_nobody_verified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert precisions() == ["fp32", "bf16"]
    assert processes() == "torchrun, over gloo on the CPU"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    assert precisions() == ["fp32", "tf32"]
    assert "--nproc_per_node 4, over nccl (not verified" in processes()
