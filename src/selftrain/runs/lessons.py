"""A lesson as a Parquet file: a line for each row that a round judged, fields as in ``AuditLine``.

A short lesson is packed as a whole and comes back as a tuple. A long one is packed in groups and
read as it is asked for, so that a pool of millions takes the memory of a short one. The file may
come from anyone: its size is held against limits before it is unpacked, its lines against what a
round writes before they are given out; and what would not be read back is not written.

What a file says of its unpacked size is a stranger's word. What holds: nothing outside the packed
size is read, snappy makes at most some twenty times of it, a text that is repeated is held once in
each batch, and the ids of a short lesson are counted before all of them are held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sized
from dataclasses import dataclass, fields
from functools import cache, reduce
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selftrain.data.audit_lines import MAX_LINES_IN_MEMORY
from selftrain.data.rows import AuditLine, AuditLines, Example, Lesson
from selftrain.disk import damaged, plain_file
from selftrain.errors import RunError

if TYPE_CHECKING:
    from selftrain.method.spec import Method

LARGEST_LESSON = 100_000_000  # rows: minutes to check, in the memory of a short one
LARGEST_TABLE = 2**30  # bytes of a lesson unpacked at once: all of a short one, a group of a long
LARGEST_GROUP = 2**20  # rows of a lesson packed together, as pyarrow does it by itself
GROUP = 16_384  # rows of a long lesson packed together; a short one is packed as a whole
BATCH = 8_192  # rows of a lesson read together
CODECS = ("SNAPPY", "UNCOMPRESSED")  # a round writes the first; others unpack a byte to thousands


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def check_fits(pool: Iterable[Example], method: Method) -> None:
    """Raise unless the lesson of a round can be read back."""
    if method.rounds and (method.pool == "all" or method.pool > LARGEST_LESSON):
        size = len(pool) if isinstance(pool, Sized) else sum(1 for _ in pool)
        if size > LARGEST_LESSON:
            raise RunError(
                f"a round would judge {size:,} rows; a run folder holds at most "
                f"{LARGEST_LESSON:,} of a round",
                "draw some of them in each round: pool = 4096 in the method",
            )


def write_lesson(path: Path, lesson: Lesson) -> None:
    """Write the audit of a round; raise if it could not be read back."""
    import pyarrow
    import pyarrow.parquet

    schema, lines, count = _schema(), iter(lesson.audit), len(lesson.audit)
    size = GROUP if count > MAX_LINES_IN_MEMORY else max(1, count)
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for _ in range(0, max(1, count), size):  # a lesson without lines has a group without rows
            group = list(islice(lines, size))
            columns = {name: [getattr(line, name) for line in group] for name in schema.names}
            writer.write_table(pyarrow.table(columns, schema=schema))
    if excess := _excess(pyarrow.parquet.read_metadata(path)):
        raise RunError(
            f"the lesson of a round {excess}, more than is ever read back",
            "give the pool shorter ids, or none: texts are then named by their hash",
        )


@cache
def _schema() -> Any:
    """The columns of a lesson: the fields of ``AuditLine``, none of which may be empty."""
    import pyarrow

    kinds = {"str": pyarrow.string(), "float": pyarrow.float64()}
    return pyarrow.schema(
        [
            pyarrow.field(each.name, kinds[str(each.type)], nullable=False)
            for each in fields(AuditLine)
        ]
    )


def _excess(about: Any) -> str:
    """What of a lesson is more than is ever read; nothing if it can be read."""
    groups = [about.row_group(place) for place in range(about.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    if rows > LARGEST_LESSON:
        return f"has {rows:,} rows"
    largest = max((group.num_rows for group in groups), default=0)
    if largest > LARGEST_GROUP:
        return f"has {largest:,} rows in one group"
    columns = [[group.column(place) for place in range(group.num_columns)] for group in groups]
    strange = {each.compression for group in columns for each in group}.difference(CODECS)
    if strange:
        return f"is packed with {min(strange)}"
    told = [group.total_byte_size for group in groups]
    packed = [sum(each.total_compressed_size for each in group) for group in columns]
    for sizes, how in ((told, "unpacked"), (packed, "packed")):
        at_once = sum(sizes) if rows <= MAX_LINES_IN_MEMORY else max(sizes)
        if at_once > LARGEST_TABLE:
            return f"has {at_once:,} bytes {how}"
    return ""


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def read_lesson(path: Path, labels: Iterable[str]) -> AuditLines:
    """The audit of a round, all of it checked; a short one is a tuple."""
    labels = frozenset(labels)
    rows = size = 0
    for batch in _batches(path, labels):
        rows += batch.num_rows
        size += _used(batch["uid"])[0].nbytes
    if rows <= MAX_LINES_IN_MEMORY and size > LARGEST_TABLE:
        raise damaged(path, f"has ids of {size:,} bytes")
    audit = _Kept(path, labels, rows)
    return tuple(audit) if rows <= MAX_LINES_IN_MEMORY else audit


@dataclass(frozen=True, slots=True)
class _Kept:
    """The audit in a round's folder: read, and checked, each time it is gone through."""

    path: Path
    labels: frozenset[str]
    size: int

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[AuditLine]:
        for batch in _batches(self.path, self.labels):
            yield from map(AuditLine, *map(_values, batch.columns))


def _batches(path: Path, labels: Collection[str]) -> Iterator[Any]:
    """The rows of a lesson, some thousand at a time, each of them one that a round writes."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(plain_file(path)) as file:
            if not file.schema_arrow.equals(_schema()):
                raise damaged(path, f"has the columns {file.schema_arrow.names}")
            if excess := _excess(file.metadata):
                raise damaged(path, excess)
        names = [field.name for field in _schema() if field.type == pyarrow.string()]
        with pyarrow.parquet.ParquetFile(path, read_dictionary=names, buffer_size=2**16) as file:
            for group in range(file.num_row_groups):  # at once, pyarrow would hold the whole file
                for batch in file.iter_batches(BATCH, row_groups=[group], use_threads=False):
                    _check_lines(path, batch, labels)
                    yield batch
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(path, f"is not Parquet: {error}".partition("\n")[0]) from None


def _check_lines(path: Path, batch: Any, labels: Collection[str]) -> None:
    """Raise unless each line is one that a round may write."""
    import pyarrow.compute

    _used(batch["uid"])[0].validate(full=True)  # that its bytes are text
    numbers = [batch[name] for name in ("confidence", "certainty", "weight")]
    finite = pyarrow.compute.is_finite(reduce(pyarrow.compute.add, numbers)).to_pylist()
    lines = zip(_values(batch["label"]), _values(batch["role"]), finite, strict=True)
    for place, (label, role, counts) in enumerate(lines):
        if not (counts and label in labels and role in ("easy", "hard", "left")):
            (line,) = map(AuditLine, *map(_values, batch.slice(place, 1).columns))
            raise damaged(path, f"holds a line no round writes: {line!r:.120}")


def _values(column: Any) -> list[Any]:
    """A column as a list in which equal texts are one object, so that none grows by repetition."""
    if not hasattr(column, "dictionary"):
        return list(column.to_pylist())
    used, places = _used(column)
    texts = used.to_pylist()
    return [texts[place] for place in places.to_pylist()]


def _used(column: Any) -> tuple[Any, Any]:
    """The texts that stand in a column, each once, and for each row which; both as they are packed.

    A dictionary may serve many more rows than those of this column.
    """
    encoded = column.indices.dictionary_encode()
    return column.dictionary.take(encoded.dictionary), encoded.indices
