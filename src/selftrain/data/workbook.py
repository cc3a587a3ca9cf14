"""Rows of an Excel workbook (.xlsx), by the optional package openpyxl.

A workbook is a zip archive of XML and may come from anyone: one that is large inside is refused
before it is unpacked.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, time
from typing import Any
from xml.etree.ElementTree import ParseError

from selftrain.data.delimited import Row
from selftrain.data.sources import AS_CSV, Source
from selftrain.errors import DataError

LARGEST = 2**29  # bytes of a workbook, unpacked
INSTALL = f"pip install 'selftrain[excel]', or {AS_CSV}"


def sheets(source: Source) -> str:
    """A remark, where a workbook has several sheets and the first is read."""
    with _opened(source) as book:
        names = [sheet.title for sheet in book.worksheets]
    return f"the first of {len(names)} sheets, `{names[0]}`" if len(names) > 1 else ""


def rows(source: Source) -> Iterator[tuple[int, Row]]:
    """The rows of the first sheet by the names in its first row; empty rows are skipped."""
    with _opened(source) as book:
        lines = enumerate(book.worksheets[0].iter_rows(values_only=True), 1)
        filled = ((number, cells) for number, cells in lines if any(c is not None for c in cells))
        number, header = next(filled, (1, ()))
        names = ["" if name is None else str(name).strip() for name in header]
        for name, times in Counter(filter(None, names)).items():
            if times > 1:
                raise source.error(
                    number, f"two columns are named `{name}`", "rename one of them", "row"
                )
        for number, cells in filled:
            values = map(_plain, (*cells, *[None] * (len(names) - len(cells))))
            yield number, dict(zip(names, values, strict=False))


def _plain(cell: object) -> object:
    """A cell as text or a number; a date as it is written in a table."""
    return str(cell) if isinstance(cell, date | time) else cell


@contextmanager
def _opened(source: Source) -> Iterator[Any]:
    """The workbook, with its computed values."""
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise DataError(
            f"{source.name} is an Excel workbook, and openpyxl is not installed", INSTALL
        ) from None
    try:
        with source.open() as file:
            with zipfile.ZipFile(file) as archive:
                size = sum(each.file_size for each in archive.infolist())
            if size > LARGEST:
                raise DataError(
                    f"{source.name} has {size:,} bytes unpacked; expected at most {LARGEST:,}",
                    AS_CSV,
                )
            file.seek(0)
            book = load_workbook(file, read_only=True, data_only=True)
            try:
                if not book.worksheets:
                    raise DataError(f"{source.name} has no sheet with rows", AS_CSV)
                yield book
            finally:
                book.close()
    except (
        zipfile.BadZipFile,
        InvalidFileException,
        ParseError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
    ) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{source.name} cannot be read as an Excel workbook: {reason}", AS_CSV
        ) from None
