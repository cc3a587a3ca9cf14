"""What tests of the report start from: finished small runs with an estimate and a ladder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import small_run
from finished_run import finish, renamed
from selftrain.data.rows import Example, Labelled, Split
from selftrain.model.backbone import Backbone
from selftrain.training.job import Job

PROBE = replace(small_run.PROBE, probe=replace(small_run.PROBE.probe, rounds=1))


@pytest.fixture(scope="session")
def finished(backbone: Backbone, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, which no test may change."""
    return finish(tmp_path_factory.mktemp("report") / "run", small_run.job(backbone, PROBE))


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of it to work on."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture(scope="session")
def gold() -> list[Labelled]:
    return list(small_run.split().labelled)


@pytest.fixture(scope="session")
def pool() -> list[Example]:
    return list(small_run.split().unlabelled)


@pytest.fixture
def run_of(backbone: Backbone, tmp_path: Path) -> Callable[..., tuple[Path, Split]]:
    """A finished run with these names of classes: ``run_of(["a", "b"], pair=True)``."""

    def make(names: Sequence[str], *, pair: bool = False) -> tuple[Path, Split]:
        task, split = renamed(names, pair=pair)
        method = replace(small_run.METHOD, rounds=1)
        return finish(tmp_path / "other", Job(task, split, method, backbone, 7)), split

    return make
