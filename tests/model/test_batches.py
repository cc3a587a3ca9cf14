"""Padding and cutting by length."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from selftrain.model.batches import Row, by_length, collate, grouped

quick = settings(max_examples=100, deadline=None, derandomize=True)


@quick
@given(st.lists(st.integers(1, 128), max_size=60), st.integers(1, 600))
def test_every_row_is_in_one_batch_and_no_batch_exceeds_the_budget(lengths, budget):
    batches = list(by_length(lengths, budget))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        padded = len(batch) * max(lengths[i] for i in batch)
        assert padded <= budget or len(batch) == 1, "a row longer than the budget goes alone"


@quick
@given(st.lists(st.integers(1, 128), min_size=1, max_size=60), st.integers(128, 600))
def test_a_batch_is_closed_only_when_the_next_row_would_not_fit(lengths, budget):
    batches = list(by_length(lengths, budget))
    for batch in batches[:-1]:
        assert (len(batch) + 1) * lengths[batch[0]] > budget


def test_rows_of_like_length_lie_together_longest_first_and_ties_in_order():
    assert list(by_length([3, 9, 3, 8, 3], 18)) == [[1, 3], [0, 2, 4]]


def test_no_rows_make_no_batches():
    assert list(by_length([], 100)) == []


@quick
@given(st.lists(st.integers(1, 128), min_size=1, max_size=60))
def test_grouped_rows_can_be_put_back_in_order(lengths):
    """Row i is i, repeated; a few thousand tokens make more than one group."""
    rows = [Row((i + 1,) * length) for i, length in enumerate(lengths)]
    batches, back = grouped(rows, 0, torch.device("cpu"))
    first = torch.cat([batch.ids[:, 0] for batch in batches])
    assert first[back].tolist() == list(range(1, len(rows) + 1))
    assert sum(int(batch.attention.sum()) for batch in batches) == sum(lengths)


def test_rows_are_padded_on_the_right_to_the_longest():
    batch = collate([Row((5, 6, 7), mask_at=2), Row((8,))], pad=9)
    assert batch.ids.tolist() == [[5, 6, 7], [8, 9, 9]]
    assert batch.attention.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch.mask_at.tolist() == [2, -1]
    assert batch.types is None


def test_segments_are_padded_with_the_first():
    batch = collate([Row((5, 6), types=(0, 1)), Row((7,), types=(1,))], pad=0)
    assert batch.types is not None
    assert batch.types.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("types", [None, (0, 0)])
def test_a_batch_moves_as_a_whole(types):
    moved = collate([Row((1, 2), types=types)], pad=0).to("meta")
    tensors = [moved.ids, moved.attention, moved.mask_at]
    tensors += [moved.types] if moved.types is not None else []
    assert {tensor.device for tensor in tensors} == {torch.device("meta")}
    assert len(tensors) == 3 + (types is not None)
