"""Answers for new texts: whole files, every row, in order, safe to open."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import torch

import small_run
from selftrain.data.files import records
from selftrain.data.read import Table, read_texts
from selftrain.data.rows import Example, Notes, examples
from selftrain.data.task import Task
from selftrain.errors import DataError, RunError
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.build import build
from selftrain.model.classifier import Classifier
from selftrain.model.pel import Adapter
from selftrain.runs.predict import AnswerOptions, Count, predict

TEXTS = ["a great film", "", "a terrible film", "the story was good", "a great film"]


@pytest.fixture(scope="module")
def backbone(tiny_backbone: Callable[[str], Backbone]) -> Backbone:
    return tiny_backbone("bert")


@pytest.fixture(scope="module")
def model(backbone: Backbone) -> Classifier:
    task = Task("three", ("good", "bad", "Sci/Tech"))
    return build(task, backbone, Architecture(Adapter(width=4)), seed=3)


def answered(model: Classifier, table: Table, out: Path | None = None, **options: Any) -> None:
    predict(model, table, out, AnswerOptions(passes=3, **options), machine=small_run.MACHINE)


def table(texts: list[str] = TEXTS) -> Table:
    return Table(tuple(examples(texts)), None)


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_row_is_answered_in_order_with_label_probabilities_and_certainty(
    model: Classifier, tmp_path: Path
) -> None:
    answered(model, table(), tmp_path / "out.csv")
    rows = read_csv(tmp_path / "out.csv")
    p = model.probabilities(table().examples)  # [N, C]
    assert list(rows[0]) == ["row", "label", "p_good", "p_bad", "p_Sci/Tech", "certainty"]
    assert [row["row"] for row in rows] == ["1", "2", "3", "4", "5"]
    for row, answer in zip(rows, p, strict=True):
        assert row["label"] == model.labels[int(answer.argmax())]
        told = [float(row[f"p_{label}"]) for label in model.labels]
        assert told == pytest.approx(answer.tolist(), abs=1e-5)
        assert 0 <= float(row["certainty"]) <= 1


def test_the_same_rows_are_answered_the_same_again(model: Classifier, tmp_path: Path) -> None:
    for name in ("one.csv", "two.csv"):
        torch.rand(1)  # whatever else draws random numbers
        answered(model, table(), tmp_path / name)
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_csv_tsv_json_lines_parquet_and_stdout_say_the_same(
    model: Classifier, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for suffix in ("csv", "tsv", "jsonl", "parquet"):
        answered(model, table(), tmp_path / f"out.{suffix}")
    answered(model, table())
    assert capsys.readouterr().out == (tmp_path / "out.csv").read_text()
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist() == lines
    plain = [{name: str(value) for name, value in line.items()} for line in lines]
    assert read_csv(tmp_path / "out.csv") == plain
    tabs = csv.DictReader(io.StringIO((tmp_path / "out.tsv").read_text()), delimiter="\t")
    assert list(tabs) == plain


def test_rows_with_an_id_keep_it_under_its_own_name(model: Classifier, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("guid,text\nx7,a great film\nx3,a terrible film\n")
    answered(model, read_texts(new, notes=Notes()), tmp_path / "out.csv")
    assert [row["guid"] for row in read_csv(tmp_path / "out.csv")] == ["x7", "x3"]


def test_an_id_column_named_like_an_answer_gives_way(model: Classifier, tmp_path: Path) -> None:
    answered(model, Table((Example("7", "a great film"),), "label"), tmp_path / "out.csv")
    [row] = read_csv(tmp_path / "out.csv")
    assert row["id"] == "7"
    assert row["label"] in model.labels


def test_a_text_below_the_limit_gets_no_label_and_the_rest_is_counted(
    model: Classifier, tmp_path: Path
) -> None:
    p = model.probabilities(table().examples).max(1).values
    limit = float(p.median())
    wanted = AnswerOptions(passes=3, abstain=limit)
    count = predict(model, table(), tmp_path / "out.csv", wanted, machine=small_run.MACHINE)
    rows = read_csv(tmp_path / "out.csv")
    above = (p >= limit).tolist()
    assert [bool(row["label"]) for row in rows] == above
    assert 0 < sum(above) < len(rows)
    assert (count.texts, count.labelled) == (len(rows), sum(above))
    assert count.confidence == pytest.approx(float(p[p >= limit].sum()), abs=1e-4)


def test_what_was_labelled_is_said_in_one_sentence() -> None:
    assert str(Count(200, 122, 109.8)) == (
        "122 of 200 texts have a label (61%); about 90% of these should be right"
    )
    assert str(Count(3)) == "none of 3 texts has a label"


def test_texts_are_repeated_only_when_asked_for(model: Classifier, tmp_path: Path) -> None:
    answered(model, table(), tmp_path / "bare.csv")
    assert "film" not in (tmp_path / "bare.csv").read_text()
    answered(model, table(), tmp_path / "full.csv", texts=True)
    assert [row["text"] for row in read_csv(tmp_path / "full.csv")] == TEXTS


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_a_text_is_written_exactly_unless_it_is_guarded_for_spreadsheets(
    text: str, model: Classifier, tmp_path: Path
) -> None:
    for name in ("out.csv", "out.tsv", "out.jsonl"):
        answered(model, table([text]), tmp_path / name, texts=True)
        assert [row["text"] for _, row in records(tmp_path / name)] == [text]
    answered(model, table([text]), tmp_path / "safe.csv", texts=True, excel_safe=True)
    [safe] = read_csv(tmp_path / "safe.csv")
    assert safe["text"].startswith("'")
    assert safe["text"].replace("'", "") == text


def test_a_label_that_is_a_negative_number_stays_a_number(
    backbone: Backbone, tmp_path: Path
) -> None:
    task = Task("signs", ("-1", "1"))
    model = build(task, backbone, Architecture(Adapter(width=4)), seed=3)
    answered(model, table(), tmp_path / "out.csv")
    assert {row["label"] for row in read_csv(tmp_path / "out.csv")} <= {"-1", "1"}


def test_pairs_are_answered_by_a_model_for_pairs_only(
    model: Classifier, backbone: Backbone, tmp_path: Path
) -> None:
    pairs = Table(tuple(examples(["is it good ?"], ["yes , it is ."])), None)
    task = Task("pairs", ("good", "bad"), pair=True)
    of_pairs = build(task, backbone, Architecture(Adapter(width=4)), seed=3)
    answered(of_pairs, pairs, tmp_path / "out.csv", texts=True)
    [row] = read_csv(tmp_path / "out.csv")
    assert (row["text"], row["pair"]) == ("is it good ?", "yes , it is .")
    with pytest.raises(DataError, match="trained on single texts, these rows are pairs of texts"):
        answered(model, pairs)
    with pytest.raises(DataError, match="trained on pairs of texts, these rows are single texts"):
        answered(of_pairs, table())


@pytest.mark.parametrize("name", ["out.xlsx", "out", "out.json"])
def test_an_unknown_kind_of_file_is_an_error(name: str, model: Classifier, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected .csv, .tsv, .jsonl or .parquet") as caught:
        answered(model, table(), tmp_path / name)
    assert caught.value.hint


def test_a_missing_folder_is_an_error_and_is_not_made(model: Classifier, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="No such file or directory"):
        answered(model, table(), tmp_path / "missing" / "out.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet"])
def test_an_error_half_way_leaves_the_old_file_and_nothing_else(
    name: str, model: Classifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text("what was there before")

    def half(*_: object, **__: object) -> object:
        yield (1, "good", 0.5, 0.3, 0.2, 1.0)
        raise KeyboardInterrupt

    monkeypatch.setattr("selftrain.runs.predict.answers", half)
    with pytest.raises(KeyboardInterrupt):
        answered(model, table(), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "what was there before"


def test_a_neighbour_named_like_something_temporary_is_left_alone(
    model: Classifier, tmp_path: Path
) -> None:
    (tmp_path / "out.csv.tmp").write_text("mine")
    answered(model, table(), tmp_path / "out.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.csv.tmp"]
    assert (tmp_path / "out.csv.tmp").read_text() == "mine"


def test_through_a_link_the_file_it_leads_to_is_replaced(model: Classifier, tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    answered(model, table(), tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert len(read_csv(tmp_path / "real.csv")) == len(TEXTS)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_who_may_read_a_file_stays_the_same(mode: int, model: Classifier, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("old")
    (tmp_path / "out.csv").chmod(mode)
    answered(model, table(), tmp_path / "out.csv")
    assert stat.S_IMODE((tmp_path / "out.csv").stat().st_mode) == mode
    assert len(read_csv(tmp_path / "out.csv")) == len(TEXTS)


def test_what_is_neither_file_nor_folder_is_not_replaced(model: Classifier, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "out.csv")
    (tmp_path / "link.csv").symlink_to("out.csv")
    for name in ("out.csv", "link.csv"):
        with pytest.raises(RunError, match="is neither a file nor a folder") as caught:
            answered(model, table(), tmp_path / name)
        assert caught.value.hint
    assert (tmp_path / "out.csv").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.csv", "out.csv"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_texts_send_no_codes_to_a_terminal_and_are_exact_in_a_pipe(
    model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "caf\u00e9 \x1b[2J \x9b \u202e \x7f"
    for stdout, shown in (
        (io.StringIO(), text),
        (Terminal(), "caf\u00e9 \\x1b[2J \\x9b \\u202e \\x7f"),
    ):
        monkeypatch.setattr(sys, "stdout", stdout)
        answered(model, table([text]), texts=True)
        [row] = csv.DictReader(io.StringIO(stdout.getvalue()))
        assert row["text"] == shown
        assert row["row"] == "1"


def test_what_is_below_the_last_layer_is_computed_once(backbone: Backbone, tmp_path: Path) -> None:
    task = Task("films", ("bad", "good"))
    model = build(task, backbone, Architecture(Adapter()), seed=1)
    calls: Counter[int] = Counter()
    layers = list(model.encoder.get_submodule(backbone.family.layers).children())
    for number, layer in enumerate(layers):
        layer.register_forward_hook(lambda *_, number=number: calls.update([number]))
    answered(model, table(["a great film"]), tmp_path / "out.csv")
    assert calls == {**dict.fromkeys(range(len(layers)), 1), len(layers) - 1: 3 + 1}
    [row] = read_csv(tmp_path / "out.csv")
    [told] = model.probabilities(examples(["a great film"])).tolist()
    assert [float(row["p_bad"]), float(row["p_good"])] == pytest.approx(told, abs=1e-6)
    assert float(row["certainty"]) < 1


def test_a_model_without_dropout_answers_and_is_certain(
    tiny_backbone: Callable[[str], Backbone], tmp_path: Path
) -> None:
    task = Task("films", ("bad", "good"))
    steady = build(task, tiny_backbone("bert"), Architecture(Adapter(), dropout=0.0), seed=1)
    table = read_texts(["a great film", "a dull film"], notes=Notes())
    predict(steady, table, tmp_path / "out.csv", AnswerOptions(passes=4), machine=small_run.MACHINE)
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["certainty"] for row in csv.DictReader(file)] == ["1.0", "1.0"]
