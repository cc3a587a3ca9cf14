"""Hashes by which things are found again, and files that anyone may have written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from selftrain.disk import plain_file, plain_folder, sha256, short_hash, valid
from selftrain.errors import RunError


@dataclass(frozen=True)
class Point:
    x: int


def test_the_short_hash_of_a_value_never_changes() -> None:
    """Results on disk are found by it: `printf '{"a": [1], "b": null}' | sha256sum`."""
    assert short_hash({"b": None, "a": [1]}) == short_hash({"a": [1], "b": None}) == "45d68d551077"
    assert short_hash({"a": [1], "b": None}, 20) == "45d68d5510776a9556a5"


def test_the_hash_of_a_file_is_that_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256(tmp_path / "abc").startswith("ba7816bf8f01cfea414140de5dae2223")


def test_json_of_another_shape_is_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "point.json"
    assert valid(Point, b'{"x": 3}', path) == Point(3)
    with pytest.raises(RunError, match=r"point\.json is damaged: `x` is '3': input should be"):
        valid(Point, b'{"x": "3"}', path)


def test_links_pipes_and_oversized_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1234")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder link").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert plain_file(tmp_path / "file", 4) == tmp_path / "file"
    assert plain_folder(tmp_path) == tmp_path
    with pytest.raises(RunError, match="has 4 bytes; expected at most 3"):
        plain_file(tmp_path / "file", 3)
    for name in ("link", "pipe"):
        with pytest.raises(RunError, match="is not a plain file"):
            plain_file(tmp_path / name)
    with pytest.raises(RunError, match="is not a plain folder"):
        plain_folder(tmp_path / "folder link")
