"""A file from anyone: which one may be opened, and what is wrong with it in one line.

A run folder may have been copied, cut short or made by a stranger. A link in it is not followed, a
size or a number not believed, and a text not shown before it is fit for a terminal.
"""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path
from typing import TypeVar

from selftrain.errors import RunError, first_problem

LONGEST = 300  # characters of a stranger's text in a message
LARGEST_JSON = 16 * 2**20  # bytes: room for the counts of a hundred thousand classes

T = TypeVar("T")


def plain_folder(path: Path) -> Path:
    """The path, if a folder stands there and not a link to one: that could lead anywhere."""
    if not stat.S_ISDIR(path.lstat().st_mode):
        raise damaged(path, "is not a plain folder")
    return path


def plain_file(path: Path, largest: int | None = None) -> Path:
    """The path, if a file stands there: a link could lead anywhere, and a pipe never end."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise damaged(path, "is not a plain file")
    if largest is not None and found.st_size > largest:
        raise damaged(path, f"has {found.st_size:,} bytes; expected at most {largest:,}")
    return path


def valid(kind: type[T], raw: bytes, path: Path) -> T:
    """The JSON of a file as a value of this kind, if each part of it has the right type."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_json(raw, strict=True)
    except ValidationError as error:
        wrong = first_problem(error)
        raise damaged(path, f"is damaged: {wrong.place}: {wrong.told}") from None


def sha256(path: Path) -> str:
    """The digest that tells a file from every other."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damaged(path: Path, problem: str) -> RunError:
    """The error of a file or folder that is not what was written."""
    hint = "copy the folder again, or begin in another one: -o NEW"
    return RunError(f"{path} {brief(problem)}", hint)


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
