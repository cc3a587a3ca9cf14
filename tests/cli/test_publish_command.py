"""``fit --publish`` and ``selftrain publish``: a copy of the run, and never a reason to stop."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from command import FIT, selftrain, snapshot
from object_store import object_store

__all__ = ["object_store"]


@pytest.fixture
def address() -> str:
    """A new place in memory."""
    return f"memory://{uuid4()}/run"


def published(address: str) -> dict[str, bytes]:
    """Every object below an address."""
    files = fsspec.filesystem(address.partition("://")[0])
    root = files._strip_protocol(address)
    return {name.removeprefix(f"{root}/"): files.cat_file(name) for name in files.find(root)}


def files(run: Path) -> dict[str, bytes]:
    """Every file of a run but its locks."""
    return {
        name: content
        for name, content in snapshot(run).items()
        if content is not None and not name.endswith(".lock")
    }


def test_fit_copies_the_whole_run_and_no_text_of_it(folder: Path, bert: Path, address: str) -> None:
    for name in ("labelled.csv", "pool.csv"):
        path = folder / name
        path.write_text(path.read_text().replace("film", "zanzibar"))
    said = selftrain(FIT.format(bert=bert) + f" --publish {address}")
    assert said.code == 0, said.err
    assert f"published: {address}" in said.err
    objects = published(address)
    assert objects == files(folder / "run")
    assert {"report.json", "report.html", "estimate.json", "rounds/1/round.json"} <= {*objects}
    assert not [name for name, content in objects.items() if b"zanzibar" in content]


def test_a_copy_that_fails_is_one_warning_and_the_training_ends(folder: Path, bert: Path) -> None:
    (folder / "blocked").write_text("a file, where a folder should be")
    said = selftrain(FIT.format(bert=bert) + f" --publish file://{folder}/blocked/run")
    assert said.code == 0, said.err
    (warning,) = [line for line in said.lines if "cannot publish" in line]
    assert warning.startswith("warning: cannot publish to file://")
    assert warning.endswith(f"later: selftrain publish run file://{folder}/blocked/run")
    assert (folder / "run" / "estimate.json").exists()
    assert "published" not in said.err


def test_another_run_is_not_mixed_into_a_copy(
    done: Path, folder: Path, bert: Path, address: str
) -> None:
    assert selftrain(f"publish {done} {address}").code == 0
    before = published(address)
    said = selftrain(FIT.format(bert=bert) + f" --seed 9 --publish {address}")
    assert said.code == 0, said.err
    assert "manifest.json is there already, with other content" in said.err
    assert published(address) == before
    refused = selftrain(f"publish run {address}")
    assert refused.code == 1
    assert "hint: choose another prefix" in refused.err


def test_publish_copies_a_finished_run_once(done: Path, address: str) -> None:
    first, again = (selftrain(f"publish {done} {address}") for _ in range(2))
    assert f"published: {address}, {len(files(done))} files copied" in first.err
    assert again.err.strip() == f"complete: {address}"
    assert published(address) == files(done)


@pytest.mark.parametrize("line", ["publish {run} ftp://host/run", "publish {run} bucket/run"])
def test_a_wrong_address_is_named(done: Path, line: str) -> None:
    said = selftrain(line.format(run=done))
    assert (said.code, "cannot publish to" in said.err) == (1, True)
    assert "hint: s3://BUCKET/PREFIX" in said.err


def test_fit_refuses_a_wrong_address_before_it_reads_a_row(folder: Path) -> None:
    said = selftrain("fit no-such.csv -u pool.csv -o run --publish nowhere")
    assert (said.code, "cannot publish to `nowhere`" in said.err) == (1, True)
    assert not (folder / "run").exists()


def test_what_is_no_run_is_not_published(folder: Path, address: str) -> None:
    said = selftrain(f"publish {folder} {address}")
    assert (said.code, "is not a run folder" in said.err) == (1, True)
    assert published(address) == {}


@pytest.mark.slow
def test_without_credentials_a_training_ends_all_the_same(
    folder: Path, bert: Path, object_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    said = selftrain(FIT.format(bert=bert) + f" --publish {object_store}/run")
    assert said.code == 0, said.err
    assert "credentials" in said.err
    assert (folder / "run" / "estimate.json").exists()
