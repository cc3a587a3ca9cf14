"""``opinions.parquet``: what the folds say of each labelled row and of a slice of the pool.

A row has its uid, its part (``labelled`` or ``pool``), its label, and a probability of each class
by the folds; a pool row has those of the model too. There are no texts in it. What could not be
read back is not written. The file may come from anyone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from selftrain.data.audit_lines import MAX_LINES_IN_MEMORY
from selftrain.disk import damaged, remove, replacing, sha256
from selftrain.runs.tables import (
    batches_of,
    excess_of,
    groups_of,
    open_table,
    text_bytes,
    used_texts,
    values,
)
from selftrain.training.draw import GUARDED_SLICE_ROWS
from selftrain.training.estimate import Judged, Opinion

OPINIONS = "opinions.parquet"
LARGEST_OPINIONS = 256 * 2**20  # bytes of the file, and of all its uids
MOST_NUMBERS = 2**23  # probabilities of the folds: in Python they take a quarter of a gigabyte
BATCH = 1024  # rows read together
PARTS = ("labelled", "pool")


def write_opinions(path: Path, judged: Judged) -> str:
    """Write the opinions of a run, and return their sha256; none, and empty, if they are too many.

    So many labelled rows are no reason to fail at the end of a run.
    """
    import pyarrow
    import pyarrow.parquet

    rows = [(part, each) for part in PARTS for each in getattr(judged, part)]
    columns = {
        "uid": [each.uid for _, each in rows],
        "part": [part for part, _ in rows],
        "label": [each.label for _, each in rows],
        "folds": [each.folds for _, each in rows],
        "model": [each.model for _, each in rows],
    }
    table = pyarrow.table(columns, schema=_schema())
    with replacing(path, private=True) as temporary, temporary.open("wb") as file:
        pyarrow.parquet.write_table(table, file)
    classes = max((len(each.folds) for _, each in rows), default=1)
    size = sum(len(each.uid.encode()) for _, each in rows)
    with path.open("rb") as written:
        excess = _excess(classes, pyarrow.parquet.read_metadata(written))
    if excess or max(size, path.stat().st_size) > LARGEST_OPINIONS:
        remove(path)
        return ""
    return sha256(path)


def read_opinions(path: Path, labels: Sequence[str]) -> tuple[list[Opinion], list[Opinion]]:
    """Those of the labelled rows and those of the pool, checked as if anyone had written them."""
    parts: dict[str, list[Opinion]] = {part: [] for part in PARTS}
    for row in _rows(path, len(labels)):
        probabilities = (row["folds"], row["model"])
        expected = (len(labels),), (0, len(labels))
        if (
            row["part"] not in PARTS
            or row["label"] not in labels
            or any(len(p) not in sizes for p, sizes in zip(probabilities, expected, strict=True))
            or not all(0 <= value <= 1.001 for p in probabilities for value in p)
        ):
            raise damaged(path, f"holds a row that no run writes: {row!r:.120}")
        of_folds, of_model = map(tuple, probabilities)
        parts[row["part"]].append(Opinion(row["uid"], row["label"], of_folds, of_model))
    if len(parts["pool"]) > GUARDED_SLICE_ROWS:
        raise damaged(path, f"has {len(parts['pool']):,} rows of the pool")
    return parts["labelled"], parts["pool"]


def _rows(path: Path, classes: int) -> Iterator[dict[str, Any]]:
    size = 0
    with open_table(path, _schema(), partial(_excess, classes)) as file:
        for batch in batches_of(file, BATCH):
            size += text_bytes(batch["uid"])
            if size > LARGEST_OPINIONS:
                raise damaged(path, f"has uids of {size:,} bytes")
            used_texts(batch["uid"])[0].validate(full=True)  # that its bytes are text
            for row in zip(*map(values, batch.columns), strict=True):
                yield dict(zip(batch.schema.names, row, strict=True))


def _excess(classes: int, about: Any) -> str:
    """Why opinions are too many to be read; empty if they can be read."""
    rows = sum(group.num_rows for group in groups_of(about))
    if rows > MAX_LINES_IN_MEMORY + GUARDED_SLICE_ROWS or rows * classes > MOST_NUMBERS:
        return f"has {rows:,} rows"
    return excess_of(about, LARGEST_OPINIONS, width=max(1, classes), at_once=True)


def _schema() -> Any:
    import pyarrow

    text = [pyarrow.field(name, pyarrow.string(), False) for name in ("uid", "part", "label")]
    element = pyarrow.field("element", pyarrow.float32(), False)
    numbers = [pyarrow.field(name, pyarrow.list_(element), False) for name in ("folds", "model")]
    return pyarrow.schema([*text, *numbers])
