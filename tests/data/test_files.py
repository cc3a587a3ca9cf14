"""Bad files are refused with their line and a hint; large ones take little memory."""

import gzip
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from formats import FORMATS, as_csv, as_parquet, damaged_parquet, message_and_hint
from selftrain.data import files, sources
from selftrain.data.read import Columns, read_labelled, read_texts, read_unlabelled
from selftrain.data.rows import Notes, examples
from selftrain.errors import DataError

LABELLED = (
    # file name, bytes, part of the message, part of the hint
    ("empty.csv", b"", "has no rows", "text,label"),
    ("header.csv", b"text,label\n", "has no rows", "text,label"),
    ("empty.jsonl", b"\n\n", "has no rows", "text,label"),
    ("ragged.csv", b"text,label\na,x\nb, c,x\n", "line 3: 3 fields; the header has 2", '"like, th'),
    ("short.tsv", b"text\tlabel\na\n", "line 2: 1 fields; the header has 2", "in quotes"),
    ("quote.csv", b'text,label\na,x\n"b,x\n', "line 3: not valid CSV: unexpected end", '""no""'),
    ("stray.tsv", b'"text"\t"label"\n"a" b\tx\n', "line 2: not valid CSV", "double those inside"),
    ("open.tsv", b'"text"\t"label"\na\tx\n"b\tx\n', "line 3: not valid CSV", "close every quote"),
    ("tab.tsv", b"text\tlabel\na\tb\tx\n", "line 2: 3 fields; the header has 2", "in quotes"),
    ("euro.csv", b"text;label\na;b;x\n", "line 2: 3 fields; the header has 2", '"like; this"'),
    ("twice.csv", b"text,label,text\n", "two columns are named `text`", "rename"),
    ("latin.csv", b"text,label\ncaf\xe9,x\n", "line 2: byte 0xe9 at 4 is not", "-f WINDOWS-1252"),
    ("utf16.csv", "text,label\n".encode("utf-16"), "line 1: byte 0xff at 1", "-f UTF-16 -t UTF-8"),
    ("wide.csv", "text,label\n".encode("utf-16-le"), "line 1: a NUL byte", "-f UTF-16"),
    ("nul.jsonl", b'{"text": "a\0", "label": "x"}\n', "line 1: a NUL byte", "tr -d"),
    ("zipped.csv", gzip.compress(b"text,label\n"), "is gzipped", "zipped.csv.gz"),
    ("plain.csv.gz", b"text,label\na,x\n", "not a whole gzip file", "file "),
    ("cut.csv.gz", gzip.compress(b"text,label\na,x\n")[:-9], "not a whole gzip file", "file "),
    ("bad.parquet", b"text,label\na,x\n", "cannot be read as Parquet", "ending in .csv"),
    ("none.parquet", b"", "cannot be read as Parquet", "ending in .csv"),
    ("book.xlsx", b"PK", "cannot be read as an Excel workbook", "CSV UTF-8"),
    ("book.csv", b"PK\x03\x04", "is an Excel workbook", "CSV UTF-8"),
    ("old.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel", "CSV UTF-8"),
    ("old.xls", b"\xd0\xcf\x11\xe0", "ends in `.xls`", "CSV UTF-8"),
    ("rows.txt", b"text,label\na,x\n", "ends in `.txt`", "--format csv"),
    ("page.csv", b"<!DOCTYPE html><html>", "is a web page", "download"),
    ("table.csv", b"PAR1", "is a Parquet file", "table.parquet"),
    ("rows.json", b"[]", "has no rows", "text,label"),
    ("cut.json", b'[{"text": "a", "label": "x"},', "row 2: the array is cut", '[{"text"'),
    ("open.json", b'[{"text": "a", "label": "x"', "row 1: not JSON", '[{"text"'),
    ("mixed.json", b'[{"text": "a", "label": "x"}, 3]', "row 2: '3]'; expected `{`", '[{"text"'),
    ("comma.json", b'[{"text": "a", "label": "x"} {}]', "expected `,`", '[{"text"'),
    ("twice.json", b'[{"text": "a", "text": "b"}]', "row 1: not JSON: two entries", '[{"text"'),
    ("twice.jsonl", b'{"text": "a", "text": "b"}', "two entries are named `text`", "one object"),
    ("spread.json", b'{\n "text": "a",\n "label": "x"\n}\n', "line 1: not JSON", "jq -c ."),
    ("latin.json", b'[{"text": "caf\xe9", "label": "x"}]', "is not UTF-8", "-f WINDOWS-1252"),
    ("array.jsonl", b'[{"text": "a"}]\n', "line 1: an array; expected an object", ".json"),
    ("json.csv", b'{"text": "a", "label": "x"}\n' * 2, "holds JSON", ".jsonl"),
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
    (
        "nan.csv",
        b"text,label\na,nan\n",
        "line 2: the label is nan, which stands for none",
        "--keep-na",
    ),
    ("nolabel.csv", b"text,label\na,\n", "line 2: the label is empty", "delete the row"),
    ("notext.csv", b"text,label\na,x\n  ,x\n", "line 3: the text is empty", "delete the row"),
    ("nopair.csv", b"text_a,text_b,label\na,,x\n", "line 2: the text is empty", "fill it in"),
    ("strange.csv", b"utterance,label\na,x\n", "no text column", "--text COLUMN"),
    ("unlabelled.csv", b"text,note\na,x\n", "no label column (one of label", "--label COLUMN"),
    (
        "case.csv",
        b"text,label\na,Good\nb,good\n",
        "`Good` and `good` differ only in case",
        "--exact",
    ),
    ("number.csv", b"text,label\na,1\nb,1.0\n", "`1` and `1.0` differ only in how", "--exact"),
    ("long.csv", b"text,label\na," + b"x" * 2000, "the label has 2,000 characters", "--label"),
)


@pytest.mark.parametrize(
    ("name", "content", "message", "hint"), LABELLED, ids=lambda v: str(v)[:14]
)
def test_a_bad_file_is_named_with_its_line_and_a_hint(name, content, message, hint, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as error:
        read_labelled(tmp_path / name, notes=Notes())
    shown_message, shown_hint = message_and_hint(error)
    assert name in shown_message
    assert message in shown_message
    assert hint in shown_hint


def test_a_missing_file_is_an_error_that_names_the_nearest_one(tmp_path):
    (tmp_path / "labelled.csv").touch()
    with pytest.raises(DataError, match=r"labeled\.csv does not exist") as error:
        read_labelled(tmp_path / "labeled.csv", notes=Notes())
    assert message_and_hint(error)[1] == f"did you mean {tmp_path / 'labelled.csv'}?"
    with pytest.raises(DataError, match="does not exist") as error:
        read_labelled(str(tmp_path / "nowhere" / "x.csv"), notes=Notes())
    assert "ls " in message_and_hint(error)[1]


def test_a_text_in_place_of_a_path_is_an_error():
    with pytest.raises(DataError, match="cannot be opened") as error:
        read_unlabelled("so long a text is no path " * 50, notes=Notes())
    assert "texts come as a list" in message_and_hint(error)[1]


def test_a_field_without_end_is_a_quote_left_open(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "FIELD_LIMIT", 1000)
    path = tmp_path / "open.csv"
    for open_end in (b"b\n", b'b\n","'):  # one field without end, or one after the other
        path.write_bytes(b'text,label\n"a' + open_end * 2000)
        with pytest.raises(DataError, match="line 2: not valid CSV: a record of more") as error:
            read_labelled(path, notes=Notes())
        assert "close every quote" in message_and_hint(error)[1]
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
    monkeypatch.setattr(sources, "FIELD_LIMIT", 1000)
    rows = [{"text": "b" * 900, "label": "x"}, {"text": "a" * 1001, "label": "x"}]
    (tmp_path / name).write_bytes(FORMATS[name](rows))
    with pytest.raises(DataError, match=r"(line|row) [23]: .*more than 1,000 bytes") as error:
        read_labelled(tmp_path / name, notes=Notes())
    assert "cut the text" in message_and_hint(error)[1]
    (tmp_path / name).write_bytes(FORMATS[name](rows[:1]))
    assert len(read_labelled(tmp_path / name, notes=Notes())) == 1


def test_of_a_line_without_end_only_its_start_is_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "FIELD_LIMIT", 2**20)
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
    allocated = [pa.total_allocated_bytes() - before for _ in files.records(path)]
    assert len(allocated) == 1000
    assert max(allocated) < 2**21, "repeated, they have 32 MB in each batch"


def test_a_column_that_is_not_used_may_hold_anything(tmp_path):
    path = tmp_path / "rows.parquet"
    far = pa.array([2**62], pa.timestamp("us"))
    pq.write_table(pa.table({"text": ["a"], "when": far}), path)
    assert list(read_unlabelled(path, notes=Notes())) == examples(["a"])
    with pytest.raises(DataError, match="row 1: `when` cannot be read: ") as error:
        read_unlabelled(path, Columns(id="when"), notes=Notes())
    assert message_and_hint(error)[1]


def test_a_parquet_text_that_is_none_is_one_line_and_a_hint(tmp_path):
    path = tmp_path / "rows.parquet"
    path.write_bytes(as_parquet([{"text": "half a \u00e9"}]).replace(b"a \xc3\xa9", b"a \xc3\x28"))
    with pytest.raises(DataError, match="row 1: `text` cannot be read: 'utf-8' codec") as error:
        read_unlabelled(path, notes=Notes())
    assert message_and_hint(error)[1]


def test_a_damaged_page_of_parquet_is_no_matter_of_rights(tmp_path):
    (tmp_path / "rows.parquet").write_bytes(damaged_parquet())
    for read in (read_unlabelled, read_texts):
        with pytest.raises(DataError, match="cannot be read as Parquet: Corrupt snappy") as error:
            read(tmp_path / "rows.parquet", notes=Notes())
        assert message_and_hint(error)[1].startswith("some of its bytes are damaged")


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
    rows = [(number, dict(row)) for number, row in files.records(path)]
    assert rows == list(enumerate(pa.table(kinds).to_pylist(), 1))
