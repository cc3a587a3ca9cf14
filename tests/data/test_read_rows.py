"""Reading labelled rows, pools and new texts, from files and from memory."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from formats import FORMATS, as_csv, message_and_hint, texts_of
from selftrain.data.columns import clean_label
from selftrain.data.read import Columns, Reading, read_labelled, read_texts, read_unlabelled
from selftrain.data.rows import Example, Labelled, Notes, examples, uid_of
from selftrain.errors import DataError

ROWS = [("a fine film", "positive"), ("dull, very dull", "negative"), ("naïve – ½", "Sci/Tech")]
# NUL is not text to us, and half a character is not text to anyone.
unicode_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
readable = unicode_text.filter(str.strip)
labels = readable.map(clean_label).filter(bool)
AS_WRITTEN = Reading(keep_na=True, exact_labels=True)


@pytest.mark.parametrize("name", FORMATS)
@given(rows=st.lists(st.tuples(readable, labels), min_size=1, max_size=5))
@example(
    rows=[
        ('"', ","),
        ("x\ry", "x\ny"),
        ("a\r\nb\u2028c\x85d", "x\u2028y"),
        ("''", '""'),
        ("é", "½"),
    ]
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_format_gives_back_the_rows_written(name, rows, tmp_path):
    path = tmp_path / name
    path.write_bytes(FORMATS[name]([{"text": text, "label": label} for text, label in rows]))
    assume("tsv" not in name or not reads_well_line_by_line(rows))
    assert texts_of(read_labelled(path, how=AS_WRITTEN, notes=Notes())) == rows


def reads_well_line_by_line(rows: list[tuple[str, str]]) -> bool:
    """Whether a quoted text with tabs and line breaks looks like lines of their own in TSV."""
    lines = as_csv([{"text": text, "label": label} for text, label in rows], "\t").decode()
    broken = any(len(side.splitlines()) > 1 or side[-1:] in "\r\n" for row in rows for side in row)
    return broken and all(line.count("\t") == 1 for line in lines.splitlines() if line.strip())


@given(rows=st.lists(st.tuples(unicode_text, unicode_text), min_size=1, max_size=5))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_predict_keeps_every_row_in_order(rows, tmp_path):
    path = tmp_path / "new.csv"
    path.write_bytes(as_csv([{"text_a": a, "text_b": b} for a, b in rows]))
    table = read_texts(path, notes=Notes())
    assert [(row.text, row.pair) for row in table.examples] == rows


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    for name in ("rows.csv", "rows.jsonl"):
        path = tmp_path / name
        path.write_bytes(b"\xef\xbb\xbf" + FORMATS[name]([{"text": "x", "label": "y"}]))
        assert texts_of(read_labelled(path, notes=Notes())) == [("x", "y")]


@pytest.mark.parametrize(
    "source",
    [
        ROWS,
        [list(row) for row in ROWS],
        [{"label": label, "text": text} for text, label in ROWS],
        (row for row in ROWS),
        pd.DataFrame(ROWS, columns=["Sentence", "Class"]),
        pd.DataFrame(ROWS, columns=["text", "label"]).astype({"label": "category"}),
    ],
    ids=["tuples", "lists", "dicts", "generator", "frame", "categories"],
)
def test_memory_gives_the_same_rows_as_files(source):
    assert texts_of(read_labelled(source, notes=Notes())) == ROWS


@pytest.mark.parametrize(
    "source",
    [["a", "b"], np.array(["a", "b"]), pd.Series(["a", "b"]), pd.DataFrame({"review": ["a", "b"]})],
    ids=["list", "array", "series", "frame"],
)
def test_a_pool_is_made_of_plain_strings(source):
    pool = list(read_unlabelled(source, notes=Notes()))
    assert pool == examples(["a", "b"])
    assert all(type(row.text) is str for row in pool)


def test_pairs_come_from_tuples_and_from_usual_names():
    expected = examples(["a"], ["b"])
    for source in (
        [("a", "b")],
        [{"text_a": "a", "text_b": "b"}],
        [{"premise": "a", "hypothesis": "b", "id": ""}],
    ):
        assert list(read_unlabelled(source, notes=Notes())) == expected
    assert read_labelled([("a", "b", "yes")], notes=Notes())[0].example == expected[0]


def test_named_columns_win_over_usual_names():
    rows = [{"text": "no", "body": "yes", "more": "too", "label": "0", "mood": "good", "key": 7.0}]
    columns = Columns(text="body", pair="more", label="mood", id="key")
    assert read_labelled(rows, columns, notes=Notes()) == [
        Labelled(Example("7", "yes", "too"), "good")
    ]


def test_uid_is_the_id_or_else_a_hash_of_text_and_pair():
    rows = [{"id": "r1", "text": "a"}, {"id": None, "text": "a"}, {"id": "r3", "text": ""}]
    table = read_texts(rows, notes=Notes())
    assert [row.uid for row in table.examples] == ["r1", uid_of("a"), "r3"]
    assert table.id_column == "id"
    assert uid_of("a") != uid_of("a", "") != uid_of("", "a")


def test_labels_of_any_type_become_strings():
    labels = [
        read_labelled([("a", value)], notes=Notes())[0].label
        for value in (1, 1.0, True, " Sci/Tech ", np.int64(3), 0.5)
    ]
    assert labels == ["1", "1", "True", "Sci/Tech", "3", "0.5"]


def test_trimmed_labels_are_noted():
    notes = Notes()
    read_labelled([("a", " x"), ("b", "x")], notes=notes)
    assert dict(notes) == {"labels with blanks around them trimmed": 1}


def test_a_text_longer_than_the_csv_module_allows_by_itself_is_read(tmp_path):
    path = tmp_path / "long.csv"
    long = "word " * 60_000
    path.write_bytes(as_csv([{"text": long, "label": "x"}]))
    assert texts_of(read_labelled(path, notes=Notes())) == [(long, "x")]


def test_reading_needs_neither_torch_nor_pandas():
    heavy = "{'torch', 'transformers', 'pandas', 'pyarrow'}"
    rooms = "selftrain.data.read, selftrain.data.write, selftrain.experiments.demo"
    program = f"import sys, {rooms}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"set()"


def test_a_label_column_named_by_hand_is_ignored_in_the_pool_too():
    notes = Notes()
    read_unlabelled([{"text": "a", "mood": "x"}], Columns(label="mood"), notes=notes)
    assert dict(notes) == {"label column `mood` in the pool ignored": 1}
    read_unlabelled([{"text": "a"}], Columns(label="mood"), notes=notes)


@pytest.mark.parametrize(
    ("columns", "message", "hint"),
    [
        (Columns(text="txt"), "no column `txt`; it has `text`, `label`, `id`", "--text text?"),
        (Columns(label="Lable"), "no column `Lable`", "--label label?"),
        (Columns(pair="second"), "no column `second`", "--pair COLUMN"),
        (Columns(id="ID"), "no column `ID`", "--id id?"),
    ],
)
def test_a_column_that_is_not_there_is_an_error_that_names_the_nearest(columns, message, hint):
    with pytest.raises(DataError) as error:
        read_labelled([{"text": "a", "label": "x", "id": "1"}], columns, notes=Notes())
    shown_message, shown_hint = message_and_hint(error)
    assert message in shown_message
    assert hint in shown_hint


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (7, "a source is a int"),
        ([], "the list has no rows"),
        (["a", 5], "the list, row 2: int '5'"),
        ([("a", "b", "c", "d")], "expected strings or (text, pair) or dicts"),
        (pd.DataFrame({"text": []}), "the data frame has no rows"),
        (pd.DataFrame([["a", "b"]], columns=["text", "text"]), "two columns of one name"),
        (pd.DataFrame({"text": [3]}), "row 1: `text` holds 3 (int)"),
    ],
)
def test_a_bad_row_in_memory_is_an_error_with_its_number(source, message):
    with pytest.raises(DataError) as error:
        list(read_unlabelled(source, notes=Notes()))
    shown_message, shown_hint = message_and_hint(error)
    assert message in shown_message
    assert shown_hint
