"""Order, chunks and shards of the pool change nothing in a lesson."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from by_hand import example, random_votes, rows
from selections import LABELS, LADDER, SELECTIONS, chunks_of, quick, select, uids
from selftrain.data import audit_lines as audit
from selftrain.method.selection import (
    Reliable,
    RoundDraw,
    Selection,
)
from selftrain.seeds import child


@quick
@given(SELECTIONS, st.integers(2, 260), st.randoms(use_true_random=False), st.integers(0, 99))
def test_shards_merged_in_any_order_equal_the_whole(pick, n, random, seed):
    """Algorithm 1, lines 7-9: easy, hard and audit alike, whatever the sharding.

    Up to 260 rows with N_r down to 1 fill the reservoir of hard rows many times over.
    """
    seen = random_votes(n, 3, passes=3, seed=seed)
    whole = select(pick, seen, seed=seed)
    wanted = pick.size(n, 1)
    noise = child(seed, "select", 1)
    home = [random.randrange(4) for _ in range(n)]
    parts = [[i for i in range(n) if home[i] == shard] for shard in range(4)]
    shards = [
        pick.shard_of([([example(i) for i in part], rows(seen, part))], LABELS, wanted, noise)
        for part in parts
        if part
    ]
    while len(shards) > 1:
        random.shuffle(shards)
        shards.append(pick.merge(shards.pop(), shards.pop(), wanted))
    assert pick.lesson_of(shards[0], LABELS, (), wanted) == whole


@quick
@given(
    SELECTIONS,
    st.sampled_from([{}, {"align": True}, {"score": Reliable(scale="rank")}]),
    st.integers(2, 60),
    st.lists(st.integers(0, 60), max_size=5),
    st.randoms(use_true_random=False),
)
def test_order_and_chunks_of_the_pool_do_not_matter(pick, change, n, cuts, random):
    """Algorithm 1, line 9; also where rows are compared with the whole pool."""
    pick = replace(pick, **change)
    seen = random_votes(n, 3, passes=3, seed=n)
    order = random.sample(range(n), n)
    shuffled = pick(chunks_of(seen, order, cuts), LABELS, (), RoundDraw(n, 1, 12))
    whole = select(pick, seen)
    assert [(line.uid, line.role, line.label) for line in shuffled.audit] == [
        (line.uid, line.role, line.label) for line in whole.audit
    ]
    assert uids(shuffled.easy) == uids(whole.easy)
    assert uids(shuffled.hard) == uids(whole.hard)


@quick
@given(SELECTIONS, st.integers(2, 200))
def test_easy_and_hard_do_not_overlap_and_the_audit_covers_the_pool(pick, n):
    """Algorithm 1, line 9."""
    lesson = select(pick, random_votes(n, 3, passes=3, seed=n))
    roles = {line.uid: line.role for line in lesson.audit}
    assert [line.uid for line in lesson.audit] == sorted(example(i).uid for i in range(n))
    assert {uid for uid, role in roles.items() if role == "easy"} == set(uids(lesson.easy))
    assert {uid for uid, role in roles.items() if role == "hard"} == set(uids(lesson.hard))
    assert len(lesson.easy) == len(set(uids(lesson.easy))) == min(pick.size(n, 1), n)
    assert max(Counter(item.label for item in lesson.hard).values(), default=0) <= 4 * pick.count


@quick
@given(SELECTIONS, st.integers(10, 120), st.randoms(use_true_random=False))
def test_a_long_audit_says_the_same_in_the_order_of_the_pool(pick, n, random):
    seen = random_votes(n, 3, passes=3, seed=n)
    order = random.sample(range(n), n)
    short = select(pick, seen)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(audit, "MAX_LINES_IN_MEMORY", 7)
        patched.setattr(audit, "CHUNK", 4)
        long = pick(chunks_of(seen, order, [5]), LABELS, (), RoundDraw(n, 1, 12))
    assert (long.easy, long.hard) == (short.easy, short.hard)
    assert isinstance(short.audit, tuple)
    assert not isinstance(long.audit, tuple)
    assert [line.uid for line in long.audit] == [example(i).uid for i in order]
    assert sorted(long.audit, key=lambda line: line.uid) == list(short.audit)


@quick
@given(SELECTIONS, st.lists(st.integers(1, 40), min_size=2, max_size=4), st.integers(1, 30))
def test_shards_with_long_audits_merge_exactly(pick, sizes, held):
    """Also a short one with a long one, and two short ones that are long together."""
    n = sum(sizes)
    seen = random_votes(n, 3, passes=3, seed=n)
    wanted = pick.size(n, 1)
    places = iter(range(n))
    parts = [[next(places) for _ in range(size)] for size in sizes]
    whole = select(pick, seen)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(audit, "MAX_LINES_IN_MEMORY", held)
        patched.setattr(audit, "CHUNK", 4)
        merged, *others = (
            pick.shard_of(
                [([example(i) for i in part], rows(seen, part))],
                LABELS,
                wanted,
                child(12, "select", 1),
            )
            for part in parts
        )
        for other in others:
            merged = pick.merge(merged, other, wanted)
        lesson = pick.lesson_of(merged, LABELS, (), wanted)
    assert isinstance(lesson.audit, tuple) == (n <= held)
    assert len(lesson.audit) == n
    assert replace(lesson, audit=tuple(sorted(lesson.audit, key=lambda line: line.uid))) == whole


def test_a_long_audit_takes_room_where_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "MAX_LINES_IN_MEMORY", 7)
    asked = []
    make = audit.tempfile.TemporaryFile
    monkeypatch.setattr(
        audit.tempfile, "TemporaryFile", lambda **how: asked.append(how["dir"]) or make(**how)
    )
    stream = [([example(i) for i in range(10)], LADDER)]
    Selection(count=2)(stream, LABELS, (), RoundDraw(10, 1, 12), folder=tmp_path)
    assert asked == [tmp_path]


def test_the_draw_of_another_round_or_seed_is_another_draw():
    seen = random_votes(200, 3, passes=3, seed=1)
    draws = [
        tuple(uids(select(Selection(count=30), seen, number=number, seed=seed).easy))
        for number in (1, 2)
        for seed in (12, 21)
    ]
    assert len(set(draws)) == 4
