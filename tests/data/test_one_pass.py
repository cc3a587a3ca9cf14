"""A pool is read once to clean, count and name it, and once more for every draw of a run."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import as_csv
from selftrain.data import draws as draws_room
from selftrain.data import pool as pool_room
from selftrain.data import read as read_room
from selftrain.data.draws import Draw, Drawing
from selftrain.data.fewshot import fingerprint
from selftrain.data.pool import clean_pool
from selftrain.data.read import read_unlabelled
from selftrain.data.rows import Example, Notes, examples
from selftrain.seeds import uniform

ROWS = examples([f"text {number}" for number in range(3_000)])


@pytest.fixture(autouse=True)
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_room, "MAX_ROWS_IN_MEMORY", 100)


def draw(rows: list[Example], size: int, seed: int) -> list[Example]:
    """The same one row after the other: those with the smallest numbers of seed and uid."""
    return sorted(rows, key=lambda row: (uniform(seed, row.uid), row.uid))[:size]


@given(
    uids=st.lists(st.text(min_size=1, max_size=3), unique=True, max_size=400),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
)
def test_draws_together_are_the_draws_one_by_one(uids: list[str], sizes: list[int]) -> None:
    rows = [Example(uid, f"text of {uid}") for uid in uids]
    draws = [Draw(seed, size) for seed, size in enumerate(sizes)]
    assert Drawing(draws).read(rows) == {
        each: draw(rows, each.size, seed=each.seed) for each in draws
    }


def test_a_large_pool_is_drawn_like_a_list() -> None:
    """Enough rows that what is found is cut many times."""
    rows = examples([str(number) for number in range(20_000)])
    wanted = Draw(5, 40)
    assert Drawing([wanted]).read(rows)[wanted] == draw(rows, 40, seed=5)


def test_a_draw_that_is_too_large_to_be_kept_is_read_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_room, "MAX_ROWS_DRAWN", 50)
    monkeypatch.setattr(draws_room, "MAX_ROWS_DRAWN", 50)
    large, small = Draw(1, 60), Draw(2, 20)
    pool = clean_pool(ROWS, notes=Notes())
    assert pool.draw(large, [small]) == draw(ROWS, 60, seed=1)
    assert pool.drawn == {}
    assert pool.draw(small, [large]) == draw(ROWS, 20, seed=2)
    assert [*pool.drawn] == [small]


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


@pytest.mark.parametrize(
    ("more", "checks", "are_ids"),
    [([], 0, True), ([(0, "text 0")], 1, True), ([(0, "z")], 1, False), ([(0, " ")], 1, False)],
    ids=["once", "the same row", "another text", "an empty text"],
)
def test_ids_are_checked_in_a_pass_of_their_own_only_where_one_comes_twice(
    more: list[tuple[int, str]],
    checks: int,
    are_ids: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked = []
    check = read_room._ids_repeat
    monkeypatch.setattr(read_room, "_ids_repeat", lambda *given: checked.append(1) or check(*given))
    rows = [(number, f"text {number}") for number in range(200)] + more
    (tmp_path / "a.csv").write_bytes(as_csv([{"id": id, "text": text} for id, text in rows]))
    pool = read_unlabelled(tmp_path / "a.csv", notes=Notes())
    assert len(checked) == checks
    assert ("0" in {row.uid for row in pool}) == are_ids
    assert [row.text for row in pool] == list(dict.fromkeys(t for _, t in rows if t.strip()))


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
