"""What can be known before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import pytest

import small_run
from selftrain.backbone import Backbone
from selftrain.classifier import build
from selftrain.data import Example, Split
from selftrain.errors import ModelError
from selftrain.method import Method
from selftrain.pel import Adapter, Prefix
from selftrain.rehearse import LOOKED_AT, rehearse, texts_cut

METHOD, TASK = small_run.METHOD, small_run.TASK
TEACHER, (STUDENT,) = METHOD.teacher, METHOD.student


@pytest.fixture(scope="module")
def bert(tiny_backbone: Callable[[str], Backbone]) -> Backbone:
    return tiny_backbone("bert")


def test_a_run_like_any_other_has_nothing_to_tell(bert: Backbone) -> None:
    assert rehearse(TASK, small_run.split(), METHOD, bert) == []


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
        rehearse(TASK, small_run.split(), method, bert)


@pytest.mark.parametrize(
    "method",
    [
        # One round: the student never annotates. One pass, or no round: nobody measures certainty.
        replace(METHOD, rounds=1, student=(replace(STUDENT, dropout=0.0),)),
        replace(METHOD, passes=1, teacher=replace(TEACHER, dropout=0.0)),
        replace(METHOD, rounds=0, teacher=replace(TEACHER, dropout=0.0)),
        # A prefix has dropout of its own.
        replace(METHOD, student=(replace(STUDENT, dropout=0.0, changes=Prefix(length=4)),)),
    ],
)
def test_whoever_does_not_annotate_needs_none(method: Method, bert: Backbone) -> None:
    assert rehearse(TASK, small_run.split(), method, bert) == []


def test_dropout_that_was_set_for_want_of_any_is_told(
    tiny_backbone: Callable[[str], Backbone],
) -> None:
    backbone = tiny_backbone("modernbert")
    (told,) = rehearse(TASK, small_run.split(), METHOD, backbone)
    assert told == (
        f"`{backbone.name}` has no dropout of its own, and certainty needs some: 0.1 is set"
    )
    asked = replace(METHOD, teacher=replace(TEACHER, dropout=0.2))
    asked = replace(asked, student=(replace(STUDENT, dropout=0.2),))
    assert rehearse(TASK, small_run.split(), asked, backbone) == []


# ── texts and pool ───────────────────────────────────────────────────────────────────────────


def test_texts_longer_than_the_model_reads_are_counted(bert: Backbone) -> None:
    split = small_run.split()
    long = [Example(f"long-{n}", "film " * 80) for n in range(3)]
    pool = Split(split.labeled, [*split.unlabeled, *long])
    (told,) = rehearse(TASK, pool, METHOD, bert)
    assert told == "texts cut to the model's length, 64 tokens: 3 of 51 seen"


def test_only_the_first_texts_are_looked_at(bert: Backbone) -> None:
    model = build(TASK, bert, Adapter(width=1), reads="head", seed=0)
    texts = (Example(str(n), "film " * 80) for n in range(LOOKED_AT + 5))
    (told,) = texts_cut(model, texts)
    assert told.endswith(f"{LOOKED_AT} of {LOOKED_AT} seen")
    assert len(list(texts)) == 5
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
    pool = Split(split.labeled, kind(split.unlabeled))
    assert rehearse(TASK, pool, replace(METHOD, pool=50), bert) == [
        "pool smaller than asked: 40 texts, a round draws 50; all are taken"
    ]
    many = replace(METHOD, pool="all", select=replace(METHOD.select, count=30))
    assert rehearse(TASK, pool, many, bert) == [
        "pool smaller than asked: N_r is 30, half of the pool is 20"
    ]
    assert rehearse(TASK, pool, replace(METHOD, pool=50, rounds=0), bert) == []
