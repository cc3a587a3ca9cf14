"""Model folders that cannot be used: one line and a hint, whoever wrote them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lite_folder
from selftrain_lite import LiteError, load
from selftrain_lite import folder as folders

Spoil = Callable[[Path], object]


def written(**changes: Any) -> Spoil:
    """Entries of selftrain.json replaced; None removes one."""

    def change(folder: Path) -> None:
        path = folder / "selftrain.json"
        facts = json.loads(path.read_text()) | changes
        path.write_text(json.dumps({k: v for k, v in facts.items() if v is not ...}))

    return change


def tokens(**changes: Any) -> Spoil:
    return lambda folder: written(
        tokens=json.loads((folder / "selftrain.json").read_text())["tokens"] | changes
    )(folder)


def graph(*names: str, **more: Any) -> Spoil:
    """Another graph, with the sha256 that fits."""

    def change(folder: Path) -> None:
        shutil.rmtree(folder)
        lite_folder.write(folder, lite_folder.graph(*names, **more))

    return change


def linked(name: str) -> Spoil:
    def change(folder: Path) -> None:
        path = folder / name
        path.rename(folder / "elsewhere")
        path.symlink_to(folder / "elsewhere")

    return change


def replaced(name: str, content: bytes) -> Spoil:
    return lambda folder: (folder / name).write_bytes(content)


def replaced_graph(content: bytes) -> Spoil:
    def change(folder: Path) -> None:
        shutil.rmtree(folder)
        lite_folder.write(folder, content)

    return change


def deep(folder: Path) -> None:
    (folder / "selftrain.json").write_text("[" * 100_000)


SAME = ["cafe\u0301", "caf\xe9"]
CASES: dict[str, tuple[Spoil, str]] = {
    "nothing there": (shutil.rmtree, "is no folder"),
    "no export": (lambda f: (f / "selftrain.json").unlink(), "is no exported model"),
    "a run": (lambda f: (f / "selftrain.json").rename(f / "manifest.json"), "is a run"),
    "a newer format": (written(format=2), "has format 2; this version reads format 1"),
    "no format": (written(format=...), "names no format"),
    "a format that is none": (written(format="1"), "names no format"),
    "not JSON": (replaced("selftrain.json", b"{"), "is not JSON"),
    "JSON without an end": (deep, "is not JSON"),
    "another layout": (written(layout="sentence-transformers"), "sentence-transformers folder"),
    "no files": (written(files=...), "has no 'files'"),
    "a file outside": (written(files={"../passwd": "0" * 64}), "it lists '../passwd'"),
    "an absolute file": (written(files={"/etc/passwd": "0" * 64}), "it lists '/etc/passwd'"),
    "no graph": (written(files={"tokenizer.json": "0" * 64}), "lists no onnx/model.onnx"),
    "another graph": (replaced("onnx/model.onnx", b"other"), "its sha256 differs"),
    "another tokenizer": (replaced("tokenizer.json", b"{}"), "its sha256 differs"),
    "a link": (linked("tokenizer.json"), "is not a plain file"),
    "a linked folder": (linked("onnx"), "is not a plain folder"),
    "linked facts": (linked("selftrain.json"), "is not a plain file"),
    "a missing file": (lambda f: (f / "tokenizer.json").unlink(), "cannot read"),
    "other inputs": (graph("ids", "mask", "types"), "has the inputs ids, mask, types"),
    "two inputs": (graph("input_ids", "attention_mask"), "inputs input_ids, attention_mask;"),
    "another output": (graph(output="scores"), "expected logits of 2 labels"),
    "a fixed batch": (graph(batch=1), "expected any two sizes"),
    "other classes": (graph(classes=3), "expected logits of 2 labels"),
    "an empty graph": (replaced_graph(b""), "is no graph that can be run"),
    "a graph cut off": (replaced_graph(lite_folder.graph()[:-9]), "is no graph that can be run"),
    "clashing labels": (written(labels=SAME), "are one when normalised"),
    "labels with a blank": (written(labels=["good", "good "]), "are one when normalised"),
    "one label": (written(labels=["good"]), "fewer than two labels"),
    "labels of numbers": (written(labels=[1, 2]), "stands where a name belongs"),
    "labels with half a character": (written(labels=["a", "\ud800"]), "is damaged"),
    "other weights": (written(weights="int4"), "`weights` is 'int4'"),
    "another reader": (written(reader="magic"), "`reader` is 'magic'"),
    "no pair": (written(pair=1), "neither true nor false"),
    "a batch of none": (written(max_batch=0), "a number from 1 to 1,024"),
    "room for nothing": (tokens(max_tokens=8, first=[2] * 9), "leave no room"),
    "ids that are none": (tokens(first=["a"]), "stands where a number"),
    "a template without a mask": (
        lambda f: (tokens(template="{text}")(f), written(reader="prompt")(f)), "other fields"
    ),
    "an estimate that is none": (written(expected={"accuracy": "high"}), "where a number belongs"),
    "codes for a terminal": (written(labels=["\x1b[2J", "\x1b[2J"]), "are one when normalised"),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "problem"), CASES.values(), ids=CASES.keys())
def test_a_bad_folder_is_one_line_and_a_hint(tmp_path: Path, spoil: Spoil, problem: str) -> None:
    folder = lite_folder.write(tmp_path / "model")
    spoil(folder)
    with pytest.raises(LiteError) as raised:
        load(folder)
    assert problem in raised.value.message
    assert raised.value.message.isprintable()
    assert raised.value.hint


def test_a_graph_that_is_none_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LiteError, match="is no graph that can be run"):
        load(lite_folder.write(tmp_path / "model", b"no graph"))


def test_a_pipe_or_a_huge_file_is_never_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lite_folder.write(tmp_path / "model")
    monkeypatch.setitem(folders.LARGEST, "tokenizer.json", 10)
    with pytest.raises(LiteError, match="expected at most 10"):
        load(folder)
    (folder / "tokenizer.json").unlink()
    os.mkfifo(folder / "tokenizer.json")
    with pytest.raises(LiteError, match="is not a plain file"):
        load(folder)


def test_labels_that_differ_in_case_are_two(tmp_path: Path) -> None:
    model = load(lite_folder.write(tmp_path / "model", labels=["Good", "good"]))
    assert model.predict(["good"]) == ["Good"]
