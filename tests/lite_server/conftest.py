"""A tiny exported model, once for all tests of the server."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from lite_model import write_model
from selftrain_lite import Model, load


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("lite") / "model")


@pytest.fixture(scope="session")
def model(model_folder: Path) -> Model:
    return load(model_folder, threads=1)


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Model]:
    """Other tiny models: ``other_model(pair=True)``."""
    root = tmp_path_factory.mktemp("others")
    number = iter(range(100))
    return cache(lambda **more: load(write_model(root / f"{next(number)}", **more), threads=1))
