"""The lesson of a round as a Parquet file: a line for each pool row, fields as in ``AuditLine``.

A short lesson is one row group, read into a tuple. A long one is several, read as it is needed, so
that a pool of millions takes no more memory than a short one. The file may come from anyone: its
size is checked before it is unpacked, and each line before it is used. What could not be read back
is not written.

The ids of a short lesson are counted before all of them are in memory; other limits are those of
all tables of a run folder.
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
from selftrain.disk import damaged
from selftrain.errors import RunError
from selftrain.runs.tables import (
    batches_of,
    excess_of,
    groups_of,
    open_table,
    text_bytes,
    used_texts,
    values,
)

if TYPE_CHECKING:
    from selftrain.method.spec import Method

LARGEST_LESSON = 100_000_000  # rows: minutes to check, in the memory of a short one
LARGEST_TABLE = 2**30  # bytes unpacked at once: all of a short lesson, one group of a long one
LARGEST_GROUP = 2**20  # rows of a row group: the default of pyarrow
GROUP = 16_384  # rows of a row group in a long lesson; a short lesson is one group
BATCH = 8_192  # rows of a lesson read together


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def check_fits(pool: Iterable[Example], method: Method) -> None:
    """Raise unless the lesson of a round can be read back."""
    if (
        method.rounds
        and method.probe is None
        and (method.pool == "all" or method.pool > LARGEST_LESSON)
    ):
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
    # An open file: pyarrow would take the `run:` of a path for the name of a store.
    with path.open("wb") as file, pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for _ in range(0, max(1, count), size):  # a lesson without lines has a group without rows
            group = list(islice(lines, size))
            columns = {name: [getattr(line, name) for line in group] for name in schema.names}
            writer.write_table(pyarrow.table(columns, schema=schema))
    with path.open("rb") as written:
        excess = _excess(pyarrow.parquet.read_metadata(written))
    if excess:
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
    """Why a lesson is too large to be read; empty if it can be read."""
    groups = [group.num_rows for group in groups_of(about)]
    rows, largest = sum(groups), max(groups, default=0)
    if rows > LARGEST_LESSON:
        return f"has {rows:,} rows"
    if largest > LARGEST_GROUP:
        return f"has {largest:,} rows in one group"
    return excess_of(about, LARGEST_TABLE, at_once=rows <= MAX_LINES_IN_MEMORY)


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def read_lesson(path: Path, labels: Iterable[str]) -> AuditLines:
    """The audit of a round, checked in full; a short one is a tuple."""
    labels = frozenset(labels)
    rows = size = 0
    for batch in _batches(path, labels):
        rows += batch.num_rows
        size += text_bytes(batch["uid"])
    if rows <= MAX_LINES_IN_MEMORY and size > LARGEST_TABLE:
        raise damaged(path, f"has ids of {size:,} bytes")
    audit = _StoredAudit(path, labels, rows)
    return tuple(audit) if rows <= MAX_LINES_IN_MEMORY else audit


@dataclass(frozen=True, slots=True)
class _StoredAudit:
    """A long audit in a round's folder: read and checked each time it is iterated."""

    path: Path
    labels: frozenset[str]
    size: int

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[AuditLine]:
        for batch in _batches(self.path, self.labels):
            yield from map(AuditLine, *map(values, batch.columns))


def _batches(path: Path, labels: Collection[str]) -> Iterator[Any]:
    """The rows of a lesson, some thousand at a time, each of them checked."""
    with open_table(path, _schema(), _excess) as file:
        for batch in batches_of(file, BATCH):
            _check_lines(path, batch, labels)
            yield batch


def _check_lines(path: Path, batch: Any, labels: Collection[str]) -> None:
    """Raise unless each line is one that a round may write."""
    import pyarrow.compute

    used_texts(batch["uid"])[0].validate(full=True)  # that its bytes are text
    numbers = [batch[name] for name in ("confidence", "certainty", "weight")]
    finite = pyarrow.compute.is_finite(reduce(pyarrow.compute.add, numbers)).to_pylist()
    lines = zip(values(batch["label"]), values(batch["role"]), finite, strict=True)
    for place, (label, role, counts) in enumerate(lines):
        if not (counts and label in labels and role in ("easy", "hard", "left")):
            (line,) = map(AuditLine, *map(values, batch.slice(place, 1).columns))
            raise damaged(path, f"holds a line no round writes: {line!r:.120}")
