"""k per class by seed, and the fingerprint of a split."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selftrain.data.fewshot import fingerprint, sample
from selftrain.data.rows import Example, Labelled, Notes, uid_of
from selftrain.errors import ConfigError


def gold(text: str, label: str, uid: str | None = None) -> Labelled:
    return Labelled(Example(uid or uid_of(text), text), label)


MANY = [gold(f"text {n}", "abc"[n % 3]) for n in range(90)]


def test_a_sample_has_k_of_each_class_and_the_rest_has_no_labels():
    few, rest = sample(MANY, 16, seed=12)
    assert Counter(row.label for row in few) == {"a": 16, "b": 16, "c": 16}
    assert all(type(row) is Example for row in rest)
    assert {row.example for row in few} | set(rest) == {row.example for row in MANY}
    assert len(few) + len(rest) == len(MANY)


@given(order=st.permutations(MANY), k=st.integers(1, 40), seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_the_order_of_the_rows_changes_nothing(order, k, seed):
    assert sample(order, k, seed) == sample(MANY, k, seed)


@given(k=st.integers(1, 20), more=st.integers(0, 20), seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_a_smaller_sample_is_part_of_a_larger_one(k, more, seed):
    few = {row.example for row in sample(MANY, k, seed)[0]}
    assert few <= {row.example for row in sample(MANY, k + more, seed)[0]}


def test_another_seed_draws_other_rows():
    assert sample(MANY, 5, seed=12) != sample(MANY, 5, seed=21)


def test_rows_added_to_one_class_leave_the_others_alone():
    more = [*MANY, *(gold(f"new {n}", "c") for n in range(30))]

    def drawn_of_a(rows):
        return [row for row in sample(rows, 5, seed=1)[0] if row.label == "a"]

    assert drawn_of_a(more) == drawn_of_a(MANY)


def test_a_rare_class_gives_all_it_has_and_is_noted():
    notes = Notes()
    few, _ = sample([*MANY, gold("x", "rare"), gold("y", "rare")], 16, seed=12, notes=notes)
    assert Counter(row.label for row in few)["rare"] == 2
    assert dict(notes) == {"class `rare` has fewer than 16 rows: all taken": 2}


def test_a_text_is_drawn_once_and_is_not_left_in_the_pool():
    few, rest = sample([gold("same", "a", "1"), gold("same", "a", "2")], 2, seed=0)
    assert [row.example.uid for row in few] == ["1"]
    assert rest == []


@given(seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_a_text_with_two_labels_is_never_drawn(seed):
    torn = [gold("torn", "a"), gold("torn", "b")]
    notes = Notes()
    few, rest = sample([*MANY, *torn], 30, seed, notes=notes)
    assert dict(notes) == {"texts with two labels left unlabelled": 1}
    assert "torn" not in {row.example.text for row in few}
    assert [row.text for row in rest] == ["torn"]


def test_k_below_one_is_an_error():
    with pytest.raises(ConfigError, match="is 0; expected at least 1"):
        sample(MANY, 0, seed=12)


@given(order=st.permutations(MANY))
@settings(max_examples=10, deadline=None)
def test_a_fingerprint_does_not_depend_on_order(order):
    assert fingerprint(order) == fingerprint(MANY)


def test_a_fingerprint_sees_every_change():
    rows = [gold("a", "x"), gold("b", "y")]
    changed = [
        rows[:1],
        [*rows, rows[0]],
        [gold("a", "y"), gold("b", "x")],
        [gold("a", "x", "id"), rows[1]],
        [row.example for row in rows],
        [Labelled(Example(uid_of("a"), "edited"), "x"), rows[1]],
        [Labelled(Example(uid_of("a"), "a", ""), "x"), rows[1]],
        [],
    ]
    prints = {fingerprint(each) for each in (rows, *changed)}
    assert len(prints) == len(changed) + 1
    assert all(len(each) == 64 for each in prints)
