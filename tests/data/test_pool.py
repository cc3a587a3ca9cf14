"""The pool: clean, free of overlap, read again and again, in little memory."""

import pickle
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from formats import FORMATS, as_csv, gold
from selftrain.data import pool as pool_room
from selftrain.data.pool import HashSet, clean_pool, hash_of, remove_overlap
from selftrain.data.read import Columns, read_pool, read_unlabelled
from selftrain.data.rows import Example, Notes, examples
from selftrain.errors import DataError


@pytest.fixture(params=["in memory", "streamed"])
def either_way(request, monkeypatch):
    """A pool in memory and one that is read from its source each time behave alike."""
    max_rows = 10**6 if request.param == "in memory" else 0
    monkeypatch.setattr(pool_room, "MAX_ROWS_IN_MEMORY", max_rows)


def test_long_texts_are_not_kept_in_memory_however_few_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(pool_room, "MAX_CHARACTERS_IN_MEMORY", 100)
    for length, in_memory in ((10, True), (40, False)):
        path = tmp_path / "pool.csv"
        path.write_bytes(
            as_csv([{"id": n, "text": letter * length} for n, letter in enumerate("abc")])
        )
        pool = read_unlabelled(path, notes=Notes())
        assert pool.in_memory == in_memory
        assert [row.text for row in pool] == [letter * length for letter in "abc"]
        assert len(pool) == 3


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("name", FORMATS)
def test_a_pool_is_read_again_and_again(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(FORMATS[name]([{"text": text} for text in "abcab"]))
    pool = read_unlabelled(path, notes=Notes())
    assert [row.text for row in pool] == [row.text for row in pool] == ["a", "b", "c"]
    assert len(pool) == 3


@pytest.mark.usefixtures("either_way")
def test_what_a_pool_drops_is_counted_once():
    notes = Notes()
    rows = [{"text": text, "label": "x"} for text in ("a", "", "b", " ", "a", "Known", "c")]
    pool = remove_overlap(read_unlabelled(rows, notes=notes), gold(("known", "x")), notes)
    pool = remove_overlap(pool, examples([" C "]), notes, "test")
    assert [row.text for row in pool] == ["a", "b"]
    assert dict(notes) == {
        "label column `label` in the pool ignored": 1,
        "empty pool rows dropped": 2,
        "duplicate pool rows dropped": 1,
        "labelled texts inside the pool removed": 1,
        "test texts inside the pool removed": 1,
    }


@pytest.mark.usefixtures("either_way")
def test_a_row_is_a_duplicate_by_its_text_whatever_its_id():
    rows = [("1", "a"), ("2", "a"), ("1", "a"), ("3", "c")]
    notes = Notes()
    pool = read_unlabelled([{"id": id, "text": text} for id, text in rows], notes=notes)
    assert [row.uid for row in pool] == ["1", "3"]
    assert dict(notes) == {"duplicate pool rows dropped": 2}


@pytest.mark.usefixtures("either_way")
def test_a_column_whose_ids_repeat_is_not_taken_for_ids_and_no_text_is_lost():
    rows = [{"ID": number % 3, "text": text} for number, text in enumerate("abcdef")]
    notes = Notes()
    pool = read_unlabelled(rows, notes=notes)
    assert list(pool) == examples(list("abcdef"))
    assert dict(notes) == {"rows with the `ID` of another text: rows are named by their texts": 3}
    with pytest.raises(DataError, match="the id `0` names two texts; ids must be unique") as error:
        read_unlabelled(rows, Columns(id="ID"), notes=Notes())
    assert "leave out --id" in error.value.hint


def test_rows_with_the_id_of_another_row_are_counted_as_ids():
    notes = Notes()
    pool = clean_pool([Example("1", "a"), Example("1", "b"), Example("2", "a")], notes=notes)
    assert [row.text for row in pool] == ["a"]
    assert dict(notes) == {
        "pool rows with the id of another row dropped": 1,
        "duplicate pool rows dropped": 1,
    }


def test_ids_of_two_files_that_name_two_texts_are_no_ids(tmp_path):
    (tmp_path / "a.csv").write_text("id,text\n1,a\n2,b\n")
    (tmp_path / "b.csv").write_text("id,text\n1,c\n2,b\n")
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert list(read_pool(paths, notes=Notes())) == examples(["a", "b", "c"])
    assert [row.uid for row in read_pool(paths[:1], notes=Notes())] == ["1", "2"]


@pytest.mark.usefixtures("either_way")
@given(
    pool=st.lists(st.text("aA b", max_size=3), max_size=12),
    others=st.lists(st.text("aA b", max_size=3), max_size=6),
)
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_no_text_of_the_others_is_left_and_no_other_text_is_lost(pool, others):
    smaller = remove_overlap(examples(pool), examples(others), Notes())
    plain = {" ".join(text.casefold().split()) for text in others}
    expected = [
        t for t in dict.fromkeys(pool) if " ".join(t.casefold().split()) not in {*plain, ""}
    ]
    assert [row.text for row in smaller] == expected
    assert len(smaller) == len(expected)


@given(st.lists(st.integers(1, 2**64 - 1) | st.integers(1, 30).map(lambda n: n << 8), max_size=60))
@example([n * HashSet.TABLES for n in range(1, 200)])  # all in one table, which grows nine times
@example([1, 2**64 - 1, 1])
def test_a_hash_set_is_a_set(numbers):
    compact, plain = HashSet(), set()
    for number in numbers:
        assert (number in compact) == (number in plain)
        compact.add(number)
        plain.add(number)
        assert number in compact
    assert len(compact) == len(plain)
    assert all(number in compact for number in plain)
    near = {number ^ HashSet.TABLES for number in plain} - plain - {0}  # their table and next slot
    assert not any(number in compact for number in near)


def test_a_hash_is_64_bits_that_are_the_same_everywhere():
    """blake2b with 8 bytes: `printf a | b2sum -l 64`."""
    assert hash_of("a") == 0x40F89E395B66422F
    assert hash_of("\ud800") != hash_of("\ud801"), "an id may be half a character"


def test_hashes_take_16_bytes_each_also_while_their_tables_grow():
    hashes = [hash_of(str(number)) for number in range(50_000)]
    tracemalloc.start()
    compact = HashSet()
    for number in hashes:
        compact.add(number)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    empty = 256 * (64 + 64 + 80 + 16)  # 256 tables of 8 slots, as objects
    assert peak < 16 * len(hashes) + empty


def test_an_accent_coded_in_two_ways_is_one_text():
    smaller = remove_overlap(examples(["cafe\u0301", "cafe"]), examples(["café"]), Notes())
    assert [row.text for row in smaller] == ["cafe"]


def test_a_pool_survives_the_trip_to_another_process(tmp_path: Path):
    path = tmp_path / "pool.csv"
    path.write_text("text\na\n", encoding="utf-8")
    pool = read_unlabelled(path, notes=Notes())
    assert list(pickle.loads(pickle.dumps(pool))) == list(pool)
