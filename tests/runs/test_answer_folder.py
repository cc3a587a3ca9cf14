"""Answers in parts: the same files whoever writes them, whatever was killed in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import small_run
from command import snapshot
from selftrain.data.read import Columns, Reading, open_texts, read_texts
from selftrain.data.rows import Notes
from selftrain.data.task import Task
from selftrain.errors import ConfigError, DataError, RunError
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.build import build
from selftrain.model.classifier import Classifier
from selftrain.model.pel import Adapter
from selftrain.runs import answer_folder, predict
from selftrain.runs.answer_folder import Order, Shard, counted, finished, write_parts
from selftrain.runs.predict import AnswerOptions
from selftrain.runs.text_files import TextFiles
from selftrain.training import annotate
from selftrain.training.annotate import CHUNK

ROWS, PART = 50, 8  # rows of a part, in two chunks
PARTS = 7
WANTED = AnswerOptions(passes=3)


@pytest.fixture(scope="module")
def model(tiny_backbone: Callable[[str], Backbone]) -> Classifier:
    task = Task("films", ("good", "bad"))
    return build(task, tiny_backbone("bert"), Architecture(Adapter(width=4)), seed=3)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotate, "CHUNK", PART // 2)
    monkeypatch.setattr(answer_folder, "PART_ROWS", PART)


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """Texts to answer, with ids."""
    path = tmp_path / "new.parquet"
    write_texts(path)
    return path


def write_texts(path: Path, rows: int = ROWS, more: str = "") -> None:
    words = ["great", "terrible", "film", "acting", "story", "good", "bad"]
    texts = [f"{words[n % 7]} {words[n // 7 % 7]} film{more}" for n in range(rows)]
    table = pyarrow.table({"guid": [f"x{n}" for n in range(rows)], "text": texts})
    pyarrow.parquet.write_table(table, path)


def answer(
    model: Classifier, new: Path, folder: Path, shard: Shard = Shard(), **options: Any
) -> None:
    order = Order(folder, TextFiles.of(new), options, shard)
    texts = order.open(Columns(), Reading(), Notes())
    assert write_parts(model, texts, order, WANTED, machine=small_run.MACHINE) == PARTS


def whole(model: Classifier, new: Path, folder: Path) -> dict[str, bytes | None]:
    """The files of an undisturbed command."""
    answer(model, new, folder)
    return snapshot(folder)


def interrupted(
    monkeypatch: pytest.MonkeyPatch, model: Classifier, new: Path, folder: Path, after: int
) -> None:
    """Begin, and stop in the middle of writing after some answers."""
    real = predict.answers

    def some(*given: Any, **more: Any) -> Iterator[Any]:
        nonlocal after
        for row in real(*given, **more):
            if not after:
                raise KeyboardInterrupt
            after -= 1
            yield row

    with monkeypatch.context() as patched:
        patched.setattr(answer_folder, "answers", some)
        with pytest.raises(KeyboardInterrupt):
            answer(model, new, folder)


def test_a_part_is_a_whole_number_of_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert answer_folder.PART_ROWS % CHUNK == 0


@pytest.mark.parametrize("id_column", ["guid", None])
def test_parts_together_have_the_bits_of_one_file(
    id_column: str | None, model: Classifier, new: Path, tmp_path: Path
) -> None:
    if id_column is None:  # rows are then numbered through all parts
        pyarrow.parquet.write_table(pyarrow.parquet.read_table(new).drop(["guid"]), new)
    table = read_texts(new, notes=Notes())
    assert table.id_column == id_column
    predict.predict(model, table, tmp_path / "one.parquet", WANTED, machine=small_run.MACHINE)
    answer(model, new, tmp_path / "answers")
    together = pyarrow.parquet.read_table(tmp_path / "answers")
    assert together.equals(pyarrow.parquet.read_table(tmp_path / "one.parquet"))
    assert together.num_rows == ROWS


@pytest.mark.parametrize("after", [0, PART + 3, 3 * PART])
def test_a_stopped_command_goes_on_after_the_finished_parts_and_ends_with_the_same_files(
    after: int, model: Classifier, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = whole(model, new, tmp_path / "whole")
    folder = tmp_path / "answers"
    interrupted(monkeypatch, model, new, folder, after)
    (folder / ".part-00003.parquet.0123abcd").write_bytes(b"half")  # as SIGKILL leaves it
    parts = {path: path.stat().st_mtime_ns for path in folder.glob("part-*")}
    assert len(parts) == after // PART
    answer(model, new, folder)
    assert snapshot(folder) == expected
    assert {path: path.stat().st_mtime_ns for path in parts} == parts


def test_a_part_without_its_record_is_written_again(
    model: Classifier, new: Path, tmp_path: Path
) -> None:
    expected = whole(model, new, tmp_path / "answers")
    (tmp_path / "answers" / "_finished" / "00002.json").unlink()
    answer(model, new, tmp_path / "answers")
    assert snapshot(tmp_path / "answers") == expected


@pytest.mark.parametrize("shards", [2, 3, 10])
def test_shards_together_write_the_folder_of_one_process(
    shards: int, model: Classifier, new: Path, tmp_path: Path
) -> None:
    expected = whole(model, new, tmp_path / "whole")
    folder = tmp_path / "answers"
    for number in reversed(range(shards)):
        before = set(folder.glob("part-*"))
        answer(model, new, folder, Shard(number, shards))
        own = {folder / f"part-{part:05}.parquet" for part in Shard(number, shards).parts(PARTS)}
        assert set(folder.glob("part-*")) - before == own
    assert snapshot(folder) == expected


@pytest.mark.parametrize("shards", [1, 2, 5, 7, 40])
def test_every_part_belongs_to_one_shard(shards: int) -> None:
    parts = [part for n in range(shards) for part in Shard(n, shards).parts(PARTS)]
    assert parts == list(range(PARTS))


def test_of_processes_that_begin_at_once_one_writes_the_manifest(
    model: Classifier, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes it between our look and our writing."""
    expected = whole(model, new, tmp_path / "whole")
    real = answer_folder._write_new

    def second(path: Path, text: str) -> None:
        real(path, text)
        real(path, "{}")

    monkeypatch.setattr(answer_folder, "_write_new", second)
    answer(model, new, tmp_path / "answers")
    assert snapshot(tmp_path / "answers") == expected


def test_another_command_is_refused_by_name_and_finished_parts_stay(
    model: Classifier, new: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "answers"
    before = whole(model, new, folder)
    with pytest.raises(
        RunError, match=r"with other options: options\.passes was None, now 7"
    ) as one:
        answer(model, new, folder, passes=7)
    other = build(model.task, model.backbone, Architecture(Adapter(width=4)), seed=4)
    with pytest.raises(RunError, match=r"of another model: model\.sha256 was"):
        answer(other, new, folder)
    write_texts(new, more=" again")
    with pytest.raises(RunError, match=r"has answers of other texts: texts\.files\.0\.bytes was"):
        answer(model, new, folder)
    assert one.value.hint == "give the command that began it, or choose another folder: -o NEW/"
    assert snapshot(folder) == before


def test_texts_that_change_meanwhile_end_the_command_and_finished_parts_stay(
    model: Classifier, new: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "answers"
    order = Order(folder, TextFiles.of(new), {})
    texts = order.open(Columns(), Reading(), Notes())
    late = replace(order, shard=Shard(1, 2))
    write_parts(model, texts, replace(order, shard=Shard(0, 2)), WANTED, machine=small_run.MACHINE)
    before = snapshot(folder)
    write_texts(new, ROWS + 5)
    with pytest.raises(DataError, match="changed while it was") as error:
        write_parts(model, texts, late, WANTED, machine=small_run.MACHINE)
    assert "give the same command again" in error.value.hint
    assert snapshot(folder) == before


@pytest.mark.parametrize("damage", ["half", "gone"])
def test_a_damaged_part_is_one_line_and_a_hint_that_helps(
    damage: str, model: Classifier, new: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "answers"
    expected = whole(model, new, folder)
    part = folder / "part-00004.parquet"
    if damage == "half":
        part.write_bytes(part.read_bytes()[:300])
    else:
        part.unlink()
    with pytest.raises(RunError, match=r"part-00004\.parquet is not") as error:
        answer(model, new, folder)
    record = error.value.hint.removeprefix("remove its record and give the same command again: rm ")
    Path(record).unlink()
    answer(model, new, folder)
    assert snapshot(folder) == expected


def test_half_a_parquet_file_of_texts_is_an_error(
    model: Classifier, new: Path, tmp_path: Path
) -> None:
    new.write_bytes(new.read_bytes()[:-200])
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        answer(model, new, tmp_path / "answers")
    assert not (tmp_path / "answers").exists()


def test_what_can_be_read_only_once_and_a_folder_of_something_else_are_refused(
    model: Classifier, new: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="can be read only once"):
        TextFiles.of(Path("-"))
    with pytest.raises(RunError, match="neither empty nor a folder of answers: it holds"):
        answer(model, new, tmp_path)


def test_the_counts_of_all_parts_add_up(model: Classifier, new: Path, tmp_path: Path) -> None:
    answer(model, new, tmp_path / "answers")
    records = finished(tmp_path / "answers")
    count = counted(records.values())
    assert sorted(records) == list(range(PARTS))
    assert (count.texts, count.labelled) == (ROWS, ROWS)
    assert 0.5 * ROWS < count.confidence < ROWS


def test_rows_before_a_part_are_passed_by_unread(tmp_path: Path) -> None:
    path = tmp_path / "new.jsonl"
    path.write_text('{"text": "a"}\n{"text": 5}\n{"text": "c"}\n{"text": "d"}\n')
    with pytest.raises(DataError, match="holds 5"):
        open_texts(path, notes=Notes())
    known = answer_folder.Counted(4, None)
    texts = open_texts(path, notes=Notes(), counted=known)
    first, second = (
        [example.text for example in part.examples] for part in texts.parts([range(1), range(2, 4)])
    )
    assert (first, second) == (["a"], ["c", "d"])
