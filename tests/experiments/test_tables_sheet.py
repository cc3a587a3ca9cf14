"""A table as Markdown, LaTeX and CSV, whatever its cells hold."""

from __future__ import annotations

import csv as reading
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selftrain.experiments.tables import Sheet
from selftrain.experiments.tables.sheet import csv, latex, markdown

ODD = Sheet(
    "50 % & more_or_less",
    ("name", "a|b"),
    (("[x] \\ <1M #1", "81.0 ± 1.4"), ("=1+1", "-0.4")),
    ("a note\nin {two} lines",),
)


def test_markdown_shows_what_it_would_obey() -> None:
    assert markdown([ODD]).splitlines() == [
        "### 50 % & more_or_less",
        "",
        r"| name | a\|b |",
        "| --- | ---: |",
        r"| \[x\] \\ \<1M #1 | 81.0 ± 1.4 |",
        "| =1+1 | -0.4 |",
        "",
        "- a note in {two} lines",
    ]


def test_latex_shows_what_it_would_obey() -> None:
    text = latex([ODD])
    assert r"\caption{50 \% \& more\_or\_less}" in text
    assert r"{[}x{]} \textbackslash{} \textless{}1M \#1 & 81.0 $\pm$ 1.4 \\" in text
    assert r"=1+1 & $-$0.4 \\" in text
    assert r"a note in \{two\} lines" in text
    assert text.splitlines()[3:5] == [r"\begin{tabular}{lr}", r"\toprule"]


def test_a_control_code_is_spelt_out_and_obeyed_by_no_format() -> None:
    sheet = Sheet("t", ("a",), (("\x1b[2J",),))
    assert r"\textbackslash{}x1b{[}2J \\" in latex([sheet]).split("\n")
    assert r"| \\x1b\[2J |" in markdown([sheet]).split("\n")
    assert r'"\x1b[2J"' in csv([sheet]).split("\n")


@pytest.mark.parametrize(("excel_safe", "cell"), [(False, "=1+1"), (True, "'=1+1")])
def test_csv_is_read_back_cell_by_cell_and_holds_no_formula_if_asked(
    excel_safe: bool, cell: str
) -> None:
    found = list(reading.reader(StringIO(csv([ODD, ODD], excel_safe=excel_safe))))
    one = [
        ["50 % & more_or_less"],
        ["name", "a|b"],
        ["[x] \\ <1M #1", "81.0 ± 1.4"],
        [cell, "-0.4"],
        ["a note in {two} lines"],
    ]
    assert found == [*one, [], *one]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.text(max_size=20), min_size=2, max_size=2))
def test_whatever_a_cell_holds_a_row_stays_a_row(names: list[str]) -> None:
    sheet = Sheet("t", ("a", "b"), (tuple(names),))
    assert len(markdown([sheet]).split("\n")) == 5
    row = latex([sheet]).split("\n")[7]
    assert row.replace(r"\&", "").count("&") == 1
    assert row.endswith(r" \\")
    *_, last = reading.reader(StringIO(csv([sheet])), strict=True)
    assert len(last) == 2
    for form in (markdown, latex, csv):
        assert form([sheet]).replace("\n", "").isprintable()


def test_a_row_of_another_length_is_no_sheet() -> None:
    with pytest.raises(AssertionError):
        Sheet("t", ("a", "b"), (("1",),))
