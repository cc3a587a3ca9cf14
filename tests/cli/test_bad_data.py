"""Files that cannot be learnt from: one line and a hint, exit code 1, nothing half-written."""

from __future__ import annotations

from pathlib import Path

import pytest

from bad_input import Case, check_refused, labelled, pairs
from command import FIT, csv, sentences

TWICE = [("one film", "good"), ("two films", "good"), ("a story", "bad"), ("no story", "bad")]
DATA = {
    "missing file": Case(FIT.replace("labelled.csv", "labeled.csv"), "labeled.csv does not exist"),
    "missing pool": Case(FIT.replace("pool.csv", "nowhere/pool.csv"), "does not exist"),
    "missing dev file": Case(FIT + " --dev deve.csv", "deve.csv", hint="did you mean dev.csv?"),
    "a folder of other files": Case(
        FIT.replace("labelled.csv", "."), "run lies in ., which this command reads"
    ),
    "an ending nobody reads": Case(
        FIT.replace("pool.csv", "pool.doc"), "ends in `.doc`", {"pool.doc": b"PK"}
    ),
    "missing text column": Case(FIT + " --text review", "no column `review`"),
    "misspelt label column": Case(FIT + " --label lable", "`lable`", hint="--label label"),
    "no label column": Case(FIT, "no label column", {"labelled.csv": csv([["a"]], "text")}),
    "two columns of one name": Case(FIT, "named `text`", {"pool.csv": "text,text\na,b\n"}),
    "unreadable encoding": Case(
        FIT, "is not UTF-8", {"pool.csv": "text\ncafé\n".encode("latin-1")}, hint="iconv"
    ),
    "ragged CSV": Case(FIT, "3 fields; the header has 2", labelled(("a, b", "good"))),
    "an open quote": Case(FIT, "not valid CSV", {"pool.csv": 'text\n"open\n'}),
    "no rows": Case(FIT, "has no rows", {"labelled.csv": "text,label\n"}),
    "an empty file": Case(FIT, "has no rows", {"pool.csv": ""}),
    "broken JSON": Case(
        FIT.replace("pool.csv", "pool.jsonl"),
        "line 2: not JSON",
        {"pool.jsonl": '{"text": "a"}\n{'},
    ),
    "half a gzip file": Case(
        FIT.replace("pool.csv", "pool.csv.gz"),
        "not a whole gzip file",
        {"pool.csv.gz": b"\x1f\x8b"},
    ),
    "no Parquet": Case(
        FIT.replace("pool.csv", "pool.parquet"), "cannot be read as Parquet", {"pool.parquet": "a"}
    ),
    "empty labelled text": Case(FIT, "the text is empty", labelled((" ", "good"))),
    "NaN label": Case(FIT, "the label is nan", labelled(("a film", "nan"))),
    "empty label": Case(FIT, "the label is empty", labelled(("a film", ""))),
    "one class": Case(
        FIT,
        "one class: `good`",
        {"labelled.csv": csv([("a", "good"), ("b", "good")], "text", "label")},
    ),
    "one example of a class": Case(
        FIT, "`odd` has 1 labelled example", labelled(("a film", "odd")), hint="`odd`"
    ),
    "one shot": Case(FIT + " --shots 1", "has 1 labelled example"),
    "no shots": Case(FIT + " --shots 0", "is 0; expected at least 1"),
    "one text, two labels": Case(
        FIT, "has two labels: `good` and `bad`", labelled(("a film", "good"), ("a film", "bad"))
    ),
    "one id, two rows": Case(
        FIT + " --id id",
        "the id `7` names two texts",
        {"labelled.csv": csv([("7", *row) for row in TWICE], "id", "text", "label")},
    ),
    "unseen dev label": Case(
        FIT + " --dev dev.csv",
        "label `god` in dev was never seen",
        {"dev.csv": csv([("a film", "god")], "text", "label")},
        hint="did you mean `good`?",
    ),
    "unseen test label": Case(
        FIT + " --test test.csv",
        "label `odd` in test was never seen",
        {"test.csv": csv([("a film", "odd")], "text", "label")},
    ),
    "dev rows all labelled": Case(FIT + " --dev labelled.csv", "every dev row is also"),
    "an empty pool": Case(
        FIT,
        "the pool is empty",
        {"pool.csv": csv([(text,) for text, _ in sentences(8)], "text")},
    ),
    "pairs to test single texts": Case(
        FIT + " --test test.csv", "some rows are pairs", {"test.csv": pairs(("a", "b", "good"))}
    ),
    "pairs beside single texts": Case(
        FIT,
        "some rows are pairs",
        {"labelled.csv": pairs(*((text, "b", label) for text, label in TWICE))},
    ),
}


@pytest.mark.parametrize("name", DATA)
def test_a_bad_file_is_one_line_and_a_hint_and_leaves_nothing_behind(
    name: str, folder: Path, bert: Path, done: Path
) -> None:
    check_refused(DATA[name], folder, bert, done)


def test_the_table_is_as_long_as_we_say() -> None:
    assert len(DATA) >= 30
