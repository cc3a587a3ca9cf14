"""``opinions.parquet``: what the folds say of each labelled row and of a slice of the pool.

A row has its uid, its part (``labelled`` or ``pool``), its label, and a probability of each class
by the folds; a pool row has those of the model too. There are no texts in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from selftrain.disk import damaged, replacing
from selftrain.training.estimate import Judged, Opinion

OPINIONS = "opinions.parquet"
LARGEST_OPINIONS = 256 * 2**20  # bytes
PARTS = ("labelled", "pool")


def write_opinions(path: Path, judged: Judged) -> None:
    """Write the opinions of a run."""
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


def read_opinions(path: Path, labels: Sequence[str]) -> tuple[list[Opinion], list[Opinion]]:
    """Those of the labelled rows and those of the pool, checked as if anyone had written them."""
    parts: dict[str, list[Opinion]] = {part: [] for part in PARTS}
    for row in _rows(path):
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
    return parts["labelled"], parts["pool"]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        with path.open("rb") as raw, pyarrow.parquet.ParquetFile(raw) as file:
            if not file.schema_arrow.equals(_schema()):
                raise damaged(path, f"has the columns {file.schema_arrow.names}")
            for batch in file.iter_batches(1024, use_threads=False):
                batch.validate(full=True)
                yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(path, f"is not Parquet: {error}".partition("\n")[0]) from None


def _schema() -> Any:
    import pyarrow

    text = [pyarrow.field(name, pyarrow.string(), False) for name in ("uid", "part", "label")]
    element = pyarrow.field("element", pyarrow.float32(), False)
    numbers = [pyarrow.field(name, pyarrow.list_(element), False) for name in ("folds", "model")]
    return pyarrow.schema([*text, *numbers])
