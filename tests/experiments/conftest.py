"""Fixtures of a small search."""

from __future__ import annotations

from pathlib import Path

import pytest

from selftrain.experiments.sweep import Sweep
from small_sweep import made_up_cells, sweep_of


@pytest.fixture
def sweep_data(data: Path) -> Path:
    """Without a test file: a sweep never reads one."""
    (data / "sst2" / "test.jsonl").unlink()
    return data


@pytest.fixture
def make_sweep(sweep_data, tmp_path, tiny_folder):
    """A sweep around the small method, by the name of its folder."""
    return lambda out="out", **changes: sweep_of(
        sweep_data, tmp_path / out, tiny_folder("bert"), **changes
    )


@pytest.fixture
def untrained(monkeypatch):
    """Cells are made up at once; gives the list of the methods asked for."""
    asked = []

    def cells(self, method, _=None):
        asked.append(method)
        return made_up_cells(self, method)

    monkeypatch.setattr(Sweep, "cells", cells)
    return asked
