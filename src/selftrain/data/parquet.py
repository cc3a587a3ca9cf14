"""Rows of a Parquet file, which may come from anyone: a small file can hold large texts.

Columns are read as dictionaries, so a text repeated a million times takes its memory once. Cells
become Python values a batch at a time, where the distinct values of the batch are small; otherwise
one cell after the other, each checked before it is unpacked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from selftrain.data import sources
from selftrain.data.delimited import Row
from selftrain.data.rows import Gap
from selftrain.data.sources import CUT_TEXT, Source
from selftrain.errors import DataError

BATCH = 1024  # rows unpacked together
LARGEST_BATCH = 2**24
"""Bytes of the distinct texts of a column in a batch; above it cells are unpacked one by one."""


def columns_with_rows(source: Source) -> tuple[str, ...]:
    """The names of the columns, from the footer; none where the file has no row."""
    with _refusals(source), _opened(source) as file:
        _check_names(source, file.schema_arrow.names)
        return tuple(file.schema_arrow.names) if file.metadata.num_rows else ()


def rows(source: Source) -> Iterator[tuple[int, Row]]:
    """Each row with its number; a cell is unpacked, and checked, when it is read."""
    with _refusals(source):
        for number, batch in _batches(source, None, Gap()):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for place in range(batch.num_rows):
                yield number + place, _Cells(f"{source.name}, row {number + place}", columns, place)


def cells(
    source: Source, columns: Sequence[str], gap: Gap
) -> Iterator[tuple[int, Sequence[object]]]:
    """The cells of these columns of each row after the gap, with its number.

    No other column is read, and no row group in which all rows are passed.
    """
    with _refusals(source):
        for number, batch in _batches(source, columns, gap):
            lists = [_values(batch[name]) for name in columns]
            if None not in lists:
                yield from gap.after(enumerate(zip(*lists, strict=True), number))
                continue
            unpacked = dict(zip(batch.schema.names, batch.columns, strict=True))
            for place in gap.after(range(batch.num_rows)):
                row = _Cells(f"{source.name}, row {number + place}", unpacked, place)
                yield number + place, [row[name] for name in columns]


@contextmanager
def _opened(source: Source, **settings: Any) -> Iterator[Any]:
    import pyarrow.parquet

    with (
        source.open(by_turns=True) as raw,
        _refusals(source),  # inside of the source, which takes an OSError for one of its own
        pyarrow.parquet.ParquetFile(raw, **settings) as file,
    ):
        yield file


@contextmanager
def _refusals(source: Source) -> Iterator[None]:
    """Turn what pyarrow says of a broken file into one line and a hint."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        # pyarrow has a plain OSError without a number for damaged bytes; others are of the system
        # or of a store, and the source says what they mean.
        damaged = type(error) is OSError and error.errno is None
        if isinstance(error, OSError) and not damaged:
            raise
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{source.name} cannot be read as Parquet: {reason}",
            "some of its bytes are damaged: copy it again, or write it again"
            if damaged
            else "a text file needs a name ending in .csv, .tsv or .jsonl",
        ) from None


def _batches(source: Source, columns: Sequence[str] | None, gap: Gap) -> Iterator[tuple[int, Any]]:
    """The rows in batches, each with the number of its first row; of a gap no whole row group."""
    with _opened(source) as file:
        paths = [column.path for column in file.schema]
    number = 1
    with _opened(source, read_dictionary=paths, buffer_size=2**16) as file:
        for group in range(file.num_row_groups):  # all at once would take the whole file
            size = file.metadata.row_group(group).num_rows
            if size <= gap.rows:
                gap.rows -= size
                number += size
                continue
            for batch in file.iter_batches(
                BATCH, row_groups=[group], columns=columns, use_threads=False
            ):
                yield number, batch
                number += batch.num_rows


def _values(column: Any) -> list[object] | None:
    """A column of a batch as a list in which equal texts are one object; None if it is large."""
    import pyarrow

    if pyarrow.types.is_integer(column.type):
        return list(column.to_pylist())
    if not isinstance(column, pyarrow.DictionaryArray):
        return None
    used = column.indices.dictionary_encode()  # a dictionary may have many more texts than these
    texts = column.dictionary.take(used.dictionary)
    kinds = (pyarrow.types.is_string, pyarrow.types.is_large_string)
    small = min(LARGEST_BATCH, sources.FIELD_LIMIT)
    if not any(is_kind(texts.type) for is_kind in kinds) or texts.nbytes > small:
        return None
    try:
        values = texts.to_pylist()
    except UnicodeDecodeError:  # whoever reads it cell by cell names the row
        return None
    values.append(None)  # where a place is empty
    return [values[-1 if place is None else place] for place in used.indices.to_pylist()]


def _check_names(source: Source, names: Sequence[str]) -> None:
    repeated = next((name for name, times in Counter(names).items() if times > 1), None)
    if repeated is not None:
        raise DataError(
            f"{source.name}: two columns are named `{repeated}`",
            "rename one of them, or leave one out",
        )


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
            if buffer is None or buffer.size <= sources.FIELD_LIMIT:
                return cell.as_py()
        # Bytes that are no text, a date past the calendar, an unknown time zone.
        except (ValueError, ArithmeticError, LookupError) as error:
            reason = str(error).partition("\n")[0]
            raise DataError(
                f"{self.where}: `{name}` cannot be read: {reason}", "write the column as text"
            ) from None
        raise DataError(
            f"{self.where}: `{name}` has more than {sources.FIELD_LIMIT:,} bytes", CUT_TEXT
        )
