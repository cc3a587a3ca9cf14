"""Where commands read and write: odd names, pipes, several files, and ends from outside."""

from __future__ import annotations

import csv as csv_module
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import command
from command import FIT, selftrain, sentences
from selftrain.disk import check_local, check_target
from selftrain.errors import RunError
from selftrain.runs.read import belongs_to, read_manifest

PREDICT = "predict run test.csv --backbone"


@pytest.mark.parametrize("name", ["run:1", "a:b/c", "ru n", "rün", "file:x", "-run"])
def test_a_run_folder_may_have_an_odd_name(name: str, folder: Path, bert: Path) -> None:
    said = selftrain(FIT.format(bert=bert).replace("-o run", f"-o './{name}'") + " --rounds 0")
    assert said.code == 0, said.err
    lesson = folder / name / "rounds" / "0" / "lesson.parquet"
    assert lesson.is_file()
    assert selftrain(f"predict './{name}' test.csv --backbone {bert}").code == 0


@pytest.mark.parametrize("name", ["s3://bucket/run", "file:///tmp/run", "gs://b", "hdfs://h/p"])
def test_an_address_is_no_local_path(name: str) -> None:
    with pytest.raises(RunError, match="is an address"):
        check_local(Path(name), "a run folder")


@pytest.mark.parametrize("name", ["run:1", "C:/run", "./a:b", "é", "a b", "/tmp/x:/y"])
def test_a_path_with_a_colon_is_a_path(name: str) -> None:
    check_local(Path(name), "a run folder")


def test_a_name_that_is_not_utf_8_is_refused_before_training(folder: Path, bert: Path) -> None:
    before = command.snapshot(folder)
    name = os.fsdecode(b"r\xffn")
    said = selftrain(FIT.format(bert=bert).replace("-o run", f"-o '{name}'"))
    assert said.code == 1
    assert said.lines[0] == r"error: r\udcffn is not UTF-8; a folder to write needs a name that is"
    assert command.snapshot(folder) == before


def test_a_file_whose_name_is_not_utf_8_is_read(folder: Path, bert: Path) -> None:
    name = os.fsdecode(b"p\xffol.csv")
    (folder / "pool.csv").rename(folder / name)
    line = FIT.format(bert=bert).replace("pool.csv", f"'{name}'")
    assert selftrain(line + " --rounds 0").code == 0


def test_a_target_is_checked_before_the_work_is_done(tmp_path: Path) -> None:
    check_target(tmp_path / "new.csv")
    with pytest.raises(RunError, match="is a folder; expected a file"):
        check_target(tmp_path)
    with pytest.raises(RunError, match="there is no folder") as error:
        check_target(tmp_path / "no" / "new.csv")
    assert error.value.hint == f"make it first: mkdir -p {tmp_path / 'no'}"


def test_a_run_owns_its_own_files_and_no_others(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert belongs_to(run, run / "rounds" / "0" / "lesson.parquet")
    assert belongs_to(run, tmp_path / "other" / ".." / "run" / "manifest.json")
    assert not belongs_to(run, run / "answers.csv")
    assert not belongs_to(run, tmp_path / "rounds" / "a.csv")


def test_answers_go_beside_a_run_and_are_said(life: Path, bert: Path) -> None:
    for _ in range(2):  # the second time over the first
        said = selftrain(f"{PREDICT} {bert} -o run/answers.csv")
        assert (said.code, said.out) == (0, "")
        assert said.lines[-1] == "written: run/answers.csv, 10 rows"


def test_answers_with_signs_are_exact_and_can_be_guarded(life: Path, bert: Path) -> None:
    texts = ["+ve", "-abc", "@user hello", "=1+1", "fine"]
    (life / "signs.csv").write_text("text\n" + "\n".join(texts) + "\n")
    for flag, shown in (("", texts), (" --excel-safe", [f"'{text}" for text in texts[:4]])):
        said = selftrain(f"predict run signs.csv --with-text --backbone {bert}{flag}")
        rows = list(csv_module.DictReader(io.StringIO(said.out)))
        assert [row["text"] for row in rows][: len(shown)] == shown


def test_answers_with_texts_are_read_again_as_they_were(life: Path, bert: Path) -> None:
    """The loop of the README: predict, correct the labels, learn from them."""
    line = f"predict run test.csv --with-text -o more.tsv --backbone {bert}"
    assert selftrain(line).code == 0
    first = FIT.format(bert=bert).replace("labelled.csv", "more.tsv").replace("-o run", "-o two")
    assert selftrain(first + " --rounds 0").read[0].startswith("more.tsv: text from `text`")


def test_several_pools_are_one(folder: Path, bert: Path) -> None:
    lines = (folder / "pool.csv").read_text().splitlines(keepends=True)
    (folder / "a.csv").write_text("".join(lines[:16]))
    (folder / "b.csv").write_text(lines[0] + "".join(lines[16:]))
    whole = FIT.format(bert=bert) + " --rounds 0"
    assert selftrain(whole).code == 0
    parts = whole.replace("-u pool.csv", "-u a.csv -u b.csv").replace("-o run", "-o parts")
    assert selftrain(parts).code == 0
    assert read_manifest(folder / "run").data == read_manifest(folder / "parts").data


def test_a_dash_is_standard_input(life: Path, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = selftrain(f"{PREDICT} {bert}").out
    raw = (life / "test.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    said = selftrain(f"predict run - --backbone {bert}")
    assert (said.code, said.out) == (0, expected)


def test_a_config_may_have_a_byte_order_mark(folder: Path, bert: Path) -> None:
    path = folder / "quick.toml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert selftrain(FIT.format(bert=bert) + " --rounds 0").code == 0


def test_a_file_of_ones_own_among_the_rounds_stays(life: Path, bert: Path) -> None:
    rounds = life / "run" / "rounds"
    (rounds / "notes.tmp").write_text("mine")
    (rounds / "2.tmp").mkdir()  # as a killed writer leaves it
    assert selftrain(FIT.format(bert=bert) + " --dev dev.csv").code == 0
    assert (rounds / "notes.tmp").read_text() == "mine"
    assert not (rounds / "2.tmp").exists()


def test_an_answer_ended_by_the_system_leaves_no_hidden_file(life: Path, bert: Path) -> None:
    rows = sentences(20_000)
    (life / "many.csv").write_text(command.csv([(text,) for text, _ in rows], "text"))
    line = ["-m", "selftrain", "predict", "run", "many.csv", "-o", "out.csv", "--passes", "50"]
    before = set(life.iterdir())
    process = subprocess.Popen(
        [sys.executable, *line, "--backbone", str(bert)], stderr=subprocess.PIPE
    )
    while not any(path.name.startswith(".out.csv") for path in life.iterdir()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, set(life.iterdir())) == (143, before)
    assert b"Traceback" not in err
