"""Rows for tests, written in every format as other tools write it."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from selftrain.data.rows import Example, Labelled, uid_of
from selftrain.errors import SelftrainError


def gold(*rows: tuple[str, str]) -> list[Labelled]:
    return [Labelled(Example(uid_of(text), text), label) for text, label in rows]


def texts_of(rows: list[Labelled]) -> list[tuple[str, str]]:
    return [(row.example.text, row.label) for row in rows]


def as_csv(rows: list[dict[str, str]], delimiter: str = ",") -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_jsonl(rows: list[dict[str, str]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_parquet(rows: list[dict[str, str]]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def damaged_parquet() -> bytes:
    """A file of three row groups, with a page of the second that does not unpack."""
    out = io.BytesIO()
    pq.write_table(pa.table({"text": [f"{n:_>99}" for n in range(300)]}), out, row_group_size=100)
    column = pq.read_metadata(out).row_group(1).column(0)
    start = column.dictionary_page_offset + column.total_compressed_size // 2
    raw = out.getvalue()
    return raw[:start] + b"\xff" * 50 + raw[start + 50 :]


FORMATS: dict[str, Callable[[list[dict[str, str]]], bytes]] = {
    "rows.csv": as_csv,
    "rows.CSV": as_csv,
    "rows.tsv": lambda rows: as_csv(rows, "\t"),
    "rows.jsonl": as_jsonl,
    "rows.ndjson": as_jsonl,
    "rows.parquet": as_parquet,
    "rows.csv.gz": lambda rows: gzip.compress(as_csv(rows)),
    "rows.tsv.gz": lambda rows: gzip.compress(as_csv(rows, "\t")),
    "rows.jsonl.gz": lambda rows: gzip.compress(as_jsonl(rows)),
}


def message_and_hint(error: pytest.ExceptionInfo[SelftrainError]) -> tuple[str, str]:
    assert "\n" not in error.value.message, "an error is one line"
    return error.value.message, error.value.hint
