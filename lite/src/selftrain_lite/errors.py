"""The error a user can act on: one line that says what is wrong, and a hint."""

from __future__ import annotations

LONGEST = 300  # characters of a text from a file in a message


class LiteError(Exception):
    """A model folder, a file or a text that cannot be used: what is there, and what to try."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint)  # both, so that pickling keeps the hint
        self.message = printable(" ".join(message.splitlines()))
        self.hint = hint

    def __str__(self) -> str:
        return self.message


def printable(text: str) -> str:
    r"""A text on one line, with control codes of a terminal spelt out.

    >>> print(printable("fine \x1b[2J\n"))
    fine \x1b[2J\n
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def brief(text: object) -> str:
    """Any value for a message: printable, and cut after 300 characters."""
    shown = str(text)
    return printable(shown[:LONGEST]) + "…" * (len(shown) > LONGEST)
