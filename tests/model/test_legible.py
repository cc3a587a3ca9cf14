"""Texts that an encoder can hardly read: another script, another language, signs alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from selftrain.data.rows import Example, examples
from selftrain.model.backbone import Backbone
from selftrain.model.legible import Legibility, legibility
from selftrain.training.preflight import hard_to_read

ENGLISH = "a great film with a good story and fine acting"
RUSSIAN = "Фильм был действительно прекрасным"
CHINESE = "这部电影真的很精彩"
GERMAN = "wunderbare Schauspieler beeindrucken Zuschauerinnen"


@pytest.fixture(scope="module")
def read(tiny_backbone: Callable[[str], Backbone]) -> Callable[..., Legibility]:
    return lambda texts, family="bert": legibility(texts, tiny_backbone(family).tokenizer)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_a_text_of_its_own_words_is_read_by_every_kind_of_tokenizer(
    family: str, read: Callable[..., Legibility]
) -> None:
    found = read([ENGLISH] * 3, family)
    assert (found.texts, found.hard) == (3, 0)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
@pytest.mark.parametrize("text", [RUSSIAN, CHINESE])
def test_a_script_without_pieces_is_hard_for_every_kind_of_tokenizer(
    family: str, text: str, read: Callable[..., Legibility]
) -> None:
    assert read([text, ENGLISH], family).hard == 1


def test_a_few_strange_words_do_not_make_a_text_hard(read: Callable[..., Legibility]) -> None:
    assert read([f"{ENGLISH} {ENGLISH} фильм"]).hard == 0


def test_words_of_four_letters_that_are_no_single_piece_are_counted(
    read: Callable[..., Legibility],
) -> None:
    found = read(["great film was filmgreat"])  # `was` is short
    assert (found.words, found.broken) == (3, 1)


def test_nothing_at_all_is_no_finding(read: Callable[..., Legibility]) -> None:
    assert read([]) == Legibility(0, 0, 0, 0)
    assert read(["", " . "]).hard == 0


def notes(backbone: Backbone, *texts: str) -> list[str]:
    return list(hard_to_read(backbone, examples(texts)))


def test_the_warning_has_the_share_and_the_hint(tiny_backbone: Callable[[str], Backbone]) -> None:
    bert = tiny_backbone("bert")
    (said,) = notes(bert, *[ENGLISH] * 3, RUSSIAN)
    assert "can hardly read 25% of 4 texts seen" in said
    assert "multilingual" in said
    assert "--backbone xlm-roberta-base" in said


def test_one_text_in_eleven_is_no_reason_to_warn(
    tiny_backbone: Callable[[str], Backbone],
) -> None:
    assert notes(tiny_backbone("bert"), *[ENGLISH] * 10, RUSSIAN) == []


def test_the_second_text_of_a_pair_is_looked_at_too(
    tiny_backbone: Callable[[str], Backbone],
) -> None:
    (said,) = hard_to_read(tiny_backbone("bert"), [Example("1", ENGLISH, RUSSIAN)])
    assert "50% of 2 texts" in said


@pytest.fixture(scope="module")
def minilm() -> Backbone:
    from selftrain.model.backbone import load

    return load("minilm")


def test_german_in_an_english_encoder_is_said_and_english_is_not(minilm: Backbone) -> None:
    (said,) = notes(minilm, *[GERMAN] * 20)
    assert "breaks 100% of the longer words" in said
    assert notes(minilm, *["the cast is wonderful and the story moves along nicely"] * 20) == []
    assert notes(minilm, GERMAN) == []  # too few words to tell
