"""Texts to answer in a wide Parquet file: what is not needed is not read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from formats import FORMATS
from selftrain.data.read import Counted, open_texts, read_texts
from selftrain.data.rows import Example, Notes
from selftrain.errors import DataError

ROWS = [{"id": f"{n}", "text": f"text {n}", "more": "x" * 50} for n in range(12)]
EXAMPLES = [Example(row["id"], row["text"]) for row in ROWS]
PLACES = [range(1, 3), range(3, 4), range(6, 7), range(10, 12)]


def in_groups(path: Path, rows: Sequence[dict[str, str]] = ROWS, size: int = 4) -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows)), path, row_group_size=size, compression="none")
    return path


@pytest.fixture
def read_groups(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[str]]]:
    """The row groups and columns that are asked of pyarrow."""
    asked = []
    iter_batches = pq.ParquetFile.iter_batches

    def spied(self: Any, *given: Any, **named: Any) -> Any:
        asked.append((*named["row_groups"], named["columns"]))
        return iter_batches(self, *given, **named)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spied)
    return asked


def test_of_texts_to_answer_only_the_needed_columns_are_read(
    tmp_path: Path, read_groups: list[tuple[int, list[str]]]
) -> None:
    table = read_texts(in_groups(tmp_path / "a.parquet"), notes=Notes())
    assert list(table.examples) == EXAMPLES
    assert read_groups == 2 * [(group, ["text", "id"]) for group in range(3)]


def test_a_later_part_reads_no_row_group_before_it(
    tmp_path: Path, read_groups: list[tuple[int, list[str]]]
) -> None:
    texts = open_texts(in_groups(tmp_path / "a.parquet"), notes=Notes())
    read_groups.clear()
    (part,) = texts.parts([range(9, 11)])
    assert (part.first, part.rows) == (9, 2)
    assert list(part.examples) == EXAMPLES[9:11]
    assert [group for group, _ in read_groups] == [2]


def test_a_file_before_a_part_is_passed_and_so_is_one_between_two(
    tmp_path: Path, read_groups: list[tuple[int, list[str]]]
) -> None:
    for number in range(4):
        in_groups(tmp_path / f"{number}.parquet", ROWS[3 * number : 3 * number + 3], size=2)
    texts = open_texts(tmp_path, notes=Notes())
    read_groups.clear()
    found = [list(part.examples) for part in texts.parts([range(5, 6), range(11, 12)])]
    assert found == [EXAMPLES[5:6], EXAMPLES[11:12]]
    assert [group for group, _ in read_groups] == [1, 1]


@pytest.mark.parametrize("name", FORMATS)
def test_the_parts_of_every_format_are_the_rows_at_their_places(name: str, tmp_path: Path) -> None:
    """With gaps that begin and end in the middle of what is read together."""
    (tmp_path / name).write_bytes(FORMATS[name](ROWS))
    texts = open_texts(tmp_path / name, notes=Notes())
    found = [list(part.examples) for part in texts.parts(PLACES)]
    assert found == [EXAMPLES[place.start : place.stop] for place in PLACES]


def test_of_a_row_between_two_parts_no_cell_is_checked(tmp_path: Path) -> None:
    path = in_groups(tmp_path / "a.parquet", size=12)
    path.write_bytes(path.read_bytes().replace(b"text 5", b"text\xc3\x28"))
    texts = open_texts(path, notes=Notes(), counted=Counted(12, "id"))
    assert [list(part.examples) for part in texts.parts([range(4), range(6, 12)])] == [
        EXAMPLES[:4],
        EXAMPLES[6:],
    ]
    with pytest.raises(DataError, match="row 6: `text` cannot be read"):
        list(texts)
