"""What tests of the export share: runs that were exported once, because each takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import small_run
from command import selftrain
from selftrain.export.folder import Wanted, export
from selftrain.export.origin import read_origin
from selftrain.model.backbone import Backbone
from selftrain.runs.manifest import Manifest
from selftrain.runs.train import train
from selftrain.runs.write import Run
from selftrain.training.loop import Round


@pytest.fixture(scope="session")
def small(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[Round], manifest: Manifest
) -> Path:
    """A finished run whose student is an adapter in the last layer."""
    folder = tmp_path_factory.mktemp("small") / "run"
    with Run.start(folder, manifest) as run:
        for round_ in rounds:
            run.save(round_)
    return folder


@pytest.fixture(scope="session")
def probes(tmp_path_factory: pytest.TempPathFactory, backbone: Backbone) -> Path:
    """A finished run that ends with rounds of a head alone."""
    folder = tmp_path_factory.mktemp("probes") / "run"
    for _ in train(folder, small_run.job(backbone, small_run.PROBE), small_run.MACHINE):
        pass
    return folder


@pytest.fixture(scope="session")
def exported(small: Path, tiny_folder: Callable[[str], Path]) -> Path:
    """That run as ONNX, written by the command."""
    out = small.parent / "model"
    done = selftrain(f"export {small} -o {out} --backbone {tiny_folder('bert')}")
    assert done.code == 0, done.err
    assert "checked on 200 random texts: 100.0% the same label" in done.err
    assert f"written: {out}" in done.err
    return out


@pytest.fixture(scope="session")
def sentences(probes: Path, backbone: Backbone) -> Path:
    """The run of probe rounds as a sentence-transformers folder."""
    out = probes.parent / "sentences"
    export(read_origin(probes, 0, backbone), out, Wanted("sentence-transformers"))
    return out
