"""Which code a figure comes from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from selftrain.experiments.commit import commit_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package in a checkout with one commit, beside one that is only installed there."""
    for name in ("package", "installed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "code.py").write_text("x = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "package")
    git(tmp_path, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "first")
    return tmp_path


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_tracked_folder_has_a_commit_and_a_plus_where_it_differs(folder: Path) -> None:
    head = git(folder, "rev-parse", "--short", "HEAD")
    assert commit_of(folder / "package") == head
    (folder / "package" / "code.py").write_text("x = 2\n")
    assert commit_of(folder / "package") == head + "+"
    assert commit_of(folder / "package", "code.py") == head


def test_a_plus_also_where_git_cannot_tell_what_differs(folder: Path) -> None:
    git(folder, "config", "status.showUntrackedFiles", "nonsense")
    assert commit_of(folder / "package") == git(folder, "rev-parse", "--short", "HEAD") + "+"


def test_what_lies_in_a_checkout_without_being_tracked_has_none(folder: Path) -> None:
    assert commit_of(folder / "installed") == ""


def test_without_a_checkout_or_without_git_there_is_none(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert commit_of(tmp_path_factory.mktemp("elsewhere")) == ""
    monkeypatch.setenv("PATH", "")
    assert commit_of(folder / "package") == ""
