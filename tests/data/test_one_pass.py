"""A pool is read once to clean, count and name it, and once more for every draw of a run."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from by_hand import GOLD, METHOD, TASK
from formats import as_csv
from selftrain.data import pool as pool_room
from selftrain.data.draws import Draw, draw_together
from selftrain.data.fewshot import fingerprint
from selftrain.data.files import FORMATS
from selftrain.data.pool import clean_pool
from selftrain.data.read import open_pool, read_unlabelled
from selftrain.data.rows import Example, Notes, examples
from selftrain.data.split import make_split
from selftrain.training.draw import draw, draws_of, pool_of_round, slice_rows
from selftrain.training.job import Job

ROWS = examples([f"text {number}" for number in range(3_000)])


@pytest.fixture(autouse=True)
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_room, "MAX_ROWS_IN_MEMORY", 100)


class Counted:
    """Rows that count how often all of them were read."""

    def __init__(self, rows: list[Example]) -> None:
        self.rows, self.reads = rows, 0

    def __iter__(self) -> Iterator[Example]:
        yield from self.rows
        self.reads += 1


def test_a_run_reads_its_pool_twice_and_draws_what_lists_give() -> None:
    source = Counted([*ROWS, *ROWS[:7], Example("x", " ")])
    split = make_split(GOLD, source, notes=Notes())
    job = Job(TASK, split, METHOD, None, 12)  # type: ignore[arg-type]
    by_hand = Job(TASK, make_split(GOLD, ROWS, notes=Notes()), METHOD, None, 12)  # type: ignore[arg-type]
    assert source.reads == 1
    for number in (1, 2, 3, 1):
        wanted = list(draws_of(by_hand))[number]
        assert pool_of_round(job, number) == draw(ROWS, wanted.size, seed=wanted.seed)
    wanted = next(draws_of(job))
    assert slice_rows(job) == draw(ROWS, wanted.size, seed=wanted.seed)
    assert split.unlabelled.fingerprint == fingerprint(ROWS)  # type: ignore[attr-defined]
    assert source.reads == 2


@given(
    uids=st.lists(st.text(min_size=1, max_size=3), unique=True, max_size=400),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
)
def test_draws_together_are_the_draws_one_by_one(uids: list[str], sizes: list[int]) -> None:
    rows = [Example(uid, f"text of {uid}") for uid in uids]
    draws = [Draw(seed, size) for seed, size in enumerate(sizes)]
    found = draw_together(((row.uid, row.text, row.pair) for row in rows), draws)
    assert found == {each: draw(rows, each.size, seed=each.seed) for each in draws}


def test_a_large_pool_is_drawn_like_a_list() -> None:
    """Enough rows that what is found is cut many times."""
    rows = examples([str(number) for number in range(20_000)])
    fields = [(None, row.text, None) for row in rows]
    wanted = Draw(5, 40)
    assert draw_together(fields, [wanted])[wanted] == draw(rows, 40, seed=5)


def test_the_fingerprint_of_a_pool_is_that_of_earlier_versions() -> None:
    """The sum of the sha256 of each row as JSON; the fixed one is that of commit a348246."""
    rows = [Example("1", 'a "é"\n'), Example("2", "b\u2028\x7f", "\U0001f600 c")]
    sums = [
        int.from_bytes(
            hashlib.sha256(json.dumps([row.uid, row.text, row.pair, None]).encode()).digest(), "big"
        )
        for row in rows
    ]
    by_hand = hashlib.sha256(f"2/{sum(sums) % 2**256}".encode()).hexdigest()
    assert clean_pool(rows, notes=Notes()).fingerprint == fingerprint(rows) == by_hand
    assert fingerprint(ROWS[:10]) == FIXED


FIXED = "3758cbed704441caf0a41e5bfc61be8c1368c4fc57021b8a62061902edae3370"


def test_a_pool_with_ids_is_read_again_only_where_an_id_comes_twice(tmp_path: Path) -> None:
    rows = [{"id": number, "text": f"text {number}"} for number in range(200)]
    for more, reads in (([], 1), ([rows[0]], 3), ([{"id": 0, "text": "z"}], 3)):
        (tmp_path / "a.csv").write_bytes(as_csv([*rows, *more]))
        opened = open_pool([tmp_path / "a.csv"], notes=Notes())
        pool = clean_pool(opened, notes=Notes())
        names = {row.uid for row in pool}
        assert names == {row.uid for row in read_unlabelled([*rows, *more], notes=Notes())}
        assert ("0" in names) == (reads == 1 or more == [rows[0]])


@pytest.mark.parametrize("excluded", [[], ["TEXT  3", "text 8191"]])
def test_a_streamed_pool_gives_the_rows_of_one_in_memory(
    excluded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a bit of its rows stands at the end of a block."""
    rows = examples([f"text {number}" for number in range(8_195)])
    shuffled = random.Random(1).sample(rows, len(rows)) + rows[:5]
    others = [("test", frozenset(text.lower().replace("  ", " ") for text in excluded))]
    long = clean_pool(shuffled, others, notes=(long_notes := Notes()))
    monkeypatch.setattr(pool_room, "MAX_ROWS_IN_MEMORY", 10**6)
    short = clean_pool(shuffled, others, notes=(short_notes := Notes()))
    assert (long.in_memory, short.in_memory) == (False, True)
    assert list(long) == list(short)
    assert (len(long), long.fingerprint) == (len(short), short.fingerprint)
    assert dict(long_notes) == dict(short_notes)


def test_a_parquet_file_of_many_batches_gives_the_rows_of_a_list(tmp_path: Path) -> None:
    texts = [f"text {number % 4_000}" if number % 7 else None for number in range(5_000)]
    ids = [str(number) for number in range(5_000)]
    table = pa.table({"id": ids, "wide": [["x"]] * 5_000, "text": texts})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1_500)
    pool = read_unlabelled(tmp_path / "a.parquet", notes=Notes())
    listed = [{"id": id, "text": text} for id, text in zip(ids, texts, strict=True)]
    expected = read_unlabelled(listed, notes=Notes())
    assert list(pool) == list(expected)
    assert pool.fingerprint == expected.fingerprint
    assert "parquet" in FORMATS
