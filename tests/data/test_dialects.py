"""Separators, quotes and ends of lines: known from the file, and no row is swallowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats import texts_of
from selftrain.data.delimited import Dialect, dialect_of
from selftrain.data.read import Columns, read_labelled, read_unlabelled
from selftrain.data.rows import Notes
from selftrain.data.sources import source_of
from selftrain.errors import DataError

ROWS = [("Hallo, Welt", "gut"), ("na ja; so so", "schlecht")]


def read(path: Path, content: str | bytes, columns: Columns = Columns()) -> list[tuple[str, str]]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return texts_of(read_labelled(path, columns, notes=Notes()))


EUROPEAN = 'text;label\r\nHallo, Welt;gut\r\n"na ja; so so";schlecht\r\n'


@pytest.mark.parametrize(
    ("content", "separator"),
    [
        (EUROPEAN, "`;`"),
        ("\ufeff" + EUROPEAN, "`;`"),
        ("sep=;\r\n" + EUROPEAN, "`;`"),
        ("SEP=;\n" + EUROPEAN, "`;`"),
        ("text\tlabel\nHallo, Welt\tgut\nna ja; so so\tschlecht\n", "tabs"),
        ("text|label\nHallo, Welt|gut\nna ja; so so|schlecht\n", "`|`"),
        ("\n" + EUROPEAN, "`;`"),
    ],
)
def test_another_separator_is_found_and_said(content: str, separator: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content, "utf-8", newline="")
    notes = Notes()
    assert texts_of(read_labelled(tmp_path / "a.csv", notes=notes)) == ROWS
    assert notes.columns == [f"{tmp_path / 'a.csv'}: text from `text`, label from `label`"]
    assert notes.remarks == [f"{tmp_path / 'a.csv'}: fields separated by {separator}"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", "text,label\na;b,x;y\nc;d,z\n", ","),  # the header names usual columns
        ("a.csv", "body,mood\na;b,x\n", ","),  # its own separator splits it
        ("a.csv", "body;mood, or so\na, b;x\n", ","),  # nothing known: what its name promises
        ("a.csv", "text;mood, or so\na, b;x\n", ";"),
        ("a.csv", "body;mood\na, b;x\nc;y\n", ";"),  # header and rows split alike
        ("a.csv", "I like it; really\nso do I\n", ","),  # they do not
        ("a.csv", "text\na; b\n", ","),
        ("a.tsv", "text,label\na,x\n", ","),
        ("a.tsv", "text\na, b\n", "\t"),
        ("a.csv", "", ","),
    ],
)
def test_the_separator_names_a_usual_column_or_splits_header_and_rows_alike(
    name: str, content: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    usual = {"csv": ",", "tsv": "\t"}[name[-3:]]
    assert dialect_of(source_of(tmp_path / name), usual).separator == expected


def test_a_file_with_its_usual_separator_is_not_remarked_on(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("sep=,\ntext,label\na;b,x\n")
    notes = Notes()
    assert texts_of(read_labelled(tmp_path / "a.csv", notes=notes)) == [("a;b", "x")]
    assert notes.remarks == []


def test_a_line_number_counts_the_line_that_names_the_separator(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 4: the label is empty"):
        read(tmp_path / "a.csv", "sep=;\ntext;label\na;x\nb;\n")


# ── quotes between tabs ──


def test_a_text_with_tabs_that_starts_with_a_quote_swallows_no_row(tmp_path: Path) -> None:
    content = 'text\tlabel\n"Hello, he said\tx\nplain\ty\nit ends with"\tx\n"a" b\ty\n'
    assert read(tmp_path / "a.tsv", content) == [
        ('"Hello, he said', "x"),
        ("plain", "y"),
        ('it ends with"', "x"),
        ('"a" b', "y"),
    ]


def test_a_pool_with_tabs_keeps_a_text_that_opens_a_quote(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text('text\n"one\ntwo\nthree"\n')
    pool = read_unlabelled(tmp_path / "a.tsv", notes=Notes())
    assert [row.text for row in pool] == ['"one', "two", 'three"']


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ('text\tlabel\n"say ""no"""\tx\n', [('say "no"', "x")]),  # as pandas and Excel write it
        ('text\tlabel\n"a\tb"\tx\n', [("a\tb", "x")]),
        ('text\tlabel\n"two\nlines"\tx\nb\ty\n', [("two\nlines", "x"), ("b", "y")]),
        ('"text"\t"label"\n"two\nlines"\t"x"\n', [("two\nlines", "x")]),
        ('text\tlabel\na "b" c\tx\n', [('a "b" c', "x")]),
    ],
)
def test_quotes_that_a_program_wrote_are_no_part_of_a_text(
    content: str, rows: list[tuple[str, str]], tmp_path: Path
) -> None:
    assert read(tmp_path / "a.tsv", content) == rows


def test_an_open_quote_under_a_header_in_quotes_is_an_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 3: not valid CSV"):
        read(tmp_path / "a.tsv", '"text"\t"label"\n"a"\t"x"\n"b\t"y"\n')


# ── blanks and ends of lines ──


@pytest.mark.parametrize("header", ['text, "label"', "text, label"])
def test_a_blank_before_a_quote_is_no_part_of_a_field(header: str, tmp_path: Path) -> None:
    content = f'{header}\na film, "good, really"\n'
    assert read(tmp_path / "a.csv", content) == [("a film", "good, really")]


def test_blanks_after_a_separator_are_kept_where_nothing_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,text\nx, a film\n")
    assert dialect_of(source_of(tmp_path / "a.csv"), ",") == Dialect(",")
    [row] = read_labelled(tmp_path / "a.csv", notes=Notes())
    assert row.example.text == " a film"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["", "end"])
def test_lines_end_as_unix_windows_or_old_macs_end_them(
    end: str, last: str, tmp_path: Path
) -> None:
    content = end.join(["text,label", "a,x", '"b, c",y']) + (end if last else "")
    assert read(tmp_path / "a.csv", content) == [("a", "x"), ("b, c", "y")]
    jsonl = end.join(['{"text": "a", "label": "x"}', '{"text": "b", "label": "y"}'])
    assert read(tmp_path / "a.jsonl", jsonl) == [("a", "x"), ("b", "y")]
