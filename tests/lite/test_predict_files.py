"""``selftrain-lite predict``: a file in, a file out, by the names that selftrain knows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import lite_folder
from selftrain_lite.cli import main

Run = Callable[..., "Done"]


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.out)))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Gives a command in a folder with two models."""
    monkeypatch.chdir(tmp_path)
    lite_folder.write(tmp_path / "model")
    lite_folder.write(tmp_path / "pairs", pair=True)

    def give(*arguments: str) -> Done:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, out, err)

    return give


FILES = {
    "new.csv": 'text,other\n"good, film",1\nbad,2\n,3\n',
    "semicolons.csv": "other;text\n1;good, film\n2;bad\n3;\n",
    "stated.csv": "sep=|\nother|text\n1|good, film\n2|bad\n3|\n",
    "old.csv": "\ufefftext,other\r\n\"good, film\",1\r\nbad,2\r\n,3\r\n",
    "new.tsv": 'text\tother\ngood, film "\t1\nbad\t2\n\t3\n',
    "quoted.tsv": '"text"\t"other"\n"good,\tfilm"\t1\nbad\t2\n\t3\n',
    "new.jsonl": '{"text": "good, film"}\n\n{"text": "bad"}\n{"text": null}\n',
    "other-name.csv": 'Review,stars\n"good, film",1\nbad,2\n,3\n',
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_answers(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name].encode())
    done = run("predict", "model", name)
    assert done.code == 0, done.err
    assert [row["label"] for row in done.rows] == ["good", "bad", "good"]
    assert [row["row"] for row in done.rows] == ["1", "2", "3"]
    assert float(done.rows[0]["p_good"]) == pytest.approx(0.817574, abs=1e-6)


def test_answers_keep_the_ids_of_their_rows(run: Run, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("uid,text\nx-1,good\nx-2,bad\n")
    assert [row["uid"] for row in run("predict", "model", "new.csv").rows] == ["x-1", "x-2"]


def test_a_text_below_the_threshold_gets_no_label(run: Run, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("text\ngood\nfilm\n")
    done = run("predict", "model", "new.csv", "--abstain", "0.8")
    assert [row["label"] for row in done.rows] == ["good", ""]


def test_pairs_are_found_by_their_usual_names(run: Run, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("premise,hypothesis\ngood,film\nbad,film\n")
    assert [r["label"] for r in run("predict", "pairs", "new.csv").rows] == ["good", "bad"]


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.jsonl"])
def test_a_file_appears_whole(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "new.csv").write_text("text\n" + "good\nbad\n" * 300)
    done = run("predict", "model", "new.csv", "-o", name)
    assert done.code == 0
    assert done.out == ""
    assert done.err == f"written: {name}, 600 rows\n"
    lines = (tmp_path / name).read_text().splitlines()
    if name == "out.jsonl":
        assert [json.loads(line)["label"] for line in lines[:2]] == ["good", "bad"]
    else:
        separator = "\t" if name == "out.tsv" else ","
        assert [row["label"] for row in csv.DictReader(lines[:3], delimiter=separator)] == [
            "good",
            "bad",
        ]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_an_error_in_the_last_row_leaves_no_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "new.jsonl").write_text('{"text": "good"}\n' * 300 + '{"text": 3}\n')
    before = sorted(tmp_path.iterdir())
    done = run("predict", "model", "new.jsonl", "-o", "out.csv")
    assert done.code == 1
    assert "line 301: 3 is no text" in done.err
    assert sorted(tmp_path.iterdir()) == before


def test_half_a_character_in_an_id_is_one_line_and_leaves_no_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "new.jsonl").write_text('{"id": "\\ud800", "text": "good"}\n')
    before = sorted(tmp_path.iterdir())
    done = run("predict", "model", "new.jsonl", "-o", "out.jsonl")
    assert done.code == 1
    assert "line 1: `id` holds half a character: '\\ud800'" in done.err
    assert sorted(tmp_path.iterdir()) == before


def test_ids_that_repeat_are_no_ids_and_rows_are_counted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,text\n7,good\n7,bad\n")
    assert [row["row"] for row in run("predict", "model", "new.csv").rows] == ["1", "2"]
    done = run("predict", "model", "new.csv", "--id", "id")
    assert (done.code, done.out) == (1, "")
    assert "the id `7` names two texts" in done.err


def test_info_is_json(run: Run) -> None:
    assert json.loads(run("info", "model").out)["labels"] == ["good", "bad"]


BAD = {
    "no file": ("predict model none.csv", "", "cannot read none.csv"),
    "no model": ("predict nowhere new.csv", "text\n", "nowhere is no folder"),
    "another ending": ("predict model new.xlsx", "", "ends in `.xlsx`"),
    "another ending to write": ("predict model new.csv -o out.parquet", "", "out.parquet ends in"),
    "its own input": ("predict model new.csv -o new.csv", "text\na\n", "is read by this command"),
    "into the model": ("predict model new.csv -o model/a.csv", "text\n", "is read by this command"),
    "no place": ("predict model new.csv -o no/a.csv", "text\n", "there is no folder no"),
    "no rows": ("predict model new.csv", "text\n", "has no rows"),
    "no text column": ("predict model new.csv", "body,b\na,b\n", "has no text column"),
    "a wrong name": (
        "predict model new.csv --text txt",
        "text,b\na,b\n",
        "did you mean --text text",
    ),
    "a pair for single texts": ("predict model new.csv --pair b", "text,b\na,b\n", "single texts"),
    "no pair": ("predict pairs new.csv", "text,b\na,b\n", "has no pair of texts"),
    "a ragged row": ("predict model new.csv", "text,b\na,b\nc\n", "line 3: 1 fields"),
    "an open quote": ("predict model new.csv", 'text,b\n"a,b\n', "not valid CSV"),
    "two columns of a name": ("predict model new.csv", "text,text\na,b\n", "two columns"),
    "not UTF-8": ("predict model new.csv", "text\n\udcff\n", "is not UTF-8"),
    "a share that is none": ("predict model new.csv --abstain 2", "text\na\n", "--abstain is 2.0"),
    "no threads": ("predict model new.csv --threads 0", "text\na\n", "threads is 0"),
}


@pytest.mark.parametrize(("command", "content", "problem"), BAD.values(), ids=BAD.keys())
def test_a_bad_input_is_one_line_and_a_hint(
    run: Run, tmp_path: Path, command: str, content: str, problem: str
) -> None:
    (tmp_path / "new.csv").write_bytes(content.encode(errors="surrogateescape"))
    done = run(*command.split())
    assert done.code == 1
    assert problem in done.err
    assert done.err.count("error: ") == done.err.count("hint: ") == 1
    assert "Traceback" not in done.err


def test_a_command_that_cannot_be_read_exits_with_2(run: Run) -> None:
    done = run("predict", "model")
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert run().code == 0
