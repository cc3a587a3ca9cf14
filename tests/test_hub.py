"""Tasks by hub name: tables are fetched once and written as the folder a comparison reads."""

from __future__ import annotations

from pathlib import Path

import huggingface_hub
import pyarrow
import pyarrow.parquet
import pytest

from command import selftrain as command
from command import sentences
from selftrain import results
from selftrain.errors import ConfigError, DataError
from selftrain.hub import SOURCES, fetch
from selftrain.task import find, known
from selftrain.tasksets import Taskset


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A hub of local files: name → rows; counts what is fetched."""
    files: dict[str, list[dict]] = {}
    fetched: list[str] = []

    def download(filename, **where):
        fetched.append(filename)
        path = tmp_path / "hub" / filename
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(files[filename]), path)
        return str(path)

    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda **where: list(files))
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return files, fetched


def test_rows_get_our_names_and_labels(shop, tmp_path):
    files, fetched = shop
    files["mrpc/train-00000-of-00002.parquet"] = [
        {"sentence1": "a", "sentence2": "b", "label": 1, "idx": 0}
    ]
    files["mrpc/train-00001-of-00002.parquet"] = [
        {"sentence1": "c", "sentence2": "d", "label": 0, "idx": 1},
        {"sentence1": "e", "sentence2": "f", "label": -1, "idx": 2},
    ]
    files["mrpc/validation-00000-of-00001.parquet"] = [
        {"sentence1": "g", "sentence2": "h", "label": 1, "idx": 0}
    ]
    files["mrpc/test-00000-of-00001.parquet"] = []
    task = find("mrpc")
    fetch(task, tmp_path / "data")
    cut = Taskset.read(tmp_path / "data", task)
    told = {(row.example.text, row.example.pair, row.label) for row in cut.rows}
    assert told == {("a", "b", "equivalent"), ("c", "d", "not_equivalent")}
    assert [row.example.text for row in cut.test()] == ["g"]
    assert len(fetched) == 3
    fetch(task, tmp_path / "data")
    assert len(fetched) == 3


def test_bench_takes_its_rows_from_the_hub(shop, tmp_path):
    files, _ = shop
    rows = [{"sentence": text, "label": int(label == "good")} for text, label in sentences(40)]
    files["sst2/train-00000-of-00001.parquet"] = rows
    files["sst2/validation-00000-of-00001.parquet"] = rows[:10]
    (tmp_path / "grid.toml").write_text('references = ["majority"]\nmethods = []\n', "utf-8")
    said = command(
        f"bench hub -o {tmp_path / 'out'} --grid {tmp_path / 'grid.toml'} --task sst2 --seeds 1 "
        "--shots 4"
    )
    assert said.code == 0, said.err
    (only,) = results.read(tmp_path / "out" / "cells.jsonl")
    assert (only.rows, only.also_in_train) == (10, 10)


@pytest.mark.parametrize("label", [7, "yes", None])
def test_a_strange_label_is_named_and_leaves_no_file(shop, tmp_path, label):
    files, _ = shop
    files["sst2/train-00000-of-00001.parquet"] = [{"sentence": "a", "label": label}]
    with pytest.raises(DataError, match="label"):
        fetch(find("sst2"), tmp_path / "data")
    assert not list(Path(tmp_path / "data" / "sst2").iterdir())


def test_a_split_that_is_not_there_is_named(shop, tmp_path):
    with pytest.raises(DataError, match=r"has no sst2/train-\*\.parquet"):
        fetch(find("sst2"), tmp_path / "data")


def test_a_hub_out_of_reach_is_one_line_and_a_hint(tmp_path, monkeypatch):
    def refuse(**where):
        raise OSError("no network\nand more")

    monkeypatch.setattr(huggingface_hub, "list_repo_files", refuse)
    with pytest.raises(DataError, match=r"no network$") as caught:
        fetch(find("rte"), tmp_path)
    assert "give a folder" in caught.value.hint


def test_a_task_of_ones_own_has_no_place_there(tmp_path):
    task = find("sst2").changed({"name": "mine"})
    with pytest.raises(ConfigError, match="no known place"):
        fetch(task, tmp_path)


def test_all_seven_tasks_have_a_place():
    assert sorted(SOURCES) == known()
    for name, source in SOURCES.items():
        assert len(source.texts) == 1 + find(name).pair
