"""Inputs that go wrong in many ways: one line, a hint, no trace, and nothing is written."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bad_input import Case, check_refused
from command import FIT, csv, sentences

Content = str | bytes
ROWS = sentences(8)
GOOD = csv(ROWS, "text", "label")
POOL = csv([(text,) for text, _ in sentences(30, first=100)], "text")


class Bad(NamedTuple):
    """A file, what it holds, and what must be said."""

    name: str
    content: Content
    message: str
    hint: str = ""


def parquet(**columns: list[object]) -> bytes:
    return parquet_of(pa.table(columns))


def parquet_of(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def archive(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name in names:
            file.writestr(name, "<a/>")
    return out.getvalue()


def with_label(label: str) -> str:
    return GOOD + f"one more film,{label}\n"


TWO_OF_A_NAME = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
OLD_EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64)

ANY_FILE = (
    # wrong as the labelled file, as the pool, as dev rows and as new texts
    Bad("a.csv", "", "has no rows"),
    Bad("a.csv", "\n\n", "has no rows"),
    Bad("a.csv", "text,label\n", "has no rows"),
    Bad("a.csv", b"\xef\xbb\xbf", "has no rows"),
    Bad("a.csv", b"text,label\ncaf\xe9,good\n", "is not UTF-8", "WINDOWS-1252"),
    Bad("a.csv", GOOD.encode("utf-16"), "is not UTF-8", "UTF-16"),
    Bad("a.csv", GOOD.encode("utf-16-le"), "a NUL byte", "UTF-16"),
    Bad("a.csv", GOOD.encode() + b"one\0film,good\n", "line 10: a NUL byte", "tr -d"),
    Bad("a.csv", archive("xl/workbook.xml"), "is an Excel workbook", "CSV UTF-8"),
    Bad("a.csv", OLD_EXCEL, "an old Excel", "CSV UTF-8"),
    Bad("a.csv", b"PAR1....PAR1", "is a Parquet file", "a.parquet"),
    Bad("a.csv", gzip.compress(GOOD.encode()), "is gzipped", "a.csv.gz"),
    Bad("a.csv", b"BZh91AY", "is packed by bzip2", "bunzip2"),
    Bad("a.csv", b"\xfd7zXZ\0", "is packed by xz", "unxz"),
    Bad("a.csv", b"%PDF-1.7", "is a PDF", "CSV"),
    Bad("a.csv", b"SQLite format 3\0", "is an SQLite database", "sqlite3"),
    Bad("a.csv", "<html><body>404</body></html>", "is a web page", "download"),
    Bad("a.csv", '{"text": "a", "label": "good"}\n', "holds JSON", "a.jsonl"),
    Bad("a.csv", '[{"text": "a", "label": "good"}]\n', "holds JSON", ".jsonl"),
    Bad("a.csv", "text,label\na,b,c\n", "3 fields; the header has 2", "in quotes"),
    Bad("a.csv", "text\none, two\n", "2 fields; the header has 1", "sep=;"),
    Bad("a.csv", "text;label\na;b;c\n", "3 fields; the header has 2", "in quotes"),
    Bad("a.csv", 'text,label\n"open,good\n', "line 2: not valid CSV", "close every quote"),
    Bad("a.csv", 'text,label\n"a" b,good\n', "line 2: not valid CSV", "close every quote"),
    Bad("a.csv", "text,text,label\na,b,good\n", "named `text`", "rename"),
    Bad("a.csv", "text,text ,label\na,b,good\n", "named `text`", "rename"),
    Bad("a.csv", "words,mark\na,good\n", "no text column", "text COLUMN"),
    Bad("a.csv", "I like films\nso do I\n", "no text column", "text COLUMN"),
    Bad("a.tsv", "text\tlabel\na\tb\tc\n", "3 fields; the header has 2", "in quotes"),
    Bad("a.tsv", '"text"\t"label"\n"open\tgood\n', "not valid CSV", "close every quote"),
    Bad("a.tsv", "text\ttext\na\tb\n", "named `text`", "rename"),
    Bad("a.jsonl", '{"text": "a"', "line 1: not JSON", "one object"),
    Bad("a.jsonl", '{\n"text": "a"\n}\n', "line 1: not JSON", "jq -c"),
    Bad("a.jsonl", '[{"text": "a"}]\n', "an array; expected an object", ".json"),
    Bad("a.jsonl", '"a film"\n', "expected an object", "one object"),
    Bad("a.jsonl", '{"text": "a", "text": "b"}\n', "named `text`", "one object"),
    Bad("a.jsonl", '{"text": 7, "label": "good"}\n', "holds 7 (int)", "--text"),
    Bad("a.jsonl", '{"text": ["a"], "label": "good"}\n', "expected text", "--text"),
    Bad("a.jsonl", '{"text": "\\ud800", "label": "good"}\n', "half a character"),
    Bad("a.jsonl", "[" * 50_000, "not JSON"),
    Bad("a.jsonl", "9" * 5_000, "not JSON"),
    Bad("a.jsonl", "{}\n", "no text column"),
    Bad("a.json", "[]", "has no rows"),
    Bad("a.json", "", "has no rows"),
    Bad("a.json", "[1, 2]", "row 1: '1, 2]'; expected `{`"),
    Bad("a.json", '[{"text": "a", "label": "good"}', "the array is cut"),
    Bad("a.json", '[{"text": "a", "label": "good"} {"text"', "expected `,`"),
    Bad("a.json", '[{"text": "a", "label": "good"}, {"text":', "row 2: not JSON"),
    Bad("a.json", '[{"text": "a", "text": "b"}]', "named `text`"),
    Bad("a.json", '{"rows": [{"text": "a"}]}', "no text column"),
    Bad("a.json", b'[{"text": "caf\xe9"}]', "is not UTF-8", "WINDOWS-1252"),
    Bad("a.parquet", "text,label\n", "cannot be read as Parquet", ".csv"),
    Bad("a.parquet", b"", "cannot be read as Parquet"),
    Bad("a.parquet", parquet_of(TWO_OF_A_NAME), "named `text`", "rename"),
    Bad("a.parquet", parquet(text=[1, 2], label=["a", "b"]), "holds 1 (int)"),
    Bad("a.parquet", parquet(words=["a"]), "no text column"),
    Bad("a.parquet", parquet(text=[]), "has no rows"),
    Bad("a.csv.gz", GOOD, "not a whole gzip file"),
    Bad("a.csv.gz", gzip.compress(GOOD.encode())[:-20], "not a whole gzip file"),
    Bad("a.xlsx", "text,label\n", "cannot be read as an Excel workbook", "CSV UTF-8"),
    Bad("a.xlsx", archive("word/document.xml"), "cannot be read as an Excel", "CSV UTF-8"),
    Bad("a.xls", OLD_EXCEL, "ends in `.xls`", "CSV UTF-8"),
    Bad("a.ods", archive("content.xml"), "ends in `.ods`", "CSV UTF-8"),
    Bad("a.txt", GOOD, "ends in `.txt`", "--format csv"),
    Bad("a", GOOD, "ends in ``", "--format csv"),
)
LABELLED = (
    # wrong as rows with labels alone
    Bad("a.csv", with_label(""), "the label is empty", "delete the row"),
    Bad("a.csv", with_label("\u200b"), "the label is empty", "delete the row"),
    Bad("a.csv", with_label("NA"), "the label is NA", "--keep-na"),
    Bad("a.csv", with_label("NULL"), "the label is NULL", "--keep-na"),
    Bad("a.csv", with_label("None"), "the label is None", "--keep-na"),
    Bad("a.csv", with_label("nan"), "the label is nan", "--keep-na"),
    Bad("a.csv", with_label("#N/A"), "the label is #N/A", "--keep-na"),
    Bad("a.csv", with_label("Good"), "`good` and `Good` differ only in case", "--exact-labels"),
    Bad("a.csv", with_label("ｇood"), "differ only in how they are written", "--exact-labels"),
    Bad("a.csv", with_label("go\u200dod"), "differ only in how", "--exact-labels"),
    Bad("a.csv", with_label("1") + "and so on,1.0\n", "`1` and `1.0` differ", "--exact-labels"),
    Bad("a.csv", with_label("01") + "and so on,1\n", "`01` and `1` differ", "--exact-labels"),
    Bad("a.csv", with_label("x" * 1001), "the label has 1,001 characters", "--label COLUMN"),
    Bad("a.csv", with_label("good") + " ,good\n", "the text is empty", "delete the row"),
    Bad("a.csv", POOL, "no label column", "--label COLUMN"),
    Bad("a.jsonl", '{"text": "a", "label": null}\n', "the label is empty"),
    Bad("a.jsonl", '{"text": "a", "label": {"a": 1}}\n', "expected one name", "--label"),
    Bad("a.jsonl", '{"text": "a", "label": "x"}\n{"text": "b"}\n', "no `label`"),
    Bad("a.parquet", parquet(text=["a"], label=[None]), "the label is empty"),
)
SPLITS = (
    Bad("a.csv", csv([("a", "good"), ("b", "good")], "text", "label"), "one class: `good`"),
    Bad("a.csv", with_label("odd"), "`odd` has 1 labelled example"),
    Bad("a.csv", GOOD + f"{ROWS[0][0]},bad\n", "has two labels"),
)


def cases() -> dict[str, Case]:
    ways = {
        "labelled": (FIT.replace("labelled.csv", "{{}}"), (*ANY_FILE, *LABELLED, *SPLITS)),
        "pool": (FIT.replace("pool.csv", "{{}}"), ANY_FILE),
        "new texts": ("predict done {{}} -o out.csv --backbone {bert}", ANY_FILE[::4]),
        "test rows": ("evaluate done {{}} --backbone {bert}", (*ANY_FILE[1::6], *LABELLED)),
        "gold rows": ("audit done {{}}", (*ANY_FILE[2::6], *LABELLED[::3])),
        "dev rows": (FIT + " --dev {{}}", (*ANY_FILE[3::6], *LABELLED[1::3])),
    }
    return {
        f"{way} {number}: {bad.message}": Case(
            command.replace("{{}}", bad.name), bad.message, {bad.name: bad.content}, hint=bad.hint
        )
        for way, (command, files) in ways.items()
        for number, bad in enumerate(files)
    }


CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_a_bad_file_is_one_line_and_a_hint(name: str, folder: Path, bert: Path, done: Path) -> None:
    check_refused(CASES[name], folder, bert, done)


# ── places and flags ──


def link(name: str, target: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).symlink_to(target)


def saved_model(folder: Path) -> None:
    (folder / "saved").mkdir()
    (folder / "saved" / "model.json").write_text(json.dumps({"format": 2}))


PREDICT = "predict done test.csv --backbone {bert}"
PLACES = {
    "an address for a run": Case(FIT.replace("-o run", "-o s3://bucket/run"), "is an address"),
    "a file address for a run": Case(FIT.replace("-o run", "-o file:///x/run"), "is an address"),
    "an address of a demo": Case("demo -o s3://b/r --data labelled.csv", "is an address"),
    "an address of a bench": Case("bench . -o gs://b/r", "is an address"),
    "an address of a sweep": Case("sweep . -o hdfs://b/r", "is an address"),
    "a store nobody reads": Case(FIT.replace("pool.csv", "ftp://b/p.csv"), "is in a store that"),
    "a web address to read": Case(FIT.replace("pool.csv", "https://x.org/a.csv"), "not read"),
    "a file for a run": Case(FIT.replace("-o run", "-o test.csv"), "is a file"),
    "a folder of others for a run": Case(FIT.replace("-o run", "-o ."), "neither empty nor"),
    "answers in no folder": Case(PREDICT + " -o no/where.csv", "there is no folder", hint="mkdir"),
    "answers for a folder": Case(PREDICT + " -o done", "is a folder", hint="name a file in it"),
    "answers of no format": Case(PREDICT + " -o answers.txt", "ends in `.txt`", hint="table.csv"),
    "answers to a dash": Case(PREDICT + " -o -", "expected .csv", hint="leave out -o"),
    "answers to an address": Case(PREDICT + " -o s3://b/a.csv", "is an address"),
    "answers over their texts": Case(PREDICT + " -o test.csv", "is read by this command"),
    "answers over a dotted path": Case(PREDICT + " -o ./done/../test.csv", "is read by"),
    "answers over a link": Case(
        PREDICT + " -o link.csv", "is read by this command", spoil=link("link.csv", "test.csv")
    ),
    "answers over a hard link": Case(
        PREDICT + " -o twin.csv",
        "is read by this command",
        spoil=lambda folder: os.link(folder / "test.csv", folder / "twin.csv"),
    ),
    "answers over a lesson": Case(PREDICT + " -o done/rounds/0/lesson.parquet", "is read by"),
    "answers inside of a round": Case(PREDICT + " -o done/rounds/mine.csv", "is read by"),
    "a table over its cells": Case("table main test.csv -o test.csv", "is read by"),
    "a table over a sweep": Case(
        "table grid --sweep test.csv --format csv -o test.csv", "is read by this command"
    ),
    "a figure's numbers over cells": Case("figure rounds test.csv --csv test.csv", "is read by"),
    "numbers over test rows": Case("figure tsne done --test test.csv --csv test.csv", "is read by"),
    "numbers over a run": Case(
        "figure tsne done --test test.csv --csv done/manifest.json", "is read by this command"
    ),
    "a table in no folder": Case("table main cells.jsonl -o no/t.csv", "there is no folder"),
    "a figure in no folder": Case("figure rounds cells.jsonl -o no/f.png", "there is no folder"),
    "safe JSON": Case(PREDICT + " -o a.jsonl --excel-safe", "guards CSV and TSV"),
    "safe printed JSON": Case(PREDICT + " --json --excel-safe", "--json prints JSON lines"),
    "a safe table of Markdown": Case("table main c.jsonl -o t.md --excel-safe", "guards CSV"),
    "a safe figure": Case("figure rounds c.jsonl --json --excel-safe", "guards CSV"),
    "a saved model to predict": Case(
        "predict saved test.csv --backbone {bert} -o done.csv",
        "saved is a saved model",
        spoil=saved_model,
        hint="SelfTrainingClassifier.load('saved')",
    ),
    "no run to predict": Case(
        "predict . test.csv", "is not a run folder", hint="selftrain fit labelled.csv"
    ),
    "no run to audit": Case("audit . test.csv", "is not a run folder", hint="selftrain fit"),
    "no run to evaluate": Case("evaluate nowhere test.csv", "is not a run folder"),
    "a file for a run to read": Case("evaluate test.csv test.csv", "is not a run folder"),
    "a dangling link": Case(
        FIT.replace("pool.csv", "link.csv").replace("-o run", "-o done-run"),
        "is a link to gone.csv, which does not exist",
        spoil=link("link.csv", "gone.csv"),
        hint="ls -l link.csv",
    ),
    "a link to itself": Case(
        FIT.replace("pool.csv", "link.csv").replace("-o run", "-o done-run"),
        "link.csv",
        spoil=link("link.csv", "link.csv"),
    ),
    "a device": Case(FIT.replace("pool.csv", "/dev/zero"), "is a device", hint="standard input"),
    "two names of standard input": Case(
        FIT.replace("pool.csv", "-").replace("labelled.csv", "-"), "given for two files"
    ),
    "a format nobody knows": Case(
        FIT.replace("pool.csv", "pool") + " --format cvs",
        "--format is `cvs`",
        {"pool": POOL},
        hint="--format csv",
    ),
    "a format nobody needs": Case(FIT + " --format tsv", "the name of every file says its format"),
    "no format of new texts": Case(PREDICT + " --format tsv", "the name of every file says"),
    "no format of test rows": Case("evaluate done test.csv --format tsv", "the name of every file"),
    "no format of gold rows": Case("audit done test.csv --format tsv", "the name of every file"),
    "answers to a link to itself": Case(
        PREDICT + " -o link.csv", "a link that leads to itself", spoil=link("link.csv", "link.csv")
    ),
    "answers to a pipe": Case(
        PREDICT + " -o pipe.csv",
        "neither a file nor a folder",
        spoil=lambda folder: os.mkfifo(folder / "pipe.csv"),
    ),
    "a pool column that is not there": Case(
        FIT + " --pool-text body", "no column `body`", hint="--pool-text"
    ),
    "two dev files": Case(FIT + " --dev dev.csv --dev dev.csv", "--dev is given 2 times"),
    "two seeds": Case(FIT + " --seed 1 --seed 2", "--seed is given 2 times; it takes one value"),
    "two places": Case(FIT + " --out elsewhere", "--out is given 2 times", hint="leave out"),
    "two rounds of a run": Case(PREDICT + " --round 0 --round 1", "--round is given 2 times"),
    "two files of numbers": Case("figure rounds c --csv a --csv b", "--csv is given 2 times"),
    "a second pool that is not there": Case(FIT + " -u gone.csv", "gone.csv does not exist"),
    "a second pool of pairs": Case(
        FIT + " -u pairs.csv", "hold pairs of texts", {"pairs.csv": "text_a,text_b\na,b\n"}
    ),
    "ids that repeat": Case(
        FIT + " --id key",
        "the id `1` names two texts",
        {"labelled.csv": csv([("1", *row) for row in ROWS], "key", "text", "label")},
        hint="leave out --id",
    ),
    "a setting that is no switch": Case(
        FIT, "`keep_na` is 'yes'; expected true or false", config='keep_na = "yes"'
    ),
    "a setting that is no format": Case(
        FIT.replace("pool.csv", "pool"), "--format is `xml`", {"pool": POOL}, 'format = "xml"'
    ),
    "an unknown column setting": Case(FIT, "unknown entry `pool`", config='columns.pool = "a"'),
    "a config that is UTF-16": Case(
        FIT.replace("quick.toml", "a.toml"), "is not TOML", {"a.toml": "seed = 1".encode("utf-16")}
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_place_or_a_flag_that_cannot_be_meant_is_one_line_and_a_hint(
    name: str, folder: Path, bert: Path, done: Path
) -> None:
    check_refused(PLACES[name], folder, bert, done)


def test_the_tables_are_as_long_as_we_say() -> None:
    assert len(CASES) + len(PLACES) >= 250
