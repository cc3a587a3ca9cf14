"""Read texts from CSV, TSV or JSON lines, and write answers: as selftrain reads and names them.

Ids and texts of a row are those of ``selftrain predict``. Tests compare both, file for file.
"""

from __future__ import annotations

import csv
import difflib
import json
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any, TextIO

import numpy as np

from selftrain_lite import delimited
from selftrain_lite.errors import LiteError, brief, printable
from selftrain_lite.names import ID_NAMES, PAIR_NAMES, TEXT_NAMES
from selftrain_lite.sources import STDIN, Source, opened

ENDINGS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
FORMATS = ("csv", "tsv", "jsonl")
SHOWN_COLUMNS = 8
ONE_OBJECT = 'write one object on each line: {"text": "…"}'

Record = dict[str, Any]
Records = Iterator[tuple[int, Record]]
"""The line that a row starts on, and its cells by column."""
Text = str | tuple[str, str]
Rows = Iterator[tuple[str, Text]]
"""The id of each row, and its text or its pair of texts."""


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
    rows: Rows


@contextmanager
def reading(path: str, form: str | None, columns: Columns, *, pair: bool) -> Iterator[Reader]:
    """The texts of a file, or of standard input; columns are found before the first row is read."""
    form = _format(path, form)
    with opened(path) as source:
        read = _records_of(source, form)
        first = next(read(), None)
        if first is None:
            raise LiteError(f"{path} has no rows", "a file names its columns first: text")
        names = list(first[1])
        sides = _text_columns(path, names, columns, pair=pair)
        id = _column(path, names, columns.id, ID_NAMES, "--id")
        if id is not None:
            twice = _id_of_two_texts(lambda: _rows(source, read(), sides, id))
            if twice is not None and columns.id is not None:
                raise LiteError(
                    f"{path}: the id `{brief(twice)}` names two texts; ids must be unique",
                    "make them unique, or leave out --id: rows are then counted",
                )
            id = id if twice is None else None
        yield Reader(path, id, _rows(source, read(), sides, id))


def _records_of(source: Source, form: str) -> Callable[[], Records]:
    """Reads the rows of a file, again and again."""
    if form == "jsonl":
        return partial(_json_lines, source)
    dialect = delimited.dialect_of(source, "\t" if form == "tsv" else ",")
    return partial(delimited.rows, source, dialect)


def _format(path: str, form: str | None) -> str:
    named = ENDINGS.get(Path(path).suffix.lower())
    if named is None and form is None and path != STDIN:
        raise LiteError(
            f"{path} ends in `{Path(path).suffix}`; expected .csv, .tsv or .jsonl",
            "say what it holds: --format csv; `selftrain predict` reads more formats",
        )
    return named or form or "csv"


def _json_lines(source: Source) -> Records:
    for number, line in enumerate(source.lines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, object_pairs_hook=_one_of_each)
        except (ValueError, RecursionError) as error:
            raise source.error(number, f"not JSON: {error}", ONE_OBJECT) from None
        if not isinstance(record, dict):
            raise source.error(number, f"{brief(line.strip()[:40])} is no object", ONE_OBJECT)
        yield number, record


def _one_of_each(pairs: list[tuple[str, Any]]) -> Record:
    """An object whose names all differ: of two entries of one name, one would be lost."""
    record = dict(pairs)
    if len(record) < len(pairs):
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"two entries are named `{name}`")
    return record


# ── columns ──────────────────────────────────────────────────────────────────────────────────


def _text_columns(
    path: str, names: Sequence[str], columns: Columns, *, pair: bool
) -> tuple[str, ...]:
    """The column of the text, or the two of a pair of texts."""
    second = _column(path, names, columns.pair, (), "--pair")
    text = _column(path, names, columns.text, (), "--text")
    if text is None:
        for usual in PAIR_NAMES:
            a, b = (_column(path, names, None, (name,), "") for name in usual)
            if a is not None and b is not None and second in (None, b):
                text, second = a, b
                break
    if pair and second is None:
        raise LiteError(
            f"{path} has no pair of texts, and the model reads pairs; it has {listing(names)}",
            "name both columns: --text COLUMN --pair COLUMN",
        )
    if second is not None and not pair:
        raise LiteError(
            f"the model reads single texts, and `{brief(second)}` of {path} is the second of a "
            "pair",
            "name the column of the text alone: --text COLUMN",
        )
    text = text or _column(path, names, None, TEXT_NAMES, "--text")
    if text is None:
        raise LiteError(
            f"{path} has no text column (one of {', '.join(TEXT_NAMES)}); it has {listing(names)}",
            "name the column: --text COLUMN (the first line of a file names its columns)",
        )
    return (text,) if second is None else (text, second)


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


def listing(names: Sequence[str]) -> str:
    """Names for a message, the first eight of them."""
    shown = ", ".join(f"`{name[:40]}`" for name in names[:SHOWN_COLUMNS])
    more = len(names) - SHOWN_COLUMNS
    return f"{shown} and {more} more" if more > 0 else shown


# ── cells ────────────────────────────────────────────────────────────────────────────────────


def _rows(source: Source, records: Records, sides: Sequence[str], id: str | None) -> Rows:
    """Each row by its id, or by its number where no column names it."""
    for count, (line, record) in enumerate(records, 1):
        parts = [_text(source, line, record, column) for column in sides]
        name = str(count)
        if id is not None:
            name = _valid(source, line, id, name_of(record.get(id))) or uid_of(*parts)
        yield name, parts[0] if len(parts) == 1 else (parts[0], parts[1])


def _text(source: Source, line: int, record: Record, column: str) -> str:
    if column not in record:
        problem = f"no `{column}`; it has {listing(list(record))}"
        raise source.error(line, problem, "every row has the same columns")
    value = record[column]
    if _missing(value):
        return ""
    if not isinstance(value, str):
        raise source.error(line, f"{value!r:.40} is no text", "--text COLUMN")
    return _valid(source, line, column, value)


def _valid(source: Source, line: int, column: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can hold half a character, which no file can
        problem = f"`{column}` holds half a character: {value!a:.40}"
        raise source.error(line, problem, "delete the row") from None
    return value


def name_of(value: Any) -> str:
    """An id as a string; 1.0, which pandas makes of 1 beside a gap, is 1 again.

    >>> name_of(1.0), name_of(" a-1 "), name_of(None)
    ('1', 'a-1', '')
    """
    if _missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _missing(value: Any) -> bool:
    return value is None or bool(value != value)  # noqa: PLR0124  (NaN is not itself)


def uid_of(text: str, pair: str | None = None) -> str:
    """The name of a row without an id where others have one: a hash of its text and pair."""
    content = text if pair is None else f"{text}\x1f{pair}"
    return blake2b(content.encode(), digest_size=10).hexdigest()


def _id_of_two_texts(read: Callable[[], Rows]) -> str | None:
    """An id that names two texts: then a column that was only guessed holds no ids."""
    # 16 bytes a row. Two ids of a million have the same hash with a chance of one in 37 million.
    names, texts = array("q"), array("q")
    for name, text in read():
        if name != (uid_of(text) if isinstance(text, str) else uid_of(*text)):
            names.append(hash(name))
            texts.append(hash(text))
    hashes, contents = np.array(names, np.int64), np.array(texts, np.int64)
    order = np.lexsort((contents, hashes))
    hashes, contents = hashes[order], contents[order]
    twice = hashes[1:][(hashes[1:] == hashes[:-1]) & (contents[1:] != contents[:-1])]
    return (
        next((name for name, _ in read() if hash(name) == twice[0]), None) if len(twice) else None
    )


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
