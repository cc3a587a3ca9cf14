"""Read rows by column name from CSV, TSV, JSON lines, Parquet, data frames and lists.

Every source becomes ``Records``: it has a name for error messages, its columns are known, and it
can be read again from the start, so a file larger than memory is used like a list of strings.
Text files are decoded line by line, so an error names its line. A file may come from anyone: a
small compressed file can hold a line or a cell larger than memory, and is refused.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import shlex
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from selftrain.data.rows import missing
from selftrain.errors import DataError, closest, listing

Row = Mapping[str, object]
Reader = Callable[[], Iterator[tuple[int, Row]]]

DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON_LINES = (".jsonl", ".ndjson", ".json-lines", ".jsonlines")
PARQUET = (".parquet", ".pq")

FIELD_LIMIT = 16 * 2**20
"""Bytes of one line or one Parquet cell, characters of one CSV record. A longer record nearly
always has a quote that was never closed."""
BATCH = 256  # rows of a Parquet file unpacked together
CUT_TEXT = "cut the text: a model reads no more than its first few hundred words"
ONE_OBJECT = 'write one object on each line: {"text": "…"}'


@dataclass(frozen=True, slots=True)
class Records:
    """Numbered rows of one source, which can be read again and again."""

    name: str
    unit: str
    """What the number of a row counts from 1: ``line`` in a text file, ``row`` elsewhere."""
    read: Reader
    columns: tuple[str, ...]
    """The columns of the first row; later JSON objects may lack some."""

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        return self.read()

    def error(self, number: int, problem: str, hint: str) -> DataError:
        """An error that names the source and the row."""
        return DataError(f"{self.name}, {self.unit} {number}: {problem}", hint)


def records(source: object, tuples: Sequence[tuple[str, ...]] = ()) -> Records:
    """Rows from a path, a data frame, or an iterable of strings, tuples or mappings.

    ``tuples`` names the parts of a tuple, with one entry for each length that is allowed.
    """
    if isinstance(source, str | Path):
        name, unit, read = _file(Path(source))
    elif hasattr(source, "itertuples"):
        name, unit, read = "the data frame", "row", partial(_frame, source)
    elif isinstance(source, Iterable):
        # A generator can be read only once, but training reads a pool in every round.
        items = list(source) if isinstance(source, Iterator) else source
        name, unit, read = "the list", "row", partial(_items, items, tuples)
    else:
        kind = type(source).__name__
        raise DataError(
            f"a source is a {kind}; expected a path, a data frame or a list", 'Path("rows.csv")'
        )
    first = next(read(), None)
    if first is None:
        raise DataError(f"{name} has no rows", "a file names its columns first: text,label")
    return Records(name, unit, read, tuple(first[1]))


# ── files ────────────────────────────────────────────────────────────────────────────────────


def _file(path: Path) -> tuple[str, str, Reader]:
    """The name of a file, what its row numbers count, and a function that reads it."""
    try:
        _check_file(path)
    except OSError as error:  # a folder without permission, or a text in place of a path
        raise DataError(
            f"{str(path)[:80]} cannot be opened: {error.strerror}",
            "a string is a path; texts come as a list",
        ) from None
    suffix = _suffix(path)
    if suffix in DELIMITERS:
        return str(path), "line", partial(_csv, path, DELIMITERS[suffix])
    if suffix in JSON_LINES:
        return str(path), "line", partial(_json_lines, path)
    if path.suffix.lower() in PARQUET:
        return str(path), "row", partial(_parquet, path)
    array = path.suffix.lower() == ".json"
    raise DataError(
        f"{path} ends in `{path.suffix}`; expected .csv, .tsv, .jsonl (each also .gz) or .parquet",
        f"jq -c '.[]' {_quoted(path)} > rows.jsonl" if array else "save it as CSV in UTF-8",
    )


def _check_file(path: Path) -> None:
    if path.is_dir():
        known = (*DELIMITERS, *JSON_LINES, *PARQUET)
        inside = sorted(entry for entry in path.iterdir() if _suffix(entry) in known)
        raise DataError(
            f"{path} is a folder; expected a file",
            f"try {_quoted(inside[0])}" if inside else f"see what it holds: ls {_quoted(path)}",
        )
    if not path.exists():
        folder = path.parent
        near = closest(path.name, [p.name for p in folder.iterdir()] if folder.is_dir() else [])
        raise DataError(
            f"{path} does not exist",
            f"did you mean {_quoted(folder / near)}?" if near else f"see: ls {_quoted(folder)}",
        )


def _suffix(path: Path) -> str:
    """The ending that tells the format, without a ``.gz`` after it."""
    inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return inner.suffix.lower()


def _csv(path: Path, delimiter: str) -> Iterator[tuple[int, Row]]:
    rows = _csv_fields(path, delimiter)
    line, header = next(rows, (1, []))
    names = [name.strip() for name in header]
    repeated = next((name for name, times in Counter(names).items() if name and times > 1), None)
    if repeated is not None:
        raise _at(path, line, f"two columns are named `{repeated}`", "rename one of them")
    for line, fields in rows:
        if len(fields) != len(names):
            raise _at(
                path,
                line,
                f"{len(fields)} fields; the header has {len(names)}",
                'put a text with a comma, tab or line break in quotes: "like, this"',
            )
        yield line, dict(zip(names, fields, strict=True))


def _csv_fields(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The fields of each record and the line it starts on; blank lines are skipped."""
    csv.field_size_limit(FIELD_LIMIT)  # of the whole process: the csv module has no other limit
    size = 0  # characters of the record being read, which may have many lines and fields

    def lines() -> Iterator[str]:
        nonlocal size
        for line in _lines(path):
            size += len(line)
            if size > FIELD_LIMIT:
                raise csv.Error(f"a record of more than {FIELD_LIMIT:,} characters")
            yield line

    # Strict: without it, a stray quote would swallow the rows up to the next quote.
    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    while True:
        line, size = reader.line_num + 1, 0
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise _at(
                path,
                line,
                f"not valid CSV: {error}",
                'close every quote, and double those inside a quoted text: "he said ""no"""',
            ) from None
        if fields is None:
            return
        if fields:
            yield line, fields


def _json_lines(path: Path) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else error
            raise _at(path, number, f"not JSON: {reason}", ONE_OBJECT) from None
        if not isinstance(row, dict):
            kind, hint = f"{row!r:.40}", ONE_OBJECT
            if isinstance(row, list):
                kind, hint = "an array", f"jq -c '.[]' {_quoted(path)} > rows.jsonl"
            raise _at(path, number, f"{kind}; expected an object on each line", hint)
        yield number, row


def _parquet(path: Path) -> Iterator[tuple[int, Row]]:
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            paths = [column.path for column in file.schema]
        # As dictionaries: a text repeated a million times then takes its memory once.
        with pyarrow.parquet.ParquetFile(path, read_dictionary=paths, buffer_size=2**16) as file:
            for group in range(file.num_row_groups):  # all at once would take the whole file
                for batch in file.iter_batches(BATCH, row_groups=[group], use_threads=False):
                    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                    for place in range(batch.num_rows):
                        number += 1
                        yield number, _Cells(f"{path}, row {number}", columns, place)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{path} cannot be read as Parquet: {reason}",
            "a text file needs a name ending in .csv, .tsv or .jsonl",
        ) from None


@dataclass(frozen=True, slots=True, eq=False)
class _Cells(Mapping[str, object]):
    """A row of a Parquet file; each cell is unpacked, and checked, when it is read."""

    where: str
    columns: Mapping[str, Any]
    place: int

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> object:
        column = self.columns[name]
        try:
            cell = column[self.place]
            cell = cell.value if hasattr(cell, "dictionary") else cell
            buffer = cell.as_buffer() if hasattr(cell, "as_buffer") else None
            if buffer is None or buffer.size <= FIELD_LIMIT:
                return cell.as_py()
        # Bytes that are no text, a date past the calendar, an unknown time zone.
        except (ValueError, ArithmeticError, LookupError) as error:
            reason = str(error).partition("\n")[0]
            raise DataError(
                f"{self.where}: `{name}` cannot be read: {reason}", "write the column as text"
            ) from None
        raise DataError(f"{self.where}: `{name}` has more than {FIELD_LIMIT:,} bytes", CUT_TEXT)


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text file, gzipped or not, without the byte order mark."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rb") as file:
            for number, raw in enumerate(iter(partial(file.readline, FIELD_LIMIT + 1), b""), 1):
                if len(raw) > FIELD_LIMIT:
                    raise _at(path, number, f"more than {FIELD_LIMIT:,} bytes", CUT_TEXT)
                line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
                yield _decoded(line, path, number)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path} is not a whole gzip file: {error}", f"see what it is: file {_quoted(path)}"
        ) from None
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}", f"look at its rights: ls -l {_quoted(path)}"
        ) from None


def _decoded(raw: bytes, path: Path, number: int) -> str:
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte, column = raw[error.start], error.start + 1
        raise _at(
            path, number, f"byte 0x{byte:02x} at {column} is not UTF-8", _convert(path, raw)
        ) from None
    if "\0" in line:
        raise _at(
            path, number, "a NUL byte; expected text in UTF-8", _convert(path, codecs.BOM_UTF16_LE)
        )
    return line


def _convert(path: Path, raw: bytes) -> str:
    """The command that makes a file readable, guessed from its first bytes."""
    if raw.startswith(b"\x1f\x8b"):
        return f"it is gzipped: mv {_quoted(path)} {_quoted(f'{path}.gz')}"
    utf16 = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "UTF-16" if utf16 else "WINDOWS-1252"
    return f"iconv -f {encoding} -t UTF-8 {_quoted(path)} > {_quoted(f'utf8-{path.name}')}"


def _quoted(path: Path | str) -> str:
    """A path as it is typed in a shell, in quotes where it needs them."""
    return shlex.quote(str(path))


def _at(path: Path, line: int, problem: str, hint: str) -> DataError:
    return DataError(f"{path}, line {line}: {problem}", hint)


# ── data frames and lists ────────────────────────────────────────────────────────────────────


def _frame(frame: Any) -> Iterator[tuple[int, Row]]:
    """Rows of a pandas data frame; every kind of missing value becomes None."""
    names = [str(column) for column in frame.columns]
    if len(set(names)) < len(names):
        raise DataError(
            f"the data frame has two columns of one name: {listing(names)}",
            "frame.loc[:, ~frame.columns.duplicated()]",
        )
    cells = frame.astype(object).where(frame.notna(), None)
    for number, row in enumerate(cells.itertuples(index=False, name=None), 1):
        yield number, dict(zip(names, row, strict=True))


def _items(items: Iterable[object], tuples: Sequence[tuple[str, ...]]) -> Iterator[tuple[int, Row]]:
    names_by_length = {len(names): names for names in tuples}
    for number, item in enumerate(items, 1):
        if isinstance(item, str) or missing(item):
            yield number, {"text": item}
        elif isinstance(item, Mapping):
            yield number, item
        elif isinstance(item, tuple | list) and len(item) in names_by_length:
            yield number, dict(zip(names_by_length[len(item)], item, strict=True))
        else:
            expected = ["strings", *(f"({', '.join(names)})" for names in tuples), "dicts"]
            raise DataError(
                f"the list, row {number}: {type(item).__name__} {str(item)[:40]!r}; "
                f"expected {' or '.join(expected)}",
                '[{"text": "…"}, …]',
            )
