"""Fixtures of the model's tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from selftrain.model.backbone import Backbone, load

Folders = Callable[[str], Path]


@pytest.fixture
def checkpoint(tiny_folder: Folders, tmp_path: Path) -> Path:
    """A copy of the tiny BERT, to be damaged."""
    return Path(shutil.copytree(tiny_folder("bert"), tmp_path / "checkpoint"))


@pytest.fixture
def backbone(tiny_folder: Folders) -> Backbone:
    """A backbone for one test alone: no other test uses its memories."""
    return load(tiny_folder("bert"))
