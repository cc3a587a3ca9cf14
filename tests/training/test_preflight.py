"""What can be known before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

import small_run
from selftrain.data import pool as pool_room
from selftrain.data.pool import clean_pool
from selftrain.data.rows import Example, Labelled, Notes, Split
from selftrain.errors import ConfigError, ModelError
from selftrain.method.selection import Reliable
from selftrain.method.spec import Method
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.build import build
from selftrain.model.pel import Adapter, Prefix
from selftrain.training import preflight as preflight_room
from selftrain.training.draw import pool_of_round
from selftrain.training.job import Job
from selftrain.training.preflight import preflight, texts_cut, texts_read

METHOD, TASK = small_run.METHOD, small_run.TASK
TEACHER, (STUDENT,) = METHOD.teacher, METHOD.student


@pytest.fixture(scope="module")
def bert(tiny_backbone: Callable[[str], Backbone]) -> Backbone:
    return tiny_backbone("bert")


def test_a_run_like_any_other_has_nothing_to_tell(bert: Backbone) -> None:
    assert preflight(Job(TASK, small_run.split(), METHOD, bert, 7)) == []


def test_labels_that_are_far_more_of_one_class_are_told(bert: Backbone) -> None:
    split = small_run.split()
    good = [row for row in split.labelled if row.label == "good"]
    more = tuple(
        replace(row, example=replace(row.example, uid=f"{row.example.uid}+")) for row in good
    )
    for labelled, told in ((split.labelled, 0), ((*split.labelled, *more), 1)):
        job = Job(TASK, replace(split, labelled=labelled), METHOD, bert, 7)
        found = [line for line in preflight(job) if line.startswith("uneven labels: `good` has ")]
        assert len(found) == told
        assert all(line.endswith("is answered worse: label more of `bad`") for line in found)


def test_where_the_encoder_leaves_labels_out_the_warning_says_how_many_it_learns(
    bert: Backbone,
) -> None:
    """12 of one class and 3 of the other: eight are learnt at least, and eight is all of 8."""
    rows = {
        label: [Labelled(small_run.example(label, n), label) for n in range(12)]
        for label in ("good", "bad")
    }
    method = replace(METHOD, teacher=replace(METHOD.teacher, balance_labels=True))
    for many, effect in (
        (12, "the encoder learns from at most 8 of each class"),
        (8, "a class with few labels is answered worse"),
    ):
        labelled = (*rows["good"][:many], *rows["bad"][:3])
        job = Job(TASK, replace(small_run.split(), labelled=labelled), method, bert, 7)
        told = f"uneven labels: `good` has {many}, `bad` 3; {effect}: label more of `bad`"
        assert told in preflight(job)


@pytest.mark.parametrize(
    "change", [{"align": True}, {"score": Reliable(scale="rank")}], ids=["align", "rank"]
)
def test_rows_that_are_all_compared_must_fit_into_memory(
    change: dict[str, Any], bert: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = replace(METHOD, select=replace(METHOD.select, **change))
    job = Job(TASK, small_run.split(), method, bert, 7)
    preflight(job)
    monkeypatch.setattr(preflight_room, "MOST_COMPARED", 23)
    with pytest.raises(ConfigError, match=r"compares each row with all others .* 24 rows") as error:
        preflight(job)
    assert "pool = " in error.value.hint
    preflight(replace(job, method=METHOD))


# ── dropout ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "method",
    [
        replace(METHOD, teacher=replace(TEACHER, dropout=0.0)),
        replace(METHOD, student=(replace(STUDENT, dropout=0.0),)),
    ],
)
def test_whoever_annotates_needs_dropout(method: Method, bert: Backbone) -> None:
    with pytest.raises(ModelError, match="3 passes would all agree"):
        preflight(Job(TASK, small_run.split(), method, bert, 7))


@pytest.mark.parametrize(
    "method",
    [
        # One round: the student never annotates. One pass, or no round: nobody measures certainty.
        replace(METHOD, rounds=1, student=(replace(STUDENT, dropout=0.0),)),
        replace(METHOD, passes=1, teacher=replace(TEACHER, dropout=0.0)),
        replace(METHOD, rounds=0, teacher=replace(TEACHER, dropout=0.0)),
        # A prefix has dropout of its own.
        replace(METHOD, student=(replace(STUDENT, dropout=0.0, tuning=Prefix(length=4)),)),
    ],
)
def test_whoever_does_not_annotate_needs_none(method: Method, bert: Backbone) -> None:
    assert preflight(Job(TASK, small_run.split(), method, bert, 7)) == []


def test_dropout_that_was_set_for_want_of_any_is_told(
    tiny_backbone: Callable[[str], Backbone],
) -> None:
    backbone = tiny_backbone("modernbert")
    (told,) = preflight(Job(TASK, small_run.split(), METHOD, backbone, 7))
    assert told == (
        f"`{backbone.name}` has no dropout of its own, and certainty needs some: 0.1 is set"
    )
    asked = replace(METHOD, teacher=replace(TEACHER, dropout=0.2))
    asked = replace(asked, student=(replace(STUDENT, dropout=0.2),))
    assert preflight(Job(TASK, small_run.split(), asked, backbone, 7)) == []


# ── texts and pool ───────────────────────────────────────────────────────────────────────────


def test_texts_longer_than_the_model_reads_are_counted(bert: Backbone) -> None:
    split = small_run.split()
    long = [Example(f"long-{n}", "film " * 80) for n in range(3)]
    pool = Split(split.labelled, [*split.unlabelled, *long])
    (told,) = preflight(Job(TASK, pool, replace(METHOD, pool=43), bert, 7))
    assert told == "texts cut to the model's length, 64 tokens: 3 of 51 seen"


def test_what_is_looked_at_is_what_the_rounds_draw_and_each_text_once(bert: Backbone) -> None:
    split = small_run.split()
    method = replace(METHOD, rounds=2, pool=24)
    job = small_run.job(bert, method)
    seen = [example.uid for example in texts_read(job)]
    pools = [pool_of_round(job, number) for number in (1, 2)]
    expected = {row.example.uid for row in split.labelled} | {e.uid for pool in pools for e in pool}
    assert len(seen) == len(set(seen))
    assert set(seen) == expected


def test_of_a_pool_too_long_to_be_held_the_first_texts_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, bert: Backbone
) -> None:
    monkeypatch.setattr(pool_room, "MAX_ROWS_IN_MEMORY", 10)
    monkeypatch.setattr(preflight_room, "FIRST_TEXTS", 5)
    split = small_run.split()
    long = Split(split.labelled, clean_pool(split.unlabelled, notes=Notes()))
    seen = list(texts_read(Job(TASK, long, replace(METHOD, pool="all", rounds=2), bert, 7)))
    assert len(seen) == len(split.labelled) + 5


def test_every_text_is_counted_however_many_there_are(bert: Backbone) -> None:
    model = build(TASK, bert, Architecture(Adapter(width=1)), seed=0)
    texts = (Example(str(n), "film " * 80 + str(n)) for n in range(3000))
    (told,) = texts_cut(model, texts)
    assert told.endswith("3000 of 3000 seen")
    assert list(texts_cut(model, [])) == []


@dataclass(frozen=True)
class Stream:
    """A pool that can be read again, and does not know how long it is."""

    rows: Iterable[Example]

    def __iter__(self) -> Iterator[Example]:
        return iter(self.rows)


@pytest.mark.parametrize("kind", [list, Stream])
def test_a_pool_smaller_than_asked_is_told(
    kind: Callable[[Iterable[Example]], Iterable[Example]], bert: Backbone
) -> None:
    split = small_run.split()
    pool = Split(split.labelled, kind(split.unlabelled))
    assert preflight(Job(TASK, pool, replace(METHOD, pool=50), bert, 7)) == [
        "pool smaller than asked: 40 texts, a round draws 50; all are taken"
    ]
    many = replace(METHOD, pool="all", select=replace(METHOD.select, count=30))
    assert preflight(Job(TASK, pool, many, bert, 7)) == [
        "pool smaller than asked: N_r is 30, half of the pool is 20"
    ]
    assert preflight(Job(TASK, pool, replace(METHOD, pool=50, rounds=0), bert, 7)) == []
