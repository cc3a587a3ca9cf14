"""`selftrain predict -o answers/` from the command line: parts, shards, and what is refused."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet
import pytest

import command
from command import selftrain, sentences, snapshot
from selftrain.cli.parts import is_folder
from selftrain.runs import answer_folder
from selftrain.training import annotate

PREDICT = "predict run test.csv -o answers/ --passes 2 --backbone"


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ten test rows in three parts."""
    monkeypatch.setattr(annotate, "CHUNK", 2)
    monkeypatch.setattr(answer_folder, "PART_ROWS", 4)


@pytest.mark.usefixtures("small_parts")
def test_shards_fill_a_folder_and_say_how_far_it_is(life: Path, bert: Path) -> None:
    first = selftrain(f"{PREDICT} {bert} --shard 0/2")
    assert (first.code, first.out) == (0, ""), first.err
    assert first.lines == ["answers has 1 of 3 parts, 4 rows"]
    second = selftrain(f"{PREDICT} {bert} --shard 1/2 --abstain 0.01")
    assert "options.abstain was 0.0, now 0.01" in second.err
    assert selftrain(f"{PREDICT} {bert} --shard 1/2").lines == [
        "written: answers, 10 rows in 3 parts"
    ]
    before = snapshot(life / "answers")
    again = selftrain(f"{PREDICT.replace('answers/', 'answers')} {bert}")  # a folder that is begun
    assert again.lines == ["written: answers, 10 rows in 3 parts"]
    assert snapshot(life / "answers") == before
    assert pyarrow.parquet.read_table(life / "answers")["row"].to_pylist() == [*range(1, 11)]


@pytest.mark.usefixtures("life")
@pytest.mark.parametrize("shard", ["2/2", "0/0", "-1/4", "1", "a/b", "1/4/2"])
def test_a_shard_out_of_range_is_an_error_that_says_the_range(shard: str) -> None:
    said = selftrain(f"predict run test.csv -o answers/ --shard={shard}")
    assert said.code == 1
    assert said.lines == [
        f"error: --shard is '{shard}'; expected I/N with I from 0 to N - 1",
        "hint: of eight processes the first is --shard 0/8 and the last --shard 7/8",
    ]
    assert not Path("answers").exists()


@pytest.mark.usefixtures("life")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("predict run test.csv -o a.csv --shard 0/2", "into a folder that all shards share"),
        ("predict run test.csv --shard 0/2", "into a folder that all shards share"),
        ("predict run - -o answers/", "can be read only once"),
        ("predict run test.csv -o run/", "writing it would destroy it"),
        ("predict run test.csv -o test.csv/", "test.csv is "),
        ("predict run nothing.csv -o answers/", "nothing.csv does not exist"),
        ("predict run test.csv -o s3://bucket/answers/", "is an address"),
        ("predict run . -o answers/", "answers lies in ., which this command reads"),
        ("predict run . -o answers.csv", "answers.csv lies in ., which"),
        ("predict run '*.csv' -o answers.csv", "answers.csv lies in *.csv, which"),
        ("predict run '**/*.csv' -o answers/", "answers lies in **/*.csv, which"),
    ],
)
def test_what_cannot_be_written_in_parts_is_refused(line: str, message: str) -> None:
    before = snapshot(Path())
    said = selftrain(line)
    assert (said.code, len(said.lines)) == (1, 2), said.err
    assert message in said.lines[0]
    assert said.lines[1].startswith("hint: ")
    assert snapshot(Path()) == before


def test_a_name_with_a_slash_is_a_folder_and_so_is_one_that_is_begun(tmp_path: Path) -> None:
    assert is_folder("answers/")
    assert not is_folder(None)
    assert not is_folder(str(tmp_path))
    (tmp_path / answer_folder.MANIFEST).write_text("{}")
    assert is_folder(str(tmp_path))


PROGRAM = """
import sys
from selftrain.cli import main
from selftrain.runs import answer_folder
answer_folder.PART_ROWS = 1024
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_command_killed_by_the_system_ends_with_the_same_files(life: Path, bert: Path) -> None:
    rows = [(text,) for text, _ in sentences(3_000)]
    (life / "many.csv").write_text(command.csv(rows, "text"))
    line = ["predict", "run", "many.csv", "--passes", "2", "--threads", "1"]
    line = [sys.executable, "-c", PROGRAM, *line, "--backbone", str(bert)]
    subprocess.run([*line, "-o", "whole/"], check=True)
    process = subprocess.Popen([*line, "-o", "answers/"])
    while not [*life.glob("answers/part-*")]:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len([*life.glob("answers/part-*")]) < 3
    subprocess.run([*line, "-o", "answers/"], check=True)
    assert snapshot(life / "answers") == snapshot(life / "whole")
