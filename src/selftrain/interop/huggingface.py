"""Hugging Face datasets: a Parquet file whose label column is a ``ClassLabel``.

``datasets.load_dataset("parquet", data_files=…)`` reads it with the names of the classes, and
``Dataset.to_parquet`` writes what comes back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from selftrain.data.delimited import Row
from selftrain.data.files import Records, records
from selftrain.data.sources import source_of
from selftrain.disk import replacing
from selftrain.errors import DataError
from selftrain.interop import csv
from selftrain.interop.tool import LABEL, PAIR, TEXT, UID, Outgoing, Tool

FEATURES = b"huggingface"
"""The key of the file's metadata under which datasets keeps the types of the columns."""
MAGIC = b"PAR1"
LARGEST_FEATURES = 2**24  # bytes


def write(path: Path, out: Outgoing) -> None:
    """Write the rows, and in the metadata of the file which class each number is."""
    import pyarrow
    import pyarrow.parquet

    text, whole, number = pyarrow.string(), pyarrow.int64(), pyarrow.float64()
    texts = dict.fromkeys((TEXT, PAIR) if out.pair else (TEXT,), text)
    numbers = {"role": text, "round": whole, "confidence": number, "certainty": number}
    shares = dict.fromkeys((f"p_{label}" for label in out.labels), number)
    kinds = {UID: text, **texts, LABEL: whole, **numbers, **shares}
    places = {label: place for place, label in enumerate(out.labels)}
    rows = [csv.cells_of(row, out) for row in out.rows]
    columns = dict(zip(kinds, map(list, zip(*rows, strict=True)), strict=True))
    columns[LABEL] = [places[label] for label in columns[LABEL]]
    schema = pyarrow.schema(list(kinds.items()), metadata={FEATURES: features(kinds, out.labels)})
    with replacing(path.resolve()) as temporary, temporary.open("xb") as file:
        pyarrow.parquet.write_table(pyarrow.table(columns, schema=schema), file)


def features(kinds: dict[str, Any], labels: Sequence[str]) -> bytes:
    """The types of the columns as datasets keeps them in a Parquet file."""
    spoken = {"double": "float64"}  # pyarrow's names, where datasets has another
    known: dict[str, Any] = {
        name: {"dtype": spoken.get(str(kind), str(kind)), "_type": "Value"}
        for name, kind in kinds.items()
    }
    known[LABEL] = {"names": list(labels), "_type": "ClassLabel"}
    return json.dumps({"info": {"features": known}}).encode()


def open_parquet(path: Path) -> Records:
    """The rows of a Parquet file, with the name of each class in place of its number."""
    with source_of(path).open() as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise DataError(f"{path} is no Parquet file", "dataset.to_parquet(FILE), or --from csv")
    found = records(path, form="parquet")
    return replace(found, read=partial(_named, found, class_names(path)))


def class_names(path: Path) -> dict[str, list[str]]:
    """The names of the classes of each column that has them; anyone may have written them."""
    import pyarrow
    import pyarrow.parquet

    again = DataError(f"{path} says nothing useful of its classes", "dataset.to_parquet(FILE)")
    try:
        with source_of(path).open() as file:
            raw = (pyarrow.parquet.read_schema(file).metadata or {}).get(FEATURES, b"{}")
        if len(raw) > LARGEST_FEATURES:
            raise again
        known = json.loads(raw).get("info", {}).get("features", {})
        kinds = {name: each for name, each in known.items() if isinstance(each, dict)}
        names = {name: each["names"] for name, each in kinds.items() if "names" in each}
    except (pyarrow.ArrowException, OSError, ValueError, AttributeError, RecursionError):
        raise again from None
    if not all(isinstance(n, list) and all(isinstance(e, str) for e in n) for n in names.values()):
        raise again
    return names


def _named(found: Records, names: dict[str, list[str]]) -> Iterator[tuple[int, Row]]:
    for number, row in found.read():
        changed = {}
        for column in names.keys() & set(row):
            place = row[column]
            if not isinstance(place, int) or place == -1:  # -1 is "no label" there
                changed[column] = None if place == -1 else place
            elif not 0 <= place < len(names[column]):
                problem = f"`{column}` is {place}, and there are {len(names[column])} classes"
                raise found.error(number, problem, "dataset.to_parquet(FILE)")
            else:
                changed[column] = names[column][place]
        yield number, {**row, **changed} if changed else row


TOOL = Tool(
    title="Hugging Face datasets",
    endings=(".parquet",),
    write=write,
    open=open_parquet,
    row=csv.annotated,
)
