"""Reading rows, the pool, and the checks on a split."""

import csv
import gzip
import io
import json
import pickle
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from selftrain.data import files
from selftrain.data import pool as pool_room
from selftrain.data.pool import Marks, mark_of, remove_overlap
from selftrain.data.read import Columns, read_labelled, read_texts, read_unlabelled
from selftrain.data.rows import Example, Labelled, Notes, examples, uid_of
from selftrain.data.split import check_labels, make_split
from selftrain.errors import DataError
from selftrain.escape import harmless

ROWS = [("a fine film", "positive"), ("dull, very dull", "negative"), ("naïve – ½", "Sci/Tech")]


def gold(*rows: tuple[str, str]) -> list[Labelled]:
    return [Labelled(Example(uid_of(text), text), label) for text, label in rows]


def texts_of(rows: list[Labelled]) -> list[tuple[str, str]]:
    return [(row.example.text, row.label) for row in rows]


# ── every format, written as its own tools write it ──


def as_csv(rows: list[dict[str, str]], delimiter: str = ",") -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_jsonl(rows: list[dict[str, str]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_parquet(rows: list[dict[str, str]]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


FORMATS: dict[str, Callable[[list[dict[str, str]]], bytes]] = {
    "rows.csv": as_csv,
    "rows.CSV": as_csv,
    "rows.tsv": lambda rows: as_csv(rows, "\t"),
    "rows.jsonl": as_jsonl,
    "rows.ndjson": as_jsonl,
    "rows.parquet": as_parquet,
    "rows.csv.gz": lambda rows: gzip.compress(as_csv(rows)),
    "rows.tsv.gz": lambda rows: gzip.compress(as_csv(rows, "\t")),
    "rows.jsonl.gz": lambda rows: gzip.compress(as_jsonl(rows)),
}
# NUL is not text to us, and half a character is not text to anyone.
unicode_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
readable = unicode_text.filter(str.strip)
labels = readable.map(str.strip).filter(lambda label: label not in ("nan", "NaN"))


@pytest.mark.parametrize("name", FORMATS)
@given(rows=st.lists(st.tuples(readable, labels), min_size=1, max_size=5))
@example(
    rows=[('"', ","), ("x\ry", "x\ny"), ("a\r\nb\u2028c\x85d", "\ufeff"), ("''", '""'), ("é", "½")]
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_format_gives_back_the_rows_written(name, rows, tmp_path):
    path = tmp_path / name
    path.write_bytes(FORMATS[name]([{"text": text, "label": label} for text, label in rows]))
    assert texts_of(read_labelled(path, notes=Notes())) == rows


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


def test_labels_become_strings_whatever_held_them():
    found = [
        read_labelled([("a", value)], notes=Notes())[0].label
        for value in (1, 1.0, True, " Sci/Tech ", np.int64(3), 0.5)
    ]
    assert found == ["1", "1", "True", "Sci/Tech", "3", "0.5"]


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
    rooms = "selftrain.data.rows, selftrain.experiments.demo"
    program = f"import sys, {rooms}; print({heavy} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert said.stdout.strip() == b"set()"


# ── bad input: what is said, and what to type ──

LABELLED = (
    # file name, bytes, part of the message, part of the hint
    ("empty.csv", b"", "has no rows", "text,label"),
    ("header.csv", b"text,label\n", "has no rows", "text,label"),
    ("empty.jsonl", b"\n\n", "has no rows", "text,label"),
    ("ragged.csv", b"text,label\na,x\nb, c,x\n", "line 3: 3 fields; the header has 2", '"like, th'),
    ("short.tsv", b"text\tlabel\na\n", "line 2: 1 fields; the header has 2", "in quotes"),
    ("quote.csv", b'text,label\na,x\n"b,x\n', "line 3: not valid CSV: unexpected end", '""no""'),
    ("stray.tsv", b'text\tlabel\n"a" b\tx\n', "line 2: not valid CSV", "double those inside"),
    ("mac.csv", b"text,label\ra,x\r", "line 1: not valid CSV: new-line", "close every quote"),
    ("twice.csv", b"text,label,text\n", "two columns are named `text`", "rename"),
    ("latin.csv", b"text,label\ncaf\xe9,x\n", "line 2: byte 0xe9 at 4 is not", "-f WINDOWS-1252"),
    ("utf16.csv", "text,label\n".encode("utf-16"), "line 1: byte 0xff at 1", "-f UTF-16 -t UTF-8"),
    ("wide.csv", "text,label\n".encode("utf-16-le"), "line 1: a NUL byte", "-f UTF-16"),
    ("nul.jsonl", b'{"text": "a\0", "label": "x"}\n', "line 1: a NUL byte", "iconv"),
    ("zipped.csv", gzip.compress(b"text,label\n"), "byte 0x8b at 2", "zipped.csv.gz"),
    ("plain.csv.gz", b"text,label\na,x\n", "not a whole gzip file", "file "),
    ("cut.csv.gz", gzip.compress(b"text,label\na,x\n")[:-9], "not a whole gzip file", "file "),
    ("bad.parquet", b"text,label\na,x\n", "cannot be read as Parquet", "ending in .csv"),
    ("none.parquet", b"", "cannot be read as Parquet", "ending in .csv"),
    ("book.xlsx", b"PK", "ends in `.xlsx`; expected .csv", "save it as CSV"),
    ("rows.json", b"[]", "ends in `.json`", "jq -c '.[]'"),
    ("array.jsonl", b'[{"text": "a"}]\n', "line 1: an array; expected an object", "jq -c"),
    ("number.jsonl", b"3\n", "line 1: 3; expected an object", '{"text"'),
    ("comma.jsonl", b'{"text": "a",}\n', "line 1: not JSON", "one object on each line"),
    ("deep.jsonl", b"[" * 100_000 + b"\n", "line 1: not JSON", "one object on each line"),
    ("hollow.jsonl", b"{}\n", "no text column", "--text COLUMN"),
    ("gap.jsonl", b'{"text": "a", "label": "x"}\n{"text": "b"}\n', "line 2: no `label`", "label"),
    ("half.jsonl", b'{"text": "\\ud800", "label": "x"}\n', "line 1: `text` holds half", "delete"),
    (
        "half an id.jsonl",
        b'{"id": "\\ud800", "text": "a", "label": "x"}\n',
        "line 1: `id` holds half",
        "delete",
    ),
    ("figure.jsonl", b'{"text": 5, "label": "x"}\n', "`text` holds 5 (int)", "--text COLUMN"),
    ("many.jsonl", b'{"text": "a", "label": ["x"]}\n', "the label is ['x']", "--label COLUMN"),
    ("null.jsonl", b'{"text": "a", "label": null}\n', "line 1: the label is empty", "delete"),
    ("nan.jsonl", b'{"text": "a", "label": NaN}\n', "line 1: the label is empty", "unlabelled"),
    ("nan.csv", b"text,label\na,nan\n", "line 2: the label is NaN", "move it to the unlabelled"),
    ("nolabel.csv", b"text,label\na,\n", "line 2: the label is empty", "delete the row"),
    ("notext.csv", b"text,label\na,x\n  ,x\n", "line 3: the text is empty", "delete the row"),
    ("nopair.csv", b"text_a,text_b,label\na,,x\n", "line 2: the text is empty", "fill it in"),
    ("strange.csv", b"utterance,label\na,x\n", "no text column", "--text COLUMN"),
    ("unlabelled.csv", b"text,note\na,x\n", "no label column (one of label", "--label COLUMN"),
    ("semicolon.csv", b"text;label\na;x\n", "no text column", "separated by `;`"),
    ("tabs.csv", b"text\tlabel\na\tx\n", "no text column", ".tsv"),
    ("ids.csv", b"id,text,label\n1,a,x\n2,b,x\n1,c,x\n", "id `1` stands 2 times", "unique"),
)


def told(error: pytest.ExceptionInfo[DataError]) -> tuple[str, str]:
    assert "\n" not in error.value.message, "an error is one line"
    return error.value.message, error.value.hint or ""


@pytest.mark.parametrize(
    ("name", "content", "message", "hint"), LABELLED, ids=lambda v: str(v)[:14]
)
def test_a_bad_file_is_named_with_its_line_and_a_hint(name, content, message, hint, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as error:
        read_labelled(tmp_path / name, notes=Notes())
    said, hinted = told(error)
    assert name in said
    assert message in said
    assert hint in hinted


def test_a_missing_file_is_told_with_its_nearest_neighbour(tmp_path):
    (tmp_path / "labelled.csv").touch()
    with pytest.raises(DataError, match=r"labeled\.csv does not exist") as error:
        read_labelled(tmp_path / "labeled.csv", notes=Notes())
    assert told(error)[1] == f"did you mean {tmp_path / 'labelled.csv'}?"
    with pytest.raises(DataError, match="does not exist") as error:
        read_labelled(str(tmp_path / "nowhere" / "x.csv"), notes=Notes())
    assert "ls " in told(error)[1]


def test_a_folder_is_told_with_a_file_in_it(tmp_path):
    (tmp_path / "my train.jsonl").touch()
    with pytest.raises(DataError, match="is a folder; expected a file") as error:
        read_unlabelled(tmp_path, notes=Notes())
    assert told(error)[1] == f"try '{tmp_path / 'my train.jsonl'}'"


def test_a_text_given_for_a_path_is_told_so():
    with pytest.raises(DataError, match="cannot be opened") as error:
        read_unlabelled("so long a text is no path " * 50, notes=Notes())
    assert "texts come as a list" in told(error)[1]


@pytest.mark.parametrize(
    ("columns", "message", "hint"),
    [
        (Columns(text="txt"), "no column `txt`; it has `text`, `label`, `id`", "--text text?"),
        (Columns(label="Lable"), "no column `Lable`", "--label label?"),
        (Columns(pair="second"), "no column `second`", "--pair COLUMN"),
        (Columns(id="ID"), "no column `ID`", "--id id?"),
    ],
)
def test_a_column_that_is_not_there_is_told_with_the_nearest(columns, message, hint):
    with pytest.raises(DataError) as error:
        read_labelled([{"text": "a", "label": "x", "id": "1"}], columns, notes=Notes())
    said, hinted = told(error)
    assert message in said
    assert hint in hinted


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
def test_bad_memory_is_told_by_its_row(source, message):
    with pytest.raises(DataError) as error:
        list(read_unlabelled(source, notes=Notes()))
    said, hinted = told(error)
    assert message in said
    assert hinted


def test_a_field_without_end_is_a_quote_left_open(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FIELD_LIMIT", 1000)
    path = tmp_path / "open.csv"
    for open_end in (b"b\n", b'b\n","'):  # one field without end, or one after the other
        path.write_bytes(b'text,label\n"a' + open_end * 2000)
        with pytest.raises(DataError, match="line 2: not valid CSV: a record of more") as error:
            read_labelled(path, notes=Notes())
        assert "close every quote" in told(error)[1]
    path.write_bytes(b"text,label\n" + b"a,x\n" * 2000)
    assert len(read_labelled(path, notes=Notes())) == 2000, "short records, however many"


# ── a small file that is large inside ──


def test_the_names_of_a_wide_file_are_compared_at_once(tmp_path):
    """Each with each would take minutes."""
    path = tmp_path / "wide.csv"
    path.write_bytes(as_csv([{"text": "a"} | dict.fromkeys(map(str, range(200_000)), "")]))
    assert list(read_unlabelled(path, notes=Notes())) == examples(["a"])


@pytest.mark.parametrize("name", FORMATS)
def test_a_line_or_cell_without_end_is_refused_by_its_number(name, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FIELD_LIMIT", 1000)
    rows = [{"text": "b" * 900, "label": "x"}, {"text": "a" * 1001, "label": "x"}]
    (tmp_path / name).write_bytes(FORMATS[name](rows))
    with pytest.raises(DataError, match=r"(line|row) [23]: .*more than 1,000 bytes") as error:
        read_labelled(tmp_path / name, notes=Notes())
    assert "cut the text" in told(error)[1]
    (tmp_path / name).write_bytes(FORMATS[name](rows[:1]))
    assert len(read_labelled(tmp_path / name, notes=Notes())) == 1


def test_of_a_line_without_end_only_its_start_is_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FIELD_LIMIT", 2**20)
    path = tmp_path / "long.jsonl.gz"
    path.write_bytes(gzip.compress(b"a" * 2**25))
    tracemalloc.start()
    with pytest.raises(DataError, match="line 1: more than"):
        read_unlabelled(path, notes=Notes())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**23


def test_a_text_repeated_in_parquet_takes_its_room_once(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": ["a" * 2**16] * 1000, "more": [["b" * 2**16]] * 1000}), path)
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in files.records(path)]
    assert len(held) == 1000
    assert max(held) < 2**21, "repeated, they have 32 MB in each batch"


def test_a_column_that_is_not_used_may_hold_anything(tmp_path):
    path = tmp_path / "rows.parquet"
    far = pa.array([2**62], pa.timestamp("us"))
    pq.write_table(pa.table({"text": ["a"], "when": far}), path)
    assert list(read_unlabelled(path, notes=Notes())) == examples(["a"])
    with pytest.raises(DataError, match="row 1: `when` cannot be read: ") as error:
        read_unlabelled(path, Columns(id="when"), notes=Notes())
    assert told(error)[1]


def test_a_parquet_text_that_is_none_is_one_line_and_a_hint(tmp_path):
    path = tmp_path / "rows.parquet"
    path.write_bytes(as_parquet([{"text": "half a \u00e9"}]).replace(b"a \xc3\xa9", b"a \xc3\x28"))
    with pytest.raises(DataError, match="row 1: `text` cannot be read: 'utf-8' codec") as error:
        read_unlabelled(path, notes=Notes())
    assert told(error)[1]


def test_no_kind_of_parquet_column_is_lost(tmp_path):
    path = tmp_path / "rows.parquet"
    texts = pa.array(["a", None, "c"])
    kinds = {
        "text": texts,
        "large": texts.cast(pa.large_string()),
        "category": texts.dictionary_encode(),
        "number": pa.array([1, None, 3]),
        "list": pa.array([["x", "y"], None, []]),
        "struct": pa.array([{"x": "y"}, None, {"x": None}]),
    }
    pq.write_table(pa.table(kinds), path, row_group_size=2)
    found = [(number, dict(row)) for number, row in files.records(path)]
    assert found == list(enumerate(pa.table(kinds).to_pylist(), 1))


# ── the pool ──


@pytest.fixture(params=["held", "streamed"])
def either_way(request, monkeypatch):
    """A pool held in memory and one read from its source each time behave alike."""
    monkeypatch.setattr(pool_room, "HELD", 10**6 if request.param == "held" else 0)


def test_long_texts_are_not_held_however_few_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(pool_room, "HELD_CHARACTERS", 100)
    for length, held in ((10, True), (40, False)):
        path = tmp_path / "pool.csv"
        path.write_bytes(
            as_csv([{"id": n, "text": letter * length} for n, letter in enumerate("abc")])
        )
        pool = read_unlabelled(path, notes=Notes())
        assert pool.in_memory == held
        assert [row.text for row in pool] == [letter * length for letter in "abc"]
        assert len(pool) == 3


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("name", FORMATS)
def test_a_pool_is_read_again_and_again(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(FORMATS[name]([{"text": text} for text in "abcab"]))
    pool = read_unlabelled(path, notes=Notes())
    assert [row.text for row in pool] == [row.text for row in pool] == ["a", "b", "c"]
    assert len(pool) == 3


@pytest.mark.usefixtures("either_way")
def test_what_a_pool_drops_is_counted_once():
    notes = Notes()
    rows = [{"text": text, "label": "x"} for text in ("a", "", "b", " ", "a", "Known", "c")]
    pool = remove_overlap(read_unlabelled(rows, notes=notes), gold(("known", "x")), notes)
    pool = remove_overlap(pool, examples([" C "]), notes, "test")
    assert [row.text for row in pool] == ["a", "b"]
    assert dict(notes) == {
        "label column `label` in the pool ignored": 1,
        "empty pool rows dropped": 2,
        "duplicate pool rows dropped": 1,
        "labelled texts inside the pool removed": 1,
        "test texts inside the pool removed": 1,
    }


def test_a_label_column_named_by_hand_is_ignored_in_the_pool_too():
    notes = Notes()
    read_unlabelled([{"text": "a", "mood": "x"}], Columns(label="mood"), notes=notes)
    assert dict(notes) == {"label column `mood` in the pool ignored": 1}
    read_unlabelled([{"text": "a"}], Columns(label="mood"), notes=notes)


@pytest.mark.usefixtures("either_way")
def test_a_row_is_a_duplicate_by_its_id_or_by_its_text():
    rows = [("1", "a"), ("1", "b"), ("2", "a"), ("3", "c")]
    pool = read_unlabelled([{"id": id, "text": text} for id, text in rows], notes=Notes())
    assert [row.uid for row in pool] == ["1", "3"]


@pytest.mark.usefixtures("either_way")
@given(
    pool=st.lists(st.text("aA b", max_size=3), max_size=12),
    others=st.lists(st.text("aA b", max_size=3), max_size=6),
)
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_no_text_of_the_others_is_left_and_no_other_text_is_lost(pool, others):
    rest = remove_overlap(examples(pool), examples(others), Notes())
    plain = {" ".join(text.casefold().split()) for text in others}
    expected = [
        t for t in dict.fromkeys(pool) if " ".join(t.casefold().split()) not in {*plain, ""}
    ]
    assert [row.text for row in rest] == expected
    assert len(rest) == len(expected)


@given(st.lists(st.integers(1, 2**64 - 1) | st.integers(1, 30).map(lambda n: n << 8), max_size=60))
@example([n * Marks.TABLES for n in range(1, 200)])  # all in one table, which grows nine times
@example([1, 2**64 - 1, 1])
def test_marks_are_a_set(marks):
    met, plain = Marks(), set()
    for mark in marks:
        assert (mark in met) == (mark in plain)
        met.add(mark)
        plain.add(mark)
        assert mark in met
    assert len(met) == len(plain)
    assert all(mark in met for mark in plain)
    near = {mark ^ Marks.TABLES for mark in plain} - plain - {0}  # their table and next slot
    assert not any(mark in met for mark in near)


def test_a_mark_is_64_bits_that_are_the_same_everywhere():
    """blake2b with 8 bytes: `printf a | b2sum -l 64`."""
    assert mark_of("a") == 0x40F89E395B66422F
    assert mark_of("\ud800") != mark_of("\ud801"), "an id may be half a character"


def test_marks_take_16_bytes_each_also_while_they_grow():
    marks = [mark_of(str(number)) for number in range(50_000)]
    tracemalloc.start()
    met = Marks()
    for mark in marks:
        met.add(mark)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    empty = 256 * (64 + 64 + 80 + 16)  # 256 tables of 8 slots, as objects
    assert peak < 16 * len(marks) + empty


def test_an_accent_coded_in_two_ways_is_one_text():
    rest = remove_overlap(examples(["cafe\u0301", "cafe"]), examples(["café"]), Notes())
    assert [row.text for row in rest] == ["cafe"]


# ── the split ──

TWO = (("good", "pos"), ("great", "pos"), ("bad", "neg"), ("awful", "neg"))


def test_a_split_keeps_labelled_dev_and_pool_apart():
    notes = Notes()
    labelled = gold(*TWO, ("good", "pos"))
    split = make_split(
        labelled,
        examples(["GOOD", "fine", "so so"]),
        gold(("fine", "pos"), ("bad", "neg")),
        notes=notes,
    )
    assert texts_of(list(split.labelled)) == list(TWO)
    assert texts_of(list(split.dev)) == [("fine", "pos")]
    assert [row.text for row in split.unlabelled] == ["so so"]
    assert dict(notes) == {
        "duplicate labelled rows dropped": 1,
        "labelled texts inside dev removed": 1,
        "labelled or dev texts inside the pool removed": 2,
    }


def test_numeric_labels_are_kept_as_strings_and_noted():
    notes = Notes()
    split = make_split(
        gold(("a", "0"), ("b", "0"), ("c", "-1.5"), ("d", "-1.5")), examples(["e"]), notes=notes
    )
    assert {row.label for row in split.labelled} == {"0", "-1.5"}
    assert dict(notes) == {"numeric labels kept as strings": 4}


POOL = examples(["something else"])


@pytest.mark.parametrize(
    ("labelled", "pool", "dev", "message", "hint"),
    [
        ([], POOL, [], "the labelled rows have no class; expected at least 2", "--label"),
        ([("a", "x"), ("b", "x")], POOL, [], "one class: `x`; expected at least 2", "--label"),
        ([*TWO, ("c", "odd")], POOL, [], "class `odd` has 1 labelled example", "label one more"),
        ([*TWO, ("bad", "pos")], POOL, [], "'bad' has two labels: `neg` and `pos`", "keep one"),
        (TWO, POOL, [("d", "Neg")], "label `Neg` in dev was never seen", "did you mean `neg`?"),
        (TWO, POOL, [("d", "other")], "it has `neg`, `pos`", "label some training rows `other`"),
        (TWO, POOL, [("good", "pos")], "every dev row is also a labelled row", "no dev set"),
        (TWO, [], [], "the pool is empty", "--unlabelled FILE"),
        (TWO, examples(["", "Good", " "]), [], "the pool is empty", "--unlabelled FILE"),
        (TWO, examples(["a"], ["b"]), [], "some rows are pairs", "--pair COLUMN"),
    ],
)
def test_a_split_that_cannot_be_learnt_from_is_an_error(labelled, pool, dev, message, hint):
    with pytest.raises(DataError) as error:
        make_split(gold(*labelled), pool, gold(*dev), notes=Notes())
    said, hinted = told(error)
    assert message in said
    assert hint in hinted


def test_labels_of_a_test_set_must_be_known():
    check_labels(gold(*TWO), {"pos", "neg"}, "test")
    with pytest.raises(DataError, match="label `neg` in test was never seen in training"):
        check_labels(gold(*TWO), {"pos"}, "test")


@pytest.mark.parametrize("start", "=+-@＝＋－＠\t\r\n")
def test_no_cell_starts_like_a_formula(start):
    assert harmless(f"{start}HYPERLINK()") == f"'{start}HYPERLINK()"
    assert harmless(f"a{start}") == f"a{start}"


def test_examples_have_no_place_for_a_label():
    assert not hasattr(Example("1", "a"), "label")


def test_a_pool_survives_the_trip_to_another_process(tmp_path: Path):
    path = tmp_path / "pool.csv"
    path.write_text("text\na\n", encoding="utf-8")
    pool = read_unlabelled(path, notes=Notes())
    assert list(pickle.loads(pickle.dumps(pool))) == list(pool)
