"""Read rows by column name from CSV, TSV, JSON, Parquet, Excel, data frames and lists.

Every source becomes ``Records``: it has a name for error messages, its columns are known, and it
can be read again from the start, so a file larger than memory is used like a list of strings.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from selftrain.data import delimited, parquet, sources, workbook
from selftrain.data.delimited import Row
from selftrain.data.places import Listing, Place, listed
from selftrain.data.rows import Gap, missing
from selftrain.data.sources import Source, quoted, source_of
from selftrain.errors import DataError, closest, listing

Reader = Callable[[], Iterator[tuple[int, Row]]]
Cells = Callable[[Sequence[str], Gap], Iterator[tuple[int, Sequence[object]]]]

DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON_LINES = (".jsonl", ".ndjson", ".json-lines", ".jsonlines")
PARQUET = (".parquet", ".pq")
FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "xlsx")
"""The formats that can be named; otherwise the ending of a name gives it."""

NO_ROWS = "a file names its columns first: text,label"
ONE_OBJECT = 'write one object on each line: {"text": "…"}'


@dataclass(frozen=True, slots=True)
class Records:
    """Numbered rows of one file or list, which can be read again and again."""

    name: str
    unit: str
    """What the number of a row counts from 1: ``line`` in a text file, ``row`` elsewhere."""
    read: Reader
    columns: tuple[str, ...] = ()
    """The columns of the first row; later JSON objects may lack some."""
    remark: str = ""
    """What was found out about the file, and is worth saying."""
    uneven: bool = False
    """Whether each row has columns of its own, as in JSON."""
    cells: Cells | None = None
    """Reads the cells of some columns alone, and passes a gap, of a file where that is faster."""

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        return self.read()

    def error(self, number: int, problem: str, hint: str) -> DataError:
        """An error that names the source and the row."""
        return DataError(f"{self.name}, {self.unit} {number}: {problem}", hint)


@dataclass(frozen=True, slots=True)
class Parts:
    """The rows of one source: of a file, or of all files of a folder."""

    name: str
    files: tuple[Records, ...]
    """At least one; all have the same columns."""
    remark: str = ""

    @property
    def first(self) -> Records:
        """The file whose columns are those of all."""
        return self.files[0]


def parts(source: object, tuples: Sequence[tuple[str, ...]] = (), form: str | None = None) -> Parts:
    """The rows of a source that may be a folder or a glob; see ``records``.

    Files without a row are left out: programs that write in parts leave empty ones.
    """
    if not isinstance(source, str | Path | Place):
        only = records(source, tuples)
        return Parts(only.name, (only,), only.remark)
    place = Place.of(source)
    found = listed_files(place, form)
    if not found.several:
        only = records(place, tuples, form)
        return Parts(only.name, (only,), only.remark)
    opened = [_with_columns(_file(file, form)) for file in found.files]
    filled = tuple(each for each in opened if each is not None)
    if not filled:
        raise DataError(f"{place}: none of its files has a row", NO_ROWS)
    for other in filled[1:]:
        _check_same_columns(filled[0], other)
    return Parts(f"{place} ({len(opened)} files)", filled, _ignored(found))


def listed_files(place: Place, form: str | None) -> Listing:
    """The files of a place that are read: those whose names say a format, or have no ending."""
    return listed(place, partial(_is_read, form=form))


def _is_read(name: str, form: str | None) -> bool:
    """Whether a file of a folder is one of its parts."""
    path = Path(name)
    return format_by_name(path) is not None or (form is not None and not path.suffix)


def _ignored(found: Listing) -> str:
    names = found.ignored
    return f"other files are ignored: {listing(names, 3)}" if names else ""


def _check_same_columns(first: Records, other: Records) -> None:
    """Raise where a part of a source has other columns; rows of JSON are checked one by one."""
    more = [name for name in other.columns if name not in first.columns]
    lacks = [name for name in first.columns if name not in other.columns]
    if (more or lacks) and not (first.uneven or other.uneven):
        what = f"it lacks {listing(lacks)}" if lacks else f"it also has {listing(more)}"
        raise DataError(
            f"{other.name} has other columns than {first.name}: {what}",
            "files of one folder have the same columns: move it, or give it by itself",
        )


def records(
    source: object, tuples: Sequence[tuple[str, ...]] = (), form: str | None = None
) -> Records:
    """Rows from a single file, a data frame, or an iterable of strings, tuples or mappings.

    ``tuples`` names the parts of a tuple, with one entry for each length that is allowed. ``form``
    is the format of a file whose name does not say it.
    """
    if isinstance(source, str | Path | Place):
        found = _file(Place.of(source), form)
    elif hasattr(source, "itertuples"):
        found = Records("the data frame", "row", partial(_frame, source))
    elif isinstance(source, Iterable):
        # A generator can be read only once, but training reads a pool in every round.
        items = list(source) if isinstance(source, Iterator) else source
        found = Records("the list", "row", partial(_items, items, tuples))
    else:
        kind = type(source).__name__
        raise DataError(
            f"a source is a {kind}; expected a path, a data frame or a list", 'Path("rows.csv")'
        )
    opened = _with_columns(found)
    if opened is None:
        raise DataError(f"{found.name} has no rows", NO_ROWS)
    return opened


# ── files ────────────────────────────────────────────────────────────────────────────────────


def _file(place: Place, form: str | None) -> Records:
    """The rows of a single file, before the first is read."""
    source, path = source_of(place), Path(place.name) if place.is_address else place.path
    form = _format(place, source, form)
    if form == "parquet":
        names = parquet.columns_with_rows(source)
        read, cells = partial(parquet.rows, source), partial(parquet.cells, source)
        return Records(source.name, "row", read, names, cells=cells)
    if form == "xlsx":
        remark = workbook.sheets(source)
        return Records(source.name, "row", partial(workbook.rows, source), remark=remark)
    source.check_text()
    if form == "json" and source.start().startswith(b"["):
        return Records(source.name, "row", partial(_json_array, source), uneven=True)
    if form in ("json", "jsonl"):
        return Records(source.name, "line", partial(_json_lines, source), uneven=True)
    if source.start().startswith((b'{"', b"[{")):
        raise DataError(
            f"{source.name} holds JSON, whatever its name says",
            f"give it the ending it needs: mv {quoted(path)} {quoted(path.with_suffix('.jsonl'))}",
        )
    usual = DELIMITERS[f".{form}"]
    dialect = delimited.dialect_of(source, usual)
    other = dialect.separator != usual
    remark = f"fields separated by {delimited.SPOKEN.get(dialect.separator, dialect.separator)}"
    return Records(
        source.name,
        "line",
        partial(delimited.rows, source, dialect),
        remark=remark if other else "",
        cells=partial(delimited.cells, source, dialect),
    )


def _with_columns(found: Records) -> Records | None:
    """The same with the columns of the first row; None where there is no row."""
    if found.columns:
        return found
    first = next(found.read(), None)
    return None if first is None else replace(found, columns=tuple(first[1]))


def _format(place: Place, source: Source, form: str | None) -> str:
    """The format that the name of a file says, else the given one; a pipe is CSV without one."""
    if form is not None and form not in FORMATS:
        near = closest(form, FORMATS) or "csv"
        raise DataError(
            f"--format is `{form}`; expected one of {', '.join(FORMATS)}", f"--format {near}"
        )
    path = Path(place.name)
    named = format_by_name(path)
    if named is None and form is None and source.copy is None:
        raise DataError(
            f"{place} ends in `{path.suffix}`; expected .csv, .tsv, .jsonl, .json (each also .gz), "
            ".parquet or .xlsx",
            sources.AS_CSV
            if _suffix(path) in (".xls", ".ods", ".numbers", ".xlsb")
            else "say what it holds: --format csv",
        )
    return named or form or "csv"


def format_by_name(path: Path) -> str | None:
    """The format that the ending of a name says; None where it says none."""
    suffix = _suffix(path)
    if suffix in JSON_LINES or suffix in PARQUET:
        return "jsonl" if suffix in JSON_LINES else "parquet"
    if suffix in (".xlsx", ".xlsm"):
        return "xlsx"
    return suffix[1:] if suffix in (*DELIMITERS, ".json") else None


def _suffix(path: Path) -> str:
    """The ending that tells the format, without a ``.gz`` after it."""
    inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return inner.suffix.lower()


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────


def _json_lines(source: Source) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(source.lines(), 1):
        if not line.strip():
            continue
        row = _parsed(source, number, line)
        if not isinstance(row, dict):
            kind, hint = f"{row!r:.40}", ONE_OBJECT
            if isinstance(row, list):
                kind, hint = "an array", "an array is read from a name ending in .json"
            raise source.error(number, f"{kind}; expected an object on each line", hint)
        yield number, row


def _parsed(source: Source, number: int, line: str) -> Any:
    try:
        return json.loads(line, object_pairs_hook=_one_of_each)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else error
        spread = len(line) < 1_000 and line.rstrip().endswith(("{", "[", ","))
        hint = f"jq -c . {quoted(source.path)} > rows.jsonl" if spread else ONE_OBJECT
        raise source.error(number, f"not JSON: {reason}", hint) from None


def _one_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names all differ: of two entries of one name, one would be lost."""
    row = dict(pairs)
    if len(row) < len(pairs):
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"two entries are named `{name}`")
    return row


def _json_array(source: Source) -> Iterator[tuple[int, Row]]:
    """The objects of an array, one after the other, so that a long one needs no memory."""
    text = _Text(source)
    text.take("[", 1)
    number = 0
    while text.sign() != "]" or number:
        if number and text.take(",]", number) == "]":
            break
        number += 1
        yield number, text.object(number)
    # What follows the array is not read: nothing of a row can be in it.


class _Text:
    """The text of a JSON array, read as far as it is needed."""

    def __init__(self, source: Source) -> None:
        self.source, self.parts, self.text = source, source.parts(), ""
        self.decoder = json.JSONDecoder(object_pairs_hook=_one_of_each)

    def sign(self) -> str:
        """The next character that is no blank; empty at the end of the file."""
        self.text = self.text.lstrip()
        while not self.text and (part := next(self.parts, "")):
            self.text = part.lstrip()
        return self.text[:1]

    def take(self, signs: str, number: int) -> str:
        """Read one of these characters; the number of a row is for an error."""
        sign = self.sign()
        if not sign or sign not in signs:
            problem = f"{self.text[:40]!r}; expected `{signs[0]}`" if sign else "the array is cut"
            raise self.source.error(number, problem, '[{"text": "…"}, …]', "row")
        self.text = self.text[1:]
        return sign

    def object(self, number: int) -> Row:
        """Read one object, the row of that number."""
        if self.sign() != "{":
            self.take("{", number)
        while True:
            try:
                row, end = self.decoder.raw_decode(self.text)
            except (ValueError, RecursionError) as error:
                broken = not isinstance(error, json.JSONDecodeError)
                if broken or len(self.text) > sources.FIELD_LIMIT or not self._longer():
                    reason = str(error).partition(":")[0]
                    raise self.source.error(
                        number, f"not JSON: {reason}", '[{"text": "…"}, …]', "row"
                    ) from None
                continue
            self.text = self.text[end:]
            return cast(Row, row)

    def _longer(self) -> bool:
        """Read on until the text is twice as long: parsed again and again, it takes no more."""
        parts, wanted = [self.text], 2 * len(self.text)
        while wanted > 0 and (part := next(self.parts, "")):
            parts.append(part)
            wanted -= len(part)
        self.text = "".join(parts)
        return len(parts) > 1


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
