"""How texts become rows of token ids: no text is tokenised twice."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import small_run
from selftrain.data.rows import Example
from selftrain.model import tokens
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone, load
from selftrain.model.batches import Row
from selftrain.model.build import build
from selftrain.model.pel import Adapter, Full, PTuning
from selftrain.model.tokens import TokenCache

EXAMPLES = [Example(str(n), f"film {n}") for n in range(4)]


class Reader:
    """Reads a text as its characters, and counts how often."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, examples: Sequence[Example]) -> list[Row]:
        self.seen += [example.text for example in examples]
        return [Row(tuple(map(ord, example.text))) for example in examples]


def test_a_text_is_read_once_and_every_example_gets_its_own_row() -> None:
    cache, read = TokenCache(), Reader()
    first = cache.encode([*EXAMPLES[:2], EXAMPLES[0]], "settings", read)
    again = cache.encode(EXAMPLES, "settings", read)
    assert read.seen == [example.text for example in EXAMPLES]
    assert again == Reader()(EXAMPLES)
    assert first == [again[0], again[1], again[0]]


def test_other_settings_another_cache_or_second_text_is_read_again() -> None:
    cache, read = TokenCache(), Reader()
    for other, settings in ((cache, 1), (cache, 2), (TokenCache(), 1)):
        other.encode(EXAMPLES[:1], settings, read)
    cache.encode([Example("0", "film 0", "a pair")], 1, read)
    assert read.seen == ["film 0"] * 4


def test_texts_are_distinguished_also_where_one_contains_the_separator_of_a_pair() -> None:
    cache, read = TokenCache(), Reader()
    alike = [("a\x1fb", None), ("a", "b"), ("a\x1fb", "c"), ("a", "b\x1fc"), ("a", None), ("a", "")]
    cache.encode([Example("", *sides) for sides in alike], "settings", read)
    assert read.seen == [text for text, _ in alike]


def test_the_cache_does_not_grow_with_the_length_of_a_text() -> None:
    cache = TokenCache()
    long = Example("0", "word " * 10_000, "more " * 10_000)
    cache.encode([long], "settings", lambda _: [Row((1, 2))])
    assert len(repr(cache._rows)) < 200


def test_the_oldest_rows_leave_a_full_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MAX_ROWS", 3)
    cache, read = TokenCache(), Reader()
    assert len(cache.encode(EXAMPLES, "settings", read)) == 4
    cache.encode(EXAMPLES[1:], "settings", read)
    assert len(read.seen) == 4
    cache.encode(EXAMPLES[:1], "settings", read)
    assert read.seen[4:] == ["film 0"]


def test_the_cache_belongs_to_the_backbone_and_goes_with_it(
    tiny_folder: Callable[[str], Path],
) -> None:
    backbone = load(tiny_folder("bert"))
    build(small_run.TASK, backbone, Architecture(Full()), seed=1).encode(EXAMPLES)
    cache = weakref.ref(backbone.token_cache)
    assert replace(backbone, pooling="mean").token_cache is not backbone.token_cache
    del backbone
    gc.collect()
    assert cache() is None


def test_teacher_and_student_tokenise_a_text_once_between_them(
    tiny_backbone: Callable[[str], Backbone], monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone = tiny_backbone("bert")
    texts: list[str] = []
    tokenise = tokens.tokenise

    def counted(given: Sequence[str], tokenizer: object) -> object:
        texts.extend(given)
        return tokenise(given, tokenizer)

    monkeypatch.setattr(tokens, "tokenise", counted)
    examples = [Example(str(n), f"a text nobody has read, {n}") for n in range(3)]
    models = [
        build(small_run.TASK, backbone, Architecture(tuning), seed=1)
        for tuning in (Full(), Adapter(width=2), PTuning(length=2))
    ]
    texts.clear()
    teacher, student, other = (model.encode(examples) for model in models)
    assert teacher == student
    assert [len(row.ids) for row in other] == [len(row.ids) + 2 for row in teacher]
    assert texts == 2 * [example.text for example in examples]


def test_rows_that_another_thread_drops_meanwhile_are_still_given() -> None:
    cache, read = TokenCache(), Reader()
    cache.encode(EXAMPLES[:2], "settings", read)

    def read_while_another_thread_empties_it(examples: Sequence[Example]) -> list[Row]:
        cache._rows.clear()
        return read(examples)

    rows = cache.encode(EXAMPLES, "settings", read_while_another_thread_empties_it)
    assert [row.ids for row in rows] == [tuple(map(ord, each.text)) for each in EXAMPLES]
