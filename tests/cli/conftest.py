"""What tests of the command line start from: a folder of files, and finished runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from command import FIT, selftrain, write_files


@pytest.fixture(scope="session")
def bert(tiny_folder: Callable[[str], Path]) -> Path:
    return tiny_folder("bert")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of a user, and the place where commands are given."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    return tmp_path


def fitted(folder: Path, line: str) -> Path:
    write_files(folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        said = selftrain(line)
    assert said.code == 0, said.err
    return folder


@pytest.fixture(scope="session")
def done(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    return fitted(tmp_path_factory.mktemp("finished"), FIT.format(bert=bert)) / "run"


@pytest.fixture(scope="session")
def finished(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run in it, which had dev rows."""
    return fitted(tmp_path_factory.mktemp("life"), FIT.format(bert=bert) + " --dev dev.csv")


@pytest.fixture
def life(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder to work in."""
    copy = tmp_path / "life"
    shutil.copytree(finished, copy)
    monkeypatch.chdir(copy)
    return copy
