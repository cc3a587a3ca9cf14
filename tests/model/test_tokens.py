"""How texts become rows: here, that none is tokenised twice."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence

import pytest

import small_run
from selftrain.data.rows import Example
from selftrain.model import tokens as reading
from selftrain.model.backbone import Backbone
from selftrain.model.batches import Row
from selftrain.model.build import build
from selftrain.model.pel import Adapter, Full, PTuning

EXAMPLES = [Example(str(n), f"film {n}") for n in range(4)]


class Tokenizer:
    """Whoever it is: rows are held for it alone."""


class Reader:
    """Reads a text as its length, and counts how often."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, examples: Sequence[Example]) -> list[Row]:
        self.seen += [example.text for example in examples]
        return [Row(tuple(map(ord, example.text))) for example in examples]


def test_a_text_is_read_once_and_every_row_is_its_own() -> None:
    tokenizer, read = Tokenizer(), Reader()
    first = reading.once([*EXAMPLES[:2], EXAMPLES[0]], tokenizer, "how", read)
    again = reading.once(EXAMPLES, tokenizer, "how", read)
    assert read.seen == [example.text for example in EXAMPLES]
    assert again == Reader()(EXAMPLES)
    assert first == [again[0], again[1], again[0]]


def test_another_way_tokenizer_or_second_text_is_read_anew() -> None:
    tokenizer, read = Tokenizer(), Reader()
    for who, how in ((tokenizer, 1), (tokenizer, 2), (Tokenizer(), 1)):
        reading.once(EXAMPLES[:1], who, how, read)
    reading.once([Example("0", "film 0", "a pair")], tokenizer, 1, read)
    assert read.seen == ["film 0"] * 4


def test_texts_are_told_apart_also_where_one_holds_what_parts_a_pair() -> None:
    tokenizer, read = Tokenizer(), Reader()
    alike = [("a\x1fb", None), ("a", "b"), ("a\x1fb", "c"), ("a", "b\x1fc"), ("a", None), ("a", "")]
    reading.once([Example("", *sides) for sides in alike], tokenizer, "how", read)
    assert read.seen == [text for text, _ in alike]


def test_what_is_held_of_a_text_does_not_grow_with_it() -> None:
    tokenizer = Tokenizer()
    long = Example("0", "word " * 10_000, "more " * 10_000)
    reading.once([long], tokenizer, "how", lambda _: [Row((1, 2))])
    assert len(repr(reading._held[tokenizer])) < 200


def test_only_so_many_rows_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "HELD", 3)
    tokenizer, read = Tokenizer(), Reader()
    assert len(reading.once(EXAMPLES, tokenizer, "how", read)) == 4
    reading.once(EXAMPLES[1:], tokenizer, "how", read)
    assert len(read.seen) == 4
    reading.once(EXAMPLES[:1], tokenizer, "how", read)
    assert read.seen[4:] == ["film 0"]


def test_nothing_is_held_for_a_tokenizer_that_is_gone() -> None:
    tokenizer = Tokenizer()
    gc.collect()  # those of other tests
    before = len(reading._held)
    reading.once(EXAMPLES, tokenizer, "how", Reader())
    assert len(reading._held) == before + 1
    del tokenizer
    gc.collect()
    assert len(reading._held) == before


def test_teacher_and_student_tokenise_a_text_once_between_them(
    tiny_backbone: Callable[[str], Backbone], monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone = tiny_backbone("bert")
    texts: list[str] = []
    whole = reading.tokenise

    def counted(given: Sequence[str], tokenizer: object) -> object:
        texts.extend(given)
        return whole(given, tokenizer)

    monkeypatch.setattr(reading, "tokenise", counted)
    examples = [Example(str(n), f"a text nobody has read, {n}") for n in range(3)]
    models = [
        build(small_run.TASK, backbone, tuning, reader="head", seed=1)
        for tuning in (Full(), Adapter(width=2), PTuning(length=2))
    ]
    texts.clear()
    teacher, student, other = (model.encode(examples) for model in models)
    assert teacher == student
    assert [len(row.ids) for row in other] == [len(row.ids) + 2 for row in teacher]
    assert texts == 2 * [example.text for example in examples]
