"""Tables of cells: every format, safe to open, complete or not there."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from selftrain.data.files import records
from selftrain.data.write import write_delimited, write_table
from selftrain.errors import DataError, RunError
from selftrain.escape import harmless

NAMES = ["id", "text", "p"]
ROWS: list[tuple[object, ...]] = [
    (1, 'say "no", twice', 0.25),
    (2, "two\nlines\rand\r\nmore", 1.0),
    (3, "naïve – ½\u2028", 0.0),
    (4, "", 1e-6),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("start", "=+-@＝＋－＠\t\r\n")
def test_no_cell_starts_like_a_formula(start: str) -> None:
    assert harmless(f"{start}HYPERLINK()") == f"'{start}HYPERLINK()"
    assert harmless(f"a{start}") == f"a{start}"


@pytest.mark.parametrize("name", ["t.csv", "t.TSV", "t.jsonl", "t.ndjson", "t.parquet", "t.pq"])
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    write_table(tmp_path / name, NAMES, iter(ROWS))
    rows = [tuple(row[column] for column in NAMES) for _, row in records(tmp_path / name)]
    as_text = name.lower().endswith(("csv", "tsv"))
    assert rows == [tuple(map(str, row)) if as_text else row for row in ROWS]


def test_a_number_that_many_rows_lack_is_a_number(tmp_path: Path) -> None:
    rows = [("a", None)] * 2_000 + [("b", 0.5)]
    write_table(tmp_path / "t.parquet", ["uid", "p"], rows, kinds={"p": float})
    found = [row["p"] for _, row in records(tmp_path / "t.parquet")]
    assert found == [None] * 2_000 + [0.5]


SIGNS = ["+ve", "-abc", "@user hello", "=1+1", "-1", '"open', "a\tb", "x;=1"]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet", "t:1.parquet"])
def test_a_text_is_written_as_it_is_whatever_sign_it_starts_with(name: str, tmp_path: Path) -> None:
    write_table(tmp_path / name, ["=name"], [(sign,) for sign in SIGNS])
    assert [row["=name"] for _, row in records(tmp_path / name)] == SIGNS


@pytest.mark.parametrize(("name", "delimiter"), [("t.csv", ","), ("t.tsv", "\t")])
def test_a_guarded_file_holds_no_formula_and_every_cell_in_quotes(
    name: str, delimiter: str, tmp_path: Path
) -> None:
    rows = [(1, "=1+1", 0.5), (2, "-1", 1.0), (3, "a;=1+1", 0.0)]
    write_table(tmp_path / name, ["n", "=name", "p"], rows, excel_safe=True)
    raw = (tmp_path / name).read_text("utf-8").splitlines()
    assert raw[1:] == [
        delimiter.join(('"1"', '"\'=1+1"', '"0.5"')),
        delimiter.join(('"2"', '"-1"', '"1.0"')),
        delimiter.join(('"3"', '"a;\'=1+1"', '"0.0"')),
    ]


@pytest.mark.parametrize("name", ["t.jsonl", "t.parquet"])
def test_only_csv_and_tsv_are_guarded(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--excel-safe guards CSV and TSV files"):
        write_table(tmp_path / name, ["a"], [("b",)], excel_safe=True)


def test_control_codes_are_spelt_out_on_a_terminal_only() -> None:
    for file, shown in ((io.StringIO(), "\x1b[2J"), (Terminal(), "\\x1b[2J")):
        write_delimited(file, ["text", "n"], [("\x1b[2J", 1)])
        assert file.getvalue() == f'"text","n"\n"{shown}",1\n'


def test_the_delimiter_can_be_another() -> None:
    file = io.StringIO()
    write_delimited(file, ["a", "b"], [("x", 1)], delimiter="\t")
    assert file.getvalue() == '"a"\t"b"\n"x"\t1\n'


def test_a_table_without_rows_has_its_header(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", NAMES, [])
    assert (tmp_path / "t.csv").read_text("utf-8") == '"id","text","p"\n'


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_an_error_half_way_leaves_the_old_file_and_nothing_else(name: str, tmp_path: Path) -> None:
    def broken() -> Iterator[tuple[object, ...]]:
        yield ROWS[0]
        raise KeyboardInterrupt

    (tmp_path / name).write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_table(tmp_path / name, NAMES, broken())
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "old"


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.json", "t.csv.gz"])
def test_another_ending_is_an_error_before_any_row_is_computed(name: str, tmp_path: Path) -> None:
    rows = iter(ROWS)
    with pytest.raises(DataError, match=r"expected \.csv, \.tsv, \.jsonl or \.parquet"):
        write_table(tmp_path / name, NAMES, rows)
    assert len(list(rows)) == len(ROWS)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="No such file or directory"):
        write_table(tmp_path / "missing" / "t.csv", NAMES, ROWS)
