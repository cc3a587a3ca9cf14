"""What the tests share: tiny backbones, made once per run."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
import torch

import small_run
from estimators import LABELS, POOL, TEXTS, Make, quick_estimator
from selftrain import SelfTrainingClassifier
from selftrain.experiments import tasksets
from selftrain.experiments.bench import Bench
from selftrain.model.backbone import Backbone, load
from selftrain.runs.manifest import Manifest
from selftrain.runs.write import Run
from selftrain.training.loop import Round, self_train
from small_bench import bench_of, write_part
from tiny import make as make_checkpoint


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failure: there is nothing it could be waiting for."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("SELFTRAIN_NO_SKIP") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Two workers with two threads each on two cores would be slower than one."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def imports_are_no_garbage() -> None:
    """A full collection that looks through all of torch takes longer than a small fit."""
    gc.freeze()


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A tiny checkpoint's folder, by family: ``tiny_folder("bert")``."""
    root = tmp_path_factory.mktemp("backbones")
    return cache(lambda family: make_checkpoint(family, root / family))


@pytest.fixture(scope="session")
def tiny_backbone(tiny_folder: Callable[[str], Path]) -> Callable[[str], Backbone]:
    """A tiny backbone, by family: ``tiny_backbone("bert")``. Frozen, so shared by all tests."""
    return cache(lambda family: load(tiny_folder(family)))


# ── a run folder ──


@pytest.fixture(scope="session")
def backbone(tiny_backbone: Callable[[str], Backbone]) -> Backbone:
    return tiny_backbone("bert")


@pytest.fixture(scope="session")
def rounds(backbone: Backbone) -> list[Round]:
    """What the small run gives."""
    return list(self_train(small_run.job(backbone), machine=small_run.MACHINE))


@pytest.fixture(scope="session")
def manifest(backbone: Backbone) -> Manifest:
    return small_run.manifest(backbone)


@pytest.fixture
def folder(tmp_path: Path, rounds: list[Round], manifest: Manifest) -> Path:
    """A finished run."""
    with Run.start(tmp_path / "run", manifest) as run:
        for round_ in rounds:
            run.save(round_)
    return tmp_path / "run"


# ── a task on disk ──


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one small task, and few rows set aside for design."""
    monkeypatch.setattr(tasksets, "DESIGN", 20)
    write_part(tmp_path / "data", "train", 100)
    write_part(tmp_path / "data", "test", 30, first=500)
    return tmp_path / "data"


@pytest.fixture
def small_bench(
    data: Path, tmp_path: Path, tiny_folder: Callable[[str], Path]
) -> Callable[..., Bench]:
    """A bench on that task, by the name of its folder: ``small_bench("out", seeds=(12,))``."""
    return lambda out="out", **more: bench_of(data, tmp_path / out, tiny_folder("bert"), **more)


# ── a classifier ──


@pytest.fixture(scope="session")
def make(tiny_folder: Callable[[str], Path]) -> Make:
    """Makes quick classifiers: ``make(rounds=2)``."""
    return partial(quick_estimator, tiny_folder("bert"))


@pytest.fixture(scope="session")
def fitted(make: Make) -> SelfTrainingClassifier:
    return make().fit(TEXTS, LABELS, unlabelled=POOL)
