"""Read texts from CSV, TSV or JSON lines, and write answers: by the same names as selftrain."""

from __future__ import annotations

import csv
import difflib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal, TextIO

from selftrain_lite.errors import LiteError, brief, printable

TEXT_NAMES = ("text", "sentence", "review", "content", "comment", "message", "tweet", "document")
PAIR_NAMES = (
    ("text", "pair"),
    ("text_a", "text_b"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
)
ID_NAMES = ("id", "uid", "guid")
USUAL = {*TEXT_NAMES, *ID_NAMES, *(name for names in PAIR_NAMES for name in names)}
SEPARATORS = (",", ";", "\t", "|")
ENDINGS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
FORMATS = ("csv", "tsv", "jsonl")
LONGEST_LINE = 16 * 2**20  # characters: a longer one has a quote that was never closed
SHOWN_COLUMNS = 8
STDIN = "-"

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns; None means: find it by the usual names."""

    text: str | None = None
    pair: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """The texts of a file, row by row."""

    name: str
    id: str | None
    """The column that names a row; None where rows are counted."""
    rows: Iterator[tuple[str, str | tuple[str, str]]]
    """The id of each row, and its text or its pair of texts."""


@contextmanager
def reading(path: str, form: str | None, columns: Columns, *, pair: bool) -> Iterator[Reader]:
    """The texts of a file, or of standard input; columns are found before the first row is read."""
    form = _format(path, form)
    with _opened(path) as file:
        records = _json_lines(path, file) if form == "jsonl" else _delimited(path, file, form)
        first = next(records, None)
        if first is None:
            raise LiteError(f"{path} has no rows", "a file names its columns first: text")
        text, second = _text_columns(path, list(first[1]), columns, pair=pair)
        id = _column(path, list(first[1]), columns.id, ID_NAMES, "--id")
        yield Reader(path, id, _texts(path, chain([first], records), (text, second), id))


def _format(path: str, form: str | None) -> str:
    named = ENDINGS.get(Path(path).suffix.lower())
    if named is None and form is None and path != STDIN:
        raise LiteError(
            f"{path} ends in `{Path(path).suffix}`; expected .csv, .tsv or .jsonl",
            "say what it holds: --format csv; `selftrain predict` reads more formats",
        )
    return named or form or "csv"


@contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    try:
        if path == STDIN:
            sys.stdin.reconfigure(encoding="utf-8-sig", newline="")  # type: ignore[union-attr]
            yield sys.stdin
        else:
            with Path(path).open(encoding="utf-8-sig", newline="") as file:
                yield file
    except UnicodeDecodeError:
        raise LiteError(f"{path} is not UTF-8", "save it again as UTF-8") from None
    except OSError as error:
        if error.filename is None or str(error.filename) != path:
            raise
        raise LiteError(f"cannot read {path}: {error.strerror}", "check the name") from None


def _lines(path: str, file: TextIO) -> Iterator[str]:
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise LiteError(f"{path} has a line of more than {LONGEST_LINE:,} characters", CLOSE)
        yield line


CLOSE = 'close every quote, and double those inside a quoted text: "he said ""no"""'


def _delimited(path: str, file: TextIO, form: str) -> Iterator[tuple[int, Record]]:
    """Rows by the names of the header, with the line each ends on."""
    csv.field_size_limit(LONGEST_LINE)
    lines = _lines(path, file)
    header = next((line for line in lines if line.strip()), "")
    usual = "\t" if form == "tsv" else ","
    stated = header.strip().strip('"').lower()
    if stated.startswith("sep=") and len(stated) == 5:
        usual, header = stated[-1], next(lines, "")
        separator = usual
    else:
        separator = _separator(header, usual)
    # Between tabs a text may start with a quote that is nothing but a quote.
    quoting: Literal[0, 3] = (
        csv.QUOTE_NONE if separator == "\t" and '"' not in header else csv.QUOTE_MINIMAL
    )
    table = csv.reader(chain([header], lines), delimiter=separator, strict=True, quoting=quoting)
    try:
        names = [name.strip() for name in next(table, [])]
        if len(set(names)) < len(names):
            raise LiteError(f"{path} has two columns of one name", "rename one of them")
        for fields in table:
            if fields and len(fields) != len(names):
                raise LiteError(
                    f"{path}, line {table.line_num}: {len(fields)} fields; "
                    f"the header has {len(names)}",
                    "put a text with a separator or a line break in quotes",
                )
            if fields:
                yield table.line_num, dict(zip(names, fields, strict=True))
    except csv.Error as error:
        raise LiteError(f"{path}, line {table.line_num}: not valid CSV: {error}", CLOSE) from None


def _separator(header: str, usual: str) -> str:
    """The separator with which the header names a usual column; else the one of the format."""
    for each in dict.fromkeys((usual, *SEPARATORS)):
        names = [name.strip().strip('"').strip().casefold() for name in header.split(each)]
        if len(names) > 1 and USUAL.intersection(names):
            return each
    return usual


def _json_lines(path: str, file: TextIO) -> Iterator[tuple[int, Record]]:
    for number, line in enumerate(_lines(path, file), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            problem = f"{path}, line {number}: not JSON: {error}"
            raise LiteError(problem, 'write one object on each line: {"text": "…"}') from None
        if not isinstance(record, dict):
            raise LiteError(
                f"{path}, line {number}: {brief(line.strip()[:40])} is no object",
                'write one object on each line: {"text": "…"}',
            )
        yield number, record


# ── columns ──────────────────────────────────────────────────────────────────────────────────


def _text_columns(
    path: str, names: Sequence[str], columns: Columns, *, pair: bool
) -> tuple[str, str | None]:
    if not pair:
        if columns.pair is not None:
            raise LiteError(
                "the model reads single texts, and --pair names a second one", "leave out --pair"
            )
        text = _column(path, names, columns.text, TEXT_NAMES, "--text")
        return text or _missing(path, names, "text", TEXT_NAMES, "--text"), None
    second = _column(path, names, columns.pair, (), "--pair")
    if columns.text is not None and second is not None:
        return _column(path, names, columns.text, (), "--text") or "", second
    for usual in PAIR_NAMES:
        a, b = (_column(path, names, None, (name,), "") for name in usual)
        if a is not None and b is not None and second in (None, b):
            return columns.text or a, b
    if second is None:
        raise LiteError(
            f"{path} has no pair of texts, and the model reads pairs; it has {listing(names)}",
            "name both columns: --text COLUMN --pair COLUMN",
        )
    text = _column(path, names, columns.text, TEXT_NAMES, "--text")
    return text or _missing(path, names, "text", TEXT_NAMES, "--text"), second


def _column(
    path: str, names: Sequence[str], wanted: str | None, usual: Sequence[str], flag: str
) -> str | None:
    """The column of the given name, else of a usual name; None where there is none."""
    if wanted is None:
        by_fold = {name.casefold(): name for name in reversed(names)}
        return next((by_fold[name] for name in usual if name in by_fold), None)
    if wanted in names:
        return wanted
    near = difflib.get_close_matches(wanted, names, n=1)
    raise LiteError(
        f"{path} has no column `{wanted}`; it has {listing(names)}",
        f"did you mean {flag} {near[0]}?" if near else f"name one of these: {flag} COLUMN",
    )


def _missing(path: str, names: Sequence[str], role: str, usual: Sequence[str], flag: str) -> str:
    raise LiteError(
        f"{path} has no {role} column (one of {', '.join(usual)}); it has {listing(names)}",
        f"name the column: {flag} COLUMN (the first line of a file names its columns)",
    )


def listing(names: Sequence[str]) -> str:
    """Names for a message, the first eight of them."""
    shown = ", ".join(f"`{name[:40]}`" for name in names[:SHOWN_COLUMNS])
    more = len(names) - SHOWN_COLUMNS
    return f"{shown} and {more} more" if more > 0 else shown


def _texts(
    path: str,
    records: Iterable[tuple[int, Record]],
    columns: tuple[str, str | None],
    id: str | None,
) -> Iterator[tuple[str, str | tuple[str, str]]]:
    for count, (line, record) in enumerate(records, 1):
        parts = [_cell(path, line, record, column) for column in columns if column is not None]
        name = str(record.get(id, "") if id is not None else count)
        yield name, parts[0] if len(parts) == 1 else (parts[0], parts[1])


def _cell(path: str, line: int, record: Record, column: str) -> str:
    if column not in record:
        raise LiteError(
            f"{path}, line {line}: no `{column}`; it has {listing(list(record))}",
            "every row has the same columns",
        )
    value = record[column]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise LiteError(f"{path}, line {line}: {value!r:.40} is no text", "--text COLUMN")
    return value


# ── answers ──────────────────────────────────────────────────────────────────────────────────


def check_target(out: Path, *inputs: Path) -> str:
    """The format of a file to write; an error where it is not known or where it is an input."""
    form = ENDINGS.get(out.suffix.lower())
    if form is None:
        raise LiteError(
            f"{out} ends in `{out.suffix}`; expected .csv, .tsv or .jsonl", "-o answers.csv"
        )
    if not out.parent.is_dir():
        raise LiteError(f"cannot write {out}: there is no folder {out.parent}", "make it first")
    target = out.resolve()
    for path in inputs:
        if target.is_relative_to(path.resolve()):
            raise LiteError(f"{out} is read by this command", "choose another name: -o NEW")
    if out.is_dir():
        raise LiteError(f"{out} is a folder; expected a file", f"-o {out / 'answers.csv'}")
    return form


@contextmanager
def replacing(out: Path) -> Iterator[TextIO]:
    """A file to write that takes its name when it is complete."""
    target = out.resolve()
    temporary = target.with_name(f".{target.name}.{token_hex(8)}")
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise LiteError(f"cannot write {out}: {error.strerror}", "choose another place") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def write(file: TextIO, names: Sequence[str], rows: Iterable[Sequence[object]], form: str) -> int:
    """Write rows as CSV, TSV or JSON lines, and count them."""
    if form == "jsonl":
        lines = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in rows)
        return sum(bool(file.write(f"{line}\n")) for line in lines)
    terminal = file.isatty()
    table = csv.writer(
        file,
        delimiter="\t" if form == "tsv" else ",",
        lineterminator="\n",
        quoting=csv.QUOTE_NONNUMERIC,
    )
    shown = ([printable(c) if terminal and isinstance(c, str) else c for c in row] for row in rows)
    table.writerow(names)
    return sum(bool(table.writerow(row)) for row in shown)


def chunks(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Some rows at a time, so that a long file takes no more memory than a short one."""
    rows = iter(rows)
    while chunk := list(islice(rows, size)):
        yield chunk
