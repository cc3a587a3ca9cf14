"""Tasks by hub name: tables are fetched once and written as the folder a comparison reads."""

from __future__ import annotations

import json
from pathlib import Path

import huggingface_hub
import pyarrow
import pyarrow.parquet
import pytest

from command import selftrain as command
from command import sentences
from selftrain.data.task import find, known
from selftrain.errors import ConfigError, DataError
from selftrain.experiments import results
from selftrain.experiments.hub import fetch, source
from selftrain.experiments.tasksets import Taskset


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
    fetch("mrpc", tmp_path / "data")
    cut = Taskset.read(tmp_path / "data", task)
    told = {(row.example.text, row.example.pair, row.label) for row in cut.rows}
    assert told == {("a", "b", "equivalent"), ("c", "d", "not_equivalent")}
    assert [row.example.text for row in cut.test()] == ["g"]
    assert len(fetched) == 3
    fetch("mrpc", tmp_path / "data")
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


@pytest.mark.parametrize("label", [7, "yes", 0.5])
def test_a_strange_label_is_named_and_leaves_no_file(shop, tmp_path, label):
    files, _ = shop
    files["sst2/train-00000-of-00001.parquet"] = [{"sentence": "a", "label": label}]
    with pytest.raises(DataError, match="label"):
        fetch("sst2", tmp_path / "data")
    assert not list((tmp_path / "data" / "sst2").iterdir())


def test_a_split_that_is_not_there_is_named(shop, tmp_path):
    with pytest.raises(DataError, match=r"has no sst2/train.parquet and no sst2/train-\*\.parquet"):
        fetch("sst2", tmp_path / "data")


def test_a_hub_out_of_reach_is_one_line_and_a_hint(tmp_path, monkeypatch):
    def refuse(**where):
        raise OSError("no network\nand more")

    monkeypatch.setattr(huggingface_hub, "list_repo_files", refuse)
    with pytest.raises(DataError, match=r"no network$") as caught:
        fetch("rte", tmp_path)
    assert "give a folder" in caught.value.hint


MINE = """name = "mine"
labels = ["spam", "ham"]
"""
PLACE = """
[hub]
repository = "someone/letters"
texts = ["body"]
label = "kind"
test = "held_out"
revision = "v2"
"""


@pytest.fixture
def mine(tmp_path):
    """Writes a task file of one's own and gives its name."""

    def write(hub: str) -> str:
        path = tmp_path / "mine.toml"
        path.write_text(MINE + hub, "utf-8")
        return str(path)

    return write


def test_a_task_of_ones_own_may_say_where_its_rows_are(shop, mine, tmp_path, monkeypatch):
    files, fetched = shop
    files["train.parquet"] = [{"body": "a", "kind": "ham"}, {"body": "b", "kind": "spam"}]
    files["held_out-00000-of-00001.parquet"] = [{"body": "c", "kind": "spam"}]
    files["train_more-00000-of-00001.parquet"] = [{"body": "x", "kind": "ham"}]
    asked: list[dict] = []

    def listed(**where):
        asked.append(where)
        return list(files)

    monkeypatch.setattr(huggingface_hub, "list_repo_files", listed)
    name = mine(PLACE)
    assert fetch(name, tmp_path / "data") == tmp_path / "data" / "mine"
    cut = Taskset.read(tmp_path / "data", find(name))
    assert {(row.example.text, row.label) for row in cut.rows} == {("a", "ham"), ("b", "spam")}
    assert [row.example.text for row in cut.test()] == ["c"]
    assert fetched == ["train.parquet", "held_out-00000-of-00001.parquet"]
    assert [(each["repo_id"], each["revision"]) for each in asked] == [
        ("someone/letters", "v2")
    ] * 2
    with pytest.raises(DataError, match="rows of another place"):
        fetch(mine(PLACE.replace("v2", "v3")), tmp_path / "data")


def test_a_place_that_was_wrong_can_be_corrected(shop, mine, tmp_path):
    files, _ = shop
    files["train.parquet"] = [{"body": "a", "kind": "ham"}, {"body": "b", "kind": None}]
    files["test.parquet"] = [{"body": "c", "kind": "spam"}]
    files["early.parquet"] = [{"body": "x", "kind": "ham"}]
    right = PLACE.replace("held_out", "test")
    wrong = right.replace('test = "test"', 'test = "tset"\ntrain = "early"')
    with pytest.raises(DataError, match=r"has no tset\.parquet"):
        fetch(mine(wrong), tmp_path / "data")
    here = fetch(mine(right), tmp_path / "data")
    (row,) = (here / "train.jsonl").read_text("utf-8").splitlines()  # None is no label
    assert json.loads(row) == {"text": "a", "label": "ham"}  # and nothing of the wrong place


@pytest.mark.parametrize("name", ["../x", "/x", "", "..", "a b"])
def test_the_name_of_a_task_leads_nowhere(shop, mine, tmp_path, name):
    path = Path(mine(PLACE))
    path.write_text(path.read_text("utf-8").replace('"mine"', f'"{name}"', 1), "utf-8")
    with pytest.raises(ConfigError, match="the name of a task"):
        fetch(str(path), tmp_path / "data" / "here")
    assert not (tmp_path / "data").exists()


def test_where_rows_are_changes_nothing_of_a_task(mine):
    assert find(mine("")) == find(mine(PLACE))


@pytest.mark.parametrize(
    ("hub", "problem"),
    [
        ("", "has no table `hub`"),
        ("hub = 3\n", "`hub`: input should be"),
        ('[hub]\ntexts = ["body"]\n', "`hub`: `repository`: field required"),
        ("[hub]\nrepository = 'a/b'\ntexts = []\n", "`hub`: `texts` is "),
        ("[hub]\nrepository = 'a/b'\ntexts = ['x']\nspilt = 'test'\n", "unknown key `spilt`"),
        ("[hub]\nrepository = 'a/b'\ntexts = ['x', 'y']\n", "names 2 columns of texts"),
    ],
)
def test_what_is_wrong_with_a_place_is_named(shop, mine, tmp_path, hub, problem):
    with pytest.raises(ConfigError, match=problem) as caught:
        fetch(mine(hub), tmp_path / "data")
    assert caught.value.hint
    assert not (tmp_path / "data").exists()


def test_all_seven_tasks_have_a_place():
    for name in known():
        assert source(name).repository
