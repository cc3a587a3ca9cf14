"""A sheet: a table as text, and the formats it is written in.

A text may come from anyone's file, so every format escapes what it would take for a command.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from selftrain.data.write import write_delimited
from selftrain.escape import printable

Texts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table with its title, its head and its notes."""

    title: str
    head: Texts
    rows: tuple[Texts, ...]
    notes: Texts = ()
    words: int = 1
    """How many columns at the left hold words; the others hold numbers, aligned right."""

    def __post_init__(self) -> None:
        widths = {len(row) for row in (self.head, *self.rows)}
        assert len(widths) == 1, f"rows of different lengths: {widths}"


def markdown(sheets: Iterable[Sheet]) -> str:
    """The sheets as Markdown, each under its title.

    >>> print(markdown([Sheet("Scores", ("method", "sst2"), (("UST", "84.0"),))]))
    ### Scores
    <BLANKLINE>
    | method | sst2 |
    | --- | ---: |
    | UST | 84.0 |
    """
    return "\n\n".join(map(_markdown, sheets))


def csv(sheets: Iterable[Sheet], *, excel_safe: bool = False) -> str:
    """The sheets as CSV, with an empty line between two of them.

    >>> print(csv([Sheet("Scores", ("method", "sst2"), (("UST", "84.0"),), ("one seed",))]))
    "Scores"
    "method","sst2"
    "UST","84.0"
    "one seed"
    """
    return "\n\n".join(_csv(sheet, excel_safe=excel_safe) for sheet in sheets)


def latex(sheets: Iterable[Sheet]) -> str:
    r"""The sheets as LaTeX tables; a document needs ``\usepackage{booktabs}``."""
    return "\n\n".join(map(_latex, sheets))


FORMATS = {"markdown": markdown, "csv": csv, "latex": latex}


# ── Markdown ──


def _markdown(sheet: Sheet) -> str:
    table = markdown_table(sheet.head, sheet.rows, sheet.words)
    notes = [f"- {_in_markdown(note)}" for note in sheet.notes]
    parts = [f"### {_in_markdown(sheet.title)}", table, "\n".join(notes)]
    return "\n\n".join(part for part in parts if part)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    r"""A table without a title; ``words`` columns at the left hold words.

    >>> print(markdown_table(["class", "right"], [["a|b", "84.0"]]))
    | class | right |
    | --- | ---: |
    | a\|b | 84.0 |
    """
    rules = ["---"] * words + ["---:"] * (len(head) - words)
    first, *others = ([_in_markdown(cell) for cell in row] for row in (head, *rows))
    return "\n".join(f"| {' | '.join(row)} |" for row in (first, rules, *others))


def _in_markdown(text: str) -> str:
    r"""Text that Markdown shows as it is.

    >>> print(_in_markdown("a|b <1M *c*"))
    a\|b \<1M \*c\*
    """
    return re.sub(r"([\\|<*`\[\]])", r"\\\1", one_line(text))


# ── CSV ──


def _csv(sheet: Sheet, *, excel_safe: bool) -> str:
    file = io.StringIO()
    rows = [sheet.head, *sheet.rows, *((note,) for note in sheet.notes)]
    lines = ([one_line(text) for text in row] for row in rows)
    write_delimited(file, [one_line(sheet.title)], lines, excel_safe=excel_safe)
    return file.getvalue().rstrip("\n")


# ── LaTeX ──

COMMANDS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "[": "{[}",  # after the end of a row, a bare one would be read as the space below it
    "]": "{]}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "–": "--",
    "…": r"\dots{}",
    "“": "``",
    "”": "''",
}


def _latex(sheet: Sheet) -> str:
    columns = "l" * sheet.words + "r" * (len(sheet.head) - sheet.words)
    notes = [rf"\par\smallskip\footnotesize {_in_latex(note)}" for note in sheet.notes]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_in_latex(sheet.title)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _latex_row(sheet.head),
            r"\midrule",
            *map(_latex_row, sheet.rows),
            r"\bottomrule",
            r"\end{tabular}",
            *notes,
            r"\end{table}",
        ]
    )


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_in_latex, cells)) + r" \\"


def _in_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is, with a minus before a negative number.

    >>> print(_in_latex("50 % of a_b, 81.0 ± 1.4"), _in_latex("-0.4"))
    50 \% of a\_b, 81.0 $\pm$ 1.4 $-$0.4
    """
    text = one_line(text)
    sign = "$-$" if re.match(r"-\d", text) else ""
    return sign + "".join(COMMANDS.get(c, c) for c in (text[1:] if sign else text))


def one_line(text: str) -> str:
    r"""The text on one line, for a line break would end a row; other control codes are spelt out.

    >>> print(one_line("two\n  lines, \x1b[2J"))
    two lines, \x1b[2J
    """
    return printable(" ".join(text.split()))
