"""Text from a stranger, made safe for where it is shown."""

from __future__ import annotations

import re

# ── writing ──


def harmless(cell: object) -> object:
    """A cell that no spreadsheet takes for a formula: numbers pass, other such starts get a quote.

    A text may come from anyone, and ``=HYPERLINK(…)`` in it would act when the file is opened.

    >>> harmless("=1+1"), harmless("＝1+1"), harmless("-1"), harmless("fine")
    ("'=1+1", "'＝1+1", '-1', 'fine')
    """
    risky = isinstance(cell, str) and re.match(r"[=+\-@＝＋－＠\t\r\n]", cell)
    return f"'{cell}" if risky and not re.fullmatch(r"[+-]?\d+(\.\d+)?", str(cell)) else cell


LONGEST = 300  # characters of a stranger's text in a message


def printable(text: str) -> str:
    r"""A stranger's text on one line, with the codes that a terminal would obey spelt out.

    >>> print(printable("fine \x1b[2J\n"))
    fine \x1b[2J\n
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def brief(text: str) -> str:
    """A stranger's text, fit for one line of a terminal."""
    shown = printable(text[:LONGEST])
    return shown[:LONGEST] + "…" * (max(len(text), len(shown)) > LONGEST)
