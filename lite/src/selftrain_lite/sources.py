"""Lines of a file, a pipe or standard input, which can be read again: by the rules of selftrain.

The rules are those of selftrain's ``data/sources.py``. Tests compare both, file for file.
"""

from __future__ import annotations

import codecs
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from selftrain_lite.errors import LiteError

STDIN = "-"
FIELD_LIMIT = 16 * 2**20
"""Bytes of a line, characters of a CSV record: a longer one has a quote that was never closed."""
FIRST_BYTES = 2**16
"""Bytes from which the ends of lines are known."""
IN_MEMORY = 16 * 2**20
"""Bytes of a pipe; a longer one is copied to a temporary file."""


@dataclass(frozen=True, slots=True)
class Source:
    """Bytes with a name for messages."""

    name: str
    file: IO[bytes]

    def lines(self) -> Iterator[str]:
        """The lines from the start, without the byte order mark; one such iterator at a time."""
        self.file.seek(0)
        for number, raw in enumerate(_raw_lines(self.file), 1):
            if len(raw) > FIELD_LIMIT:
                problem = f"more than {FIELD_LIMIT:,} bytes"
                raise self.error(number, problem, "close every quote, or cut the text")
            try:
                line = (raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw).decode()
            except UnicodeDecodeError:
                raise self.error(number, "it is not UTF-8", "save it again as UTF-8") from None
            if "\0" in line:
                hint = "save it again as UTF-8, without NUL bytes"
                raise self.error(number, "a NUL byte; expected text in UTF-8", hint)
            yield line

    def error(self, number: int, problem: str, hint: str) -> LiteError:
        """An error that names the source and the line."""
        return LiteError(f"{self.name}, line {number}: {problem}", hint)


@contextmanager
def opened(path: str) -> Iterator[Source]:
    """The bytes of a file; ``-`` is standard input. A pipe is read to its end."""
    with ExitStack() as stack:
        try:
            stream = _stdin() if path == STDIN else stack.enter_context(Path(path).open("rb"))
            if path == STDIN or not stream.seekable():
                copy = stack.enter_context(tempfile.SpooledTemporaryFile(IN_MEMORY))
                shutil.copyfileobj(stream, copy)
                stream = copy
        except (OSError, ValueError) as error:  # a name may hold a NUL
            reason = getattr(error, "strerror", None) or error
            raise LiteError(f"cannot read {path}: {reason}", "check the name") from None
        yield Source(path, stream)


def _stdin() -> IO[bytes]:
    if sys.stdin is None or sys.stdin.closed:
        raise LiteError("standard input is closed", "give a file, or feed it: … | selftrain-lite")
    return sys.stdin.buffer


def _raw_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Lines with their ends, each no longer than one byte over the limit.

    Old Macs ended a line by a carriage return alone; so do some exports of today.
    """
    start = file.read(FIRST_BYTES)
    file.seek(0)
    if b"\r" in start and b"\n" not in start:
        return _ended_by_returns(file)
    return iter(partial(file.readline, FIELD_LIMIT + 1), b"")


def _ended_by_returns(file: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while part := file.read(FIRST_BYTES):
        *lines, rest = (rest + part).split(b"\r")
        yield from (line + b"\n" for line in lines)
        if len(rest) > FIELD_LIMIT:
            yield rest
            return
    if rest:
        yield rest
