"""Tables of a run folder, which are Parquet from anyone: a small file can hold large texts.

The unpacked size that a file claims is not trusted. The limits are these: only the packed bytes
are read, snappy unpacks them to about twenty times their size, and a repeated text is stored once
in each batch. Whoever reads a table counts the bytes of the texts that its rows use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selftrain.disk import damaged, plain_file

CODECS = ("SNAPPY", "UNCOMPRESSED")  # a run writes the first; others unpack a byte to thousands


@contextmanager
def open_table(path: Path, schema: Any, excess: Callable[[Any], str]) -> Iterator[Any]:
    """A table with these columns, its texts as dictionaries; what is wrong with it is one line.

    ``excess`` says of the footer why the table is too large to be read.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        with plain_file(path).open("rb") as raw, pyarrow.parquet.ParquetFile(raw) as file:
            if not file.schema_arrow.equals(schema):
                raise damaged(path, f"has the columns {file.schema_arrow.names}")
            if problem := excess(file.metadata):
                raise damaged(path, problem)
        texts = [each.name for each in schema if each.type in (pyarrow.string(), pyarrow.binary())]
        with (
            path.open("rb") as raw,
            pyarrow.parquet.ParquetFile(raw, read_dictionary=texts, buffer_size=2**16) as file,
        ):
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(path, f"is not Parquet: {error}".partition("\n")[0]) from None


def groups_of(about: Any) -> list[Any]:
    """The row groups that a footer describes."""
    return [about.row_group(place) for place in range(about.num_row_groups)]


def batches_of(file: Any, rows: int) -> Iterator[Any]:
    """The rows of a table, so many at a time."""
    for group in range(file.num_row_groups):  # else pyarrow loads the whole file
        yield from file.iter_batches(rows, row_groups=[group], use_threads=False)


def excess_of(about: Any, most: int, *, width: int = 1, at_once: bool) -> str:
    """Why a table takes too much memory; empty if it does not.

    A row has at most ``width`` numbers in a column. At most so many bytes may be unpacked: of all
    groups ``at_once``, or else of each one.
    """
    groups = groups_of(about)
    columns = [[group.column(place) for place in range(group.num_columns)] for group in groups]
    strange = {each.compression for group in columns for each in group}.difference(CODECS)
    if strange:
        return f"is packed with {min(strange)}"
    for group, parts in zip(groups, columns, strict=True):
        longest = max(each.num_values for each in parts)
        if longest > width * group.num_rows:  # a number repeated a million times takes two bytes
            return f"has {longest:,} numbers in {group.num_rows:,} rows of a column"
    unpacked = [group.total_byte_size for group in groups]
    packed = [sum(each.total_compressed_size for each in parts) for parts in columns]
    for sizes, state in ((unpacked, "unpacked"), (packed, "packed")):
        size = sum(sizes) if at_once else max(sizes, default=0)
        if size > most:
            return f"has {size:,} bytes {state}"
    return ""


def values(column: Any) -> list[Any]:
    """A column as a list in which equal texts are one object, so that copies take no memory."""
    if not hasattr(column, "dictionary"):
        return list(column.to_pylist())
    used, places = used_texts(column)
    texts = used.to_pylist()
    return [texts[place] for place in places.to_pylist()]


def used_texts(column: Any) -> tuple[Any, Any]:
    """The distinct texts of a column, and for each row the place of its text among them.

    A dictionary may have many more texts than the rows of this column use.
    """
    encoded = column.indices.dictionary_encode()
    return column.dictionary.take(encoded.dictionary), encoded.indices


def text_bytes(column: Any) -> int:
    """The bytes of the distinct texts of a column."""
    import pyarrow.compute

    return pyarrow.compute.sum(pyarrow.compute.binary_length(used_texts(column)[0])).as_py() or 0
