"""What a round draws from the pool: uniformly, from any kind of pool, and never a gold label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial

import pytest

from by_hand import GOLD, MACHINE, METHOD, POOL, STUDENT, TASK, same
from selftrain.data import audit_lines as audit
from selftrain.data import pool as pool_room
from selftrain.data.fewshot import fingerprint
from selftrain.data.pool import Pool, clean_pool
from selftrain.data.rows import Example, Labelled, Notes, Split, examples
from selftrain.data.split import make_split
from selftrain.model.architecture import Architecture
from selftrain.model.build import build
from selftrain.model.pel import Adapter, Full
from selftrain.seeds import child
from selftrain.training import memory
from selftrain.training.draw import draw, draws_of, pool_of_round, slice_rows
from selftrain.training.job import Job
from selftrain.training.memory import encoded
from small_loop import SEED, run

# ── the draw ─────────────────────────────────────────────────────────────────────────────────────


def test_the_draw_does_not_depend_on_the_order_of_the_pool():
    """Algorithm 1, line 4."""
    assert draw(POOL, 7, seed=1) == draw(POOL[::-1], 7, seed=1) == draw(iter(POOL), 7, seed=1)
    assert draw(POOL, 7, seed=1) != draw(POOL, 7, seed=2)


def test_a_pool_smaller_than_asked_is_taken_whole():
    assert sorted(draw(POOL, 1000, seed=1), key=POOL.index) == POOL
    assert sorted(draw(POOL, None, seed=1), key=POOL.index) == POOL
    assert draw([], 5, seed=1) == []


def test_every_row_is_drawn_equally_often():
    """Algorithm 1, line 4: uniformly. 3 of 10, 3,000 seeds: .3, four standard errors are .033."""
    times = Counter(
        example.uid for seed in range(3000) for example in draw(POOL[:10], 3, seed=seed)
    )
    shares = [times[example.uid] / 3000 for example in POOL[:10]]
    assert shares == pytest.approx([0.3] * 10, abs=0.034)


# ── a pool larger than memory ────────────────────────────────────────────────────────────────────

EVERYTHING = replace(METHOD, pool="all", rounds=1)


def job_on(pool, method=METHOD) -> Job:
    """A job whose pool is drawn from; no model of it is built."""
    return Job(TASK, Split(GOLD, pool), method, None, SEED)


def streamed(rows, monkeypatch) -> Pool:
    """A pool that is read from its source each time."""
    monkeypatch.setattr(pool_room, "MAX_ROWS_IN_MEMORY", len(rows) - 1)
    return clean_pool(rows, notes=Notes())


@pytest.mark.parametrize("kind", [list, tuple, iter, lambda rows: clean_pool(rows, notes=Notes())])
def test_all_of_a_pool_that_is_held_comes_in_the_same_order(kind):
    expected = draw(POOL, None, seed=child(SEED, "pool", 1))
    for rows in (POOL, POOL[::-1]):
        assert pool_of_round(job_on(kind(rows), EVERYTHING), 1) == expected


def test_all_of_a_pool_that_is_streamed_is_taken_as_it_comes(monkeypatch):
    pool = streamed(POOL, monkeypatch)
    assert pool_of_round(job_on(pool, EVERYTHING), 1) is pool
    some = pool_of_round(job_on(pool), 1)
    assert some == pool_of_round(job_on(POOL), 1), "a part of it is drawn as ever"


def test_a_streamed_pool_gives_the_round_of_a_held_one_in_that_order(
    tiny_backbone, monkeypatch, tmp_path
):
    """The same bits; of the audit, the same lines. Nothing is left where the audit was kept."""
    cut = replace(STUDENT, tuning=Adapter(width=4, layers=1))  # so that a plan is made too
    method = replace(EVERYTHING, student=(cut,))
    in_order = draw(POOL, None, seed=child(SEED, "pool", 1))
    held = run(tiny_backbone("bert"), method, Split(GOLD, in_order))
    monkeypatch.setattr(audit, "MAX_LINES_IN_MEMORY", 7)
    monkeypatch.setattr(audit, "CHUNK", 4)
    monkeypatch.setattr(memory, "ENCODED_TOGETHER", 5)
    split = Split(GOLD, streamed(in_order, monkeypatch))
    long = run(tiny_backbone("bert"), method, split, machine=replace(MACHINE, cache=tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert same(long[1].model, held[1].model)
    for name in ("pool", "picked", "hard", "confidence", "certainty", "classes", "classes picked"):
        assert long[1].numbers[name] == held[1].numbers[name]
    lines = list(long[1].lesson.audit)
    assert not isinstance(long[1].lesson.audit, tuple)
    assert [line.uid for line in lines] == [example.uid for example in in_order]
    assert sorted(lines, key=lambda line: line.uid) == list(held[1].lesson.audit)


def test_rows_are_tokenised_as_they_are_asked_for(tiny_backbone, monkeypatch):
    monkeypatch.setattr(memory, "ENCODED_TOGETHER", 8)
    model = build(TASK, tiny_backbone("bert"), Architecture(Full(), "prompt"), seed=1)
    read = []
    rows = encoded(model, (read.append(example) or example for example in POOL))
    first = [next(rows) for _ in range(9)]
    assert len(read) == 16
    assert [*first, *rows] == model.encode(POOL)


class Counted:
    """Rows that count how often all of them were read."""

    def __init__(self, rows: list[Example]) -> None:
        self.rows, self.reads = rows, 0

    def __iter__(self) -> Iterator[Example]:
        yield from self.rows
        self.reads += 1


@pytest.mark.parametrize("told", [True, False], ids=["draws told", "draws not told"])
def test_a_run_reads_its_pool_once_and_draws_what_lists_give(told, monkeypatch) -> None:
    monkeypatch.setattr(pool_room, "MAX_ROWS_IN_MEMORY", 100)
    rows = examples([f"text {number}" for number in range(3_000)])
    source = Counted([*rows, *rows[:7], Example("x", " ")])
    method = replace(METHOD, rounds=3)
    draws = partial(draws_of, method, 12) if told else tuple
    split = make_split(GOLD, source, notes=Notes(), draws=draws)
    job = Job(TASK, split, method, None, 12)
    by_hand = Job(TASK, make_split(GOLD, rows, notes=Notes()), method, None, 12)
    assert source.reads == 1
    for number in (1, 2, 3, 1):
        wanted = list(draws_of(by_hand.method, by_hand.seed))[number]
        assert pool_of_round(job, number) == draw(rows, wanted.size, seed=wanted.seed)
    wanted = next(draws_of(job.method, job.seed))
    assert slice_rows(job) == draw(rows, wanted.size, seed=wanted.seed)
    assert split.unlabelled.fingerprint == fingerprint(rows)
    assert source.reads == (1 if told else 2)


# ── no gold label of the pool is ever seen ───────────────────────────────────────────────────────


def test_the_type_of_the_pool_has_no_label():
    assert [field.name for field in fields(Example)] == ["uid", "text", "pair"]
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(POOL[0], "label", "good")


def test_labelled_rows_are_no_pool(tiny_backbone):
    with pytest.raises(AttributeError):
        run(tiny_backbone("bert"), split=Split(GOLD, [Labelled(POOL[0], "good")] * 4))
