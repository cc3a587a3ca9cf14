"""Rows of CSV and TSV, by the rules of selftrain's ``data/delimited.py``.

Separator and quotes are known from the file itself. Excel of many countries separates by ``;``, and
its first line may say so (``sep=;``). A text of a TSV file may start with a quote that is nothing
but a quote: if it opened a field, the rows up to the next quote would be lost. Tests compare both,
file for file.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from selftrain_lite import sources
from selftrain_lite.errors import LiteError
from selftrain_lite.names import USUAL
from selftrain_lite.sources import Source

SEPARATORS = (",", ";", "\t", "|")
SAMPLE = 64  # lines from which the separator is known
IN_QUOTES = re.compile(r'"(?:[^"]|"")*"')
"""A field that starts and ends with a quote, and doubles those inside."""
CLOSE = 'close every quote, and double those inside a quoted text: "he said ""no"""'

Numbered = Iterator[tuple[int, list[str]]]
"""The line that a record starts on, and its fields."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the fields of a file are separated and quoted."""

    separator: str
    quotes: bool
    """Whether a quote opens a field, which may then hold separators and line breaks."""
    first_line: int
    """The line of the header, after a line such as ``sep=;``."""
    blanks: bool = False
    """Whether a blank may stand between a separator and a quote."""


def dialect_of(source: Source, usual: str) -> Dialect:
    """The dialect of a file; ``usual`` is the separator that its name promises."""
    lines = list(islice(source.lines(), SAMPLE))
    place = next((at for at, line in enumerate(lines) if line.strip()), 0)
    header = lines[place] if lines else ""
    stated = re.fullmatch(r'"?sep=(.)"?', header.strip("\r\n"), re.IGNORECASE)
    if stated:
        separator, place = stated[1], place + 1
        header = lines[place] if place < len(lines) else ""
    else:
        separator = _separator(lines[place:], usual)
    quotes = separator != "\t" or _tabs_with_quotes(source, header, place + 1)
    return Dialect(separator, quotes, place + 1, _blanks(lines[place:], separator))


def _blanks(lines: list[str], separator: str) -> bool:
    """Whether blanks after separators are no part of a field, and a quote may follow them."""
    blank = f"{re.escape(separator)} +"
    return bool(lines and re.search(f'{blank}["\\w]', lines[0])) and any(
        re.search(f'{blank}"', line) for line in lines
    )


def _separator(lines: list[str], usual: str) -> str:
    """The separator with which the header names a usual column, or splits as the rows do."""
    fields = {each: list(_split(lines, each)) for each in (usual, *SEPARATORS)}
    headers = {each: rows[0] for each, rows in fields.items() if rows}
    several = [each for each, names in headers.items() if len(names) > 1]
    named = [each for each in several if any(_plain(name) in USUAL for name in headers[each])]
    if usual in named or (usual in several and not named):
        return usual
    alike = (each for each in several if len({len(row) for row in fields[each]}) == 1)
    return next(iter(named), None) or next(alike, usual)


def _split(lines: list[str], separator: str) -> Iterator[list[str]]:
    reader = csv.reader(lines, delimiter=separator)
    try:
        yield from filter(None, reader)
    except csv.Error:  # whoever reads the file says why
        return


def _plain(name: str) -> str:
    return name.strip().strip('"').strip().casefold()


def _tabs_with_quotes(source: Source, header: str, first_line: int) -> bool:
    """Whether quotes of a file with tabs open a field: where the file reads so alone, or as well.

    They do where the header is in quotes, or where every field that starts with a quote is closed
    as a program closes it, on its own line or, if lines alone have other fields than the header, on
    a later one.
    """
    names = header.rstrip("\r\n").split("\t")
    if any(IN_QUOTES.fullmatch(name) for name in names):
        return True
    is_open = ragged = False
    for line in islice(source.lines(), first_line, None):
        fields = line.rstrip("\r\n").split("\t")
        ragged |= bool(line.strip()) and len(fields) != len(names)
        if '"' in line:
            is_open |= any(f.startswith('"') and not IN_QUOTES.fullmatch(f) for f in fields)
    if not (is_open and ragged):
        return not is_open
    quoted = Dialect("\t", quotes=True, first_line=first_line)
    try:
        return all(len(fields) == len(names) for _, fields in _quoted_fields(source, quoted))
    except LiteError:
        return False


def rows(source: Source, dialect: Dialect) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each row by the names of the header, with the line it starts on."""
    numbered = (_quoted_fields if dialect.quotes else _plain_fields)(source, dialect)
    line, header = next(numbered, (1, []))
    names = [name.strip() for name in header]
    repeated = next((name for name, times in Counter(names).items() if name and times > 1), None)
    if repeated is not None:
        raise source.error(line, f"two columns are named `{repeated}`", "rename one of them")
    hint = "put a text with a separator or a line break in quotes"
    if not dialect.quotes:
        hint = "a text may hold no tab and no line break, unless the header is in quotes as well"
    for line, fields in numbered:
        if len(fields) != len(names):
            problem = f"{len(fields)} fields; the header has {len(names)}"
            raise source.error(line, problem, hint)
        yield line, dict(zip(names, fields, strict=True))


def _plain_fields(source: Source, dialect: Dialect) -> Numbered:
    for number, line in enumerate(source.lines(), 1):
        if number >= dialect.first_line and line.strip():
            yield number, line.rstrip("\r\n").split(dialect.separator)


def _quoted_fields(source: Source, dialect: Dialect) -> Numbered:
    """The fields of each record and the line it starts on; blank lines are skipped."""
    csv.field_size_limit(sources.FIELD_LIMIT)  # of the process: the csv module has no other limit
    size = 0  # characters of the record being read, which may have many lines and fields

    def lines() -> Iterator[str]:
        nonlocal size
        for line in islice(source.lines(), dialect.first_line - 1, None):
            size += len(line)
            if size > sources.FIELD_LIMIT:
                raise csv.Error(f"a record of more than {sources.FIELD_LIMIT:,} characters")
            yield line

    # Strict: without it, a stray quote would swallow the rows up to the next quote.
    reader = csv.reader(
        lines(), delimiter=dialect.separator, strict=True, skipinitialspace=dialect.blanks
    )
    while True:
        line, size = reader.line_num + dialect.first_line, 0
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise source.error(line, f"not valid CSV: {error}", CLOSE) from None
        if fields is None:
            return
        if fields:
            yield line, fields
