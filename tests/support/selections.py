"""Any selection, and what it takes from votes made by hand."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st

from by_hand import example, rows, votes
from selftrain.data.rows import Labelled, Lesson
from selftrain.method.scores import Votes
from selftrain.method.selection import (
    Certain,
    Reliable,
    RoundDraw,
    Selection,
    Uniform,
)

quick = settings(max_examples=40, deadline=None, derandomize=True)
LABELS = ("red", "green", "blue")

SELECTIONS = st.builds(
    Selection,
    score=st.sampled_from([Reliable(), Reliable(alpha=1.0), Certain(), Certain(True), Uniform()]),
    count=st.integers(1, 12),
    per_class=st.sampled_from(["proportional", "equal", "none"]),
    how=st.sampled_from(["sample", "topk", "power"]),
    kappa=st.sampled_from([0.5, 4.0]),
    label=st.sampled_from(["mean", "deterministic", "vote"]),
    hard=st.sampled_from(["rest", "bottom"]),
)

# Ten rows of class 0 with confidence .50, .55, … .95 and one pass, so certainty is 1.
LADDER = votes([[[0.5 + i / 20, 0.5 - i / 20, 0.0] for i in range(10)]])


def select(pick: Selection, seen: Votes, *, number: int = 1, seed: int = 12) -> Lesson:
    n = len(seen.plain)
    pool = [example(i) for i in range(n)]
    return pick([(pool, seen)], LABELS, (), RoundDraw(n, number, seed))


def uids(items: tuple[Labelled, ...]) -> list[str]:
    return [item.example.uid for item in items]


def chunks_of(seen: Votes, order: list[int], cuts: list[int]):
    """The pool in this order, cut into chunks at these places."""
    ends = [0, *sorted(cut % (len(order) + 1) for cut in cuts), len(order)]
    parts = [order[a:b] for a, b in pairwise(ends) if a < b]
    return [([example(i) for i in part], rows(seen, part)) for part in parts]
