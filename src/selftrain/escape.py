"""Text that anyone may have written, made safe for where it is shown."""

from __future__ import annotations

import re

LONGEST = 300  # characters of such a text in a message


def harmless(cell: object) -> object:
    """A cell that no spreadsheet runs as a formula: a quote goes before the signs that start one.

    A text may come from anyone, and ``=HYPERLINK(…)`` in it would act when the file is opened. A
    spreadsheet that takes ``;`` for the separator begins a cell after it, also inside of quotes.
    Numbers stay as they are.

    >>> harmless("=1+1"), harmless("＝1+1"), harmless("a;=1"), harmless("-1"), harmless("fine")
    ("'=1+1", "'＝1+1", "a;'=1", '-1', 'fine')
    """
    if not isinstance(cell, str) or re.fullmatch(r"[+-]?\d+(\.\d+)?", cell):
        return cell
    inside = re.sub(r"(?<=[;\t\r\n])([\s\"]*)(?=[=+\-@＝＋－＠])", r"\1'", cell)
    return f"'{inside}" if re.match(r"[=+\-@＝＋－＠\t\r\n]", cell) else inside


def printable(text: str) -> str:
    r"""A text on one line, with control codes of a terminal spelt out.

    >>> print(printable("fine \x1b[2J\n"))
    fine \x1b[2J\n
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def brief(text: str) -> str:
    """A text for a message: printable, and cut after 300 characters."""
    shown = printable(text[:LONGEST])
    return shown[:LONGEST] + "…" * (max(len(text), len(shown)) > LONGEST)
