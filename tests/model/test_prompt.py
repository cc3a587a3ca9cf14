"""Templates, label words, and where the mask stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from selftrain.data.rows import Example, examples
from selftrain.data.task import Task, find
from selftrain.errors import ConfigError
from selftrain.model.backbone import Backbone
from selftrain.model.prompt import Filled, check, fill, parse, shorten, template_of, word_ids
from tiny import RECIPES

Backbones = Callable[[str], Backbone]


def filled(
    backbone: Backbone, template: str, text: str, pair: str | None = None, *, room: int = 60
) -> tuple[Filled, list[str]]:
    """A filled template, and its tokens as words."""
    read = parse(template, pair=pair is not None)
    (row,) = fill(read, [Example("x", text, pair)], backbone.tokenizer, room)
    return row, backbone.tokenizer.convert_ids_to_tokens(row.ids)


def test_a_template_is_filled_and_its_mask_found(tiny_backbone: Backbones) -> None:
    row, tokens = filled(tiny_backbone("bert"), "{text} It was {mask} .", "a great film")
    assert tokens == ["a", "great", "film", "it", "was", "[MASK]", "."]
    assert row == Filled(row.ids, mask_at=5, cut=0)


def test_a_blank_belongs_to_the_word_behind_it_and_none_is_left_before_the_mask(
    tiny_backbone: Backbones,
) -> None:
    _, tokens = filled(tiny_backbone("roberta"), "{text} It was {mask} .", "great")
    assert tokens[-4:] == ["ĠIt", "Ġwas", "<mask>", "Ġ."]
    _, tokens = filled(tiny_backbone("xlm-roberta"), "{text} It was {mask} .", "great")
    assert tokens == ["▁great", "▁It", "▁was", "<mask>", "▁."]


def test_a_template_may_start_with_its_mask(tiny_backbone: Backbones) -> None:
    row, tokens = filled(tiny_backbone("bert"), "{mask} news : {text}", "the story")
    assert tokens == ["[MASK]", "news", ":", "the", "story"]
    assert row.mask_at == 0


@pytest.mark.parametrize("family", RECIPES)
def test_special_tokens_in_a_text_are_ordinary_text(family: str, tiny_backbone: Backbones) -> None:
    backbone = tiny_backbone(family)
    tokenizer: Any = backbone.tokenizer
    text = f"a {tokenizer.mask_token} film {tokenizer.sep_token} great {tokenizer.pad_token}"
    row, tokens = filled(backbone, "{text} It was {mask} .", text)
    assert row.ids.count(tokenizer.mask_token_id) == 1
    assert tokens[row.mask_at] == tokenizer.mask_token
    assert not {tokenizer.sep_token_id, tokenizer.pad_token_id} & set(row.ids)


@pytest.mark.parametrize("family", RECIPES)
@pytest.mark.parametrize("room", [6, 9, 12])
def test_only_the_text_is_cut_and_never_the_template_or_the_mask(
    family: str, room: int, tiny_backbone: Backbones
) -> None:
    backbone = tiny_backbone(family)
    template = "{text} it was {mask} !"
    _, bare = filled(backbone, template, "")
    row, tokens = filled(backbone, template, "the film was long and dull " * 4, room=room)
    whole, _ = filled(backbone, template, "the film was long and dull " * 4, room=1000)
    assert len(row.ids) == room
    assert tokens[row.mask_at] == backbone.tokenizer.mask_token
    assert row.cut == len(whole.ids) - room
    assert [t.strip("Ġ▁") for t in tokens[-len(bare) :]] == [t.strip("Ġ▁") for t in bare]


@pytest.mark.parametrize("family", RECIPES)
def test_of_a_pair_the_longer_text_is_cut_first(family: str, tiny_backbone: Backbones) -> None:
    backbone = tiny_backbone(family)
    row, tokens = filled(backbone, "{a} ? {mask} , {b}", "great " * 20, "no film", room=12)
    assert [token.strip("Ġ▁") for token in tokens[-3:]] == [",", "no", "film"]
    assert len(row.ids) == 12
    row, tokens = filled(backbone, "{a} ? {mask} , {b}", "a film", "great " * 20, room=12)
    assert [token.strip("Ġ▁") for token in tokens[:3]] == ["a", "film", "?"]
    assert len(row.ids) == 12


def test_the_longest_text_gives_first() -> None:
    assert shorten([5, 5], 20) == [5, 5]
    assert shorten([30, 4], 20) == [16, 4]
    assert shorten([4, 30], 20) == [4, 16]
    assert shorten([30, 29], 20) == [10, 10]
    assert shorten([30, 29], 21) == [11, 10]
    assert shorten([11, 30], 21) == [11, 10]


def test_a_template_too_long_for_its_room_is_an_error(tiny_backbone: Backbones) -> None:
    with pytest.raises(ConfigError, match="the template alone is 4 tokens"):
        filled(tiny_backbone("bert"), "{text} It was {mask} .", "great", room=4)


def words(template: str, a: str, b: str, backbone: Backbone) -> str:
    row, _ = filled(backbone, template, a, b)
    text: str = backbone.tokenizer.decode(row.ids)
    return text


def test_the_templates_punctuation_takes_the_place_of_the_texts(tiny_backbone: Backbones) -> None:
    backbone = tiny_backbone("modernbert")  # cased and exact: it can spell anything
    mnli = "{a} ? {mask} , {b}"
    assert words(mnli, "It was great .", "No film was.", backbone) == (
        "It was great ?[MASK] , no film was."
    )
    assert words(mnli, "Was it?!", "Yes", backbone) == "Was it ?[MASK] , yes"


def test_a_text_keeps_its_punctuation_where_the_template_brings_none(
    tiny_backbone: Backbones,
) -> None:
    backbone = tiny_backbone("modernbert")
    assert words("{a} {mask} , {b}", "It was great.", "Yes", backbone) == (
        "It was great.[MASK] , yes"
    )
    assert words("{a} {mask} {b}", "It was.", "Yes!", backbone) == "It was.[MASK] Yes!"


@pytest.mark.parametrize(
    ("template", "pair", "problem"),
    [
        ("{text} It was great .", False, "0 {mask}; expected 1"),
        ("{mask} {text} {mask}", False, "2 {mask}; expected 1"),
        ("It was {mask} .", False, "0 {text}; expected 1"),
        ("{text} {text} {mask}", False, "2 {text}; expected 1"),
        ("{a} {mask} .", True, "0 {b}; expected 1"),
        ("{text} {mask}", True, "0 {a}; expected 1"),
        ("{a} {mask} {b}", False, "0 {text}; expected 1"),
        ("{text} {mask} {title}", False, "1 {title}; expected 0"),
        ("{text} {mask", False, "cannot be read"),
        ("{text!r} {mask}", False, "has more in {text} than a name"),
    ],
)
def test_a_template_that_cannot_be_filled_is_an_error(
    template: str, pair: bool, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(template, pair=pair)
    assert problem in caught.value.message
    assert "--template" in caught.value.hint


def task_with(**words: str) -> Task:
    return Task(
        "t", tuple(words), "{text} It was {mask} .", {label: (w,) for label, w in words.items()}
    )


@pytest.mark.parametrize("family", RECIPES)
def test_a_label_word_is_the_token_of_the_middle_of_a_sentence(
    family: str, tiny_backbone: Backbones
) -> None:
    tokenizer = tiny_backbone(family).tokenizer
    ((great,), _) = word_ids(task_with(good="great", bad="terrible"), tiny_backbone(family))
    sentence = tokenizer("the film was great", add_special_tokens=False)["input_ids"]
    assert sentence[-1] == great


@pytest.mark.parametrize("family", ["roberta", "modernbert"])
def test_a_label_word_is_not_the_token_of_the_start_of_a_sentence(
    family: str, tiny_backbone: Backbones
) -> None:
    tokenizer = tiny_backbone(family).tokenizer
    ((great,), _) = word_ids(task_with(good="great", bad="terrible"), tiny_backbone(family))
    assert tokenizer("great", add_special_tokens=False)["input_ids"] != [great]


def test_a_word_is_lowered_where_the_model_knows_no_capitals(tiny_backbone: Backbones) -> None:
    task = find("rte")
    assert [row.pieces for row in check(task, tiny_backbone("bert"))] == [("yes",), ("no",)]
    assert [row.pieces for row in check(task, tiny_backbone("roberta"))] == [("ĠYes",), ("ĠNo",)]
    assert [row.pieces for row in check(task, tiny_backbone("albert"))] == [("▁Yes",), ("▁No",)]


def test_a_word_of_several_tokens_is_an_error(tiny_backbone: Backbones) -> None:
    task = task_with(negative="newsy", positive="great")
    (row, fine) = check(task, tiny_backbone("bert"))
    assert (row.ok, fine.ok) == (False, True)
    assert len(row.pieces) > 1
    with pytest.raises(ConfigError) as caught:
        word_ids(task, tiny_backbone("bert"))
    assert caught.value.message == (
        f"label word `newsy` of class `negative` is {len(row.pieces)} tokens "
        f"for `{tiny_backbone('bert').name}`; prompts need 1"
    )
    assert "--method upet-head-adapter" in caught.value.hint


def test_an_unknown_word_is_an_error(tiny_backbone: Backbones) -> None:
    with pytest.raises(ConfigError, match="label word `猫` of class `b` is unknown to"):
        word_ids(task_with(a="great", b="猫"), tiny_backbone("bert"))


@pytest.mark.parametrize("other", ["great", "Great"])
def test_a_word_shared_by_two_classes_is_an_error(other: str, tiny_backbone: Backbones) -> None:
    with pytest.raises(ConfigError, match="is the same token as `great` of class `a`"):
        word_ids(task_with(a="great", b=other), tiny_backbone("bert"))


def test_a_class_without_word_is_an_error(tiny_backbone: Backbones) -> None:
    task = Task("t", ("a", "b"), "{text} {mask}", {"a": ("great",)})
    with pytest.raises(ConfigError, match="class `b` has no label word"):
        word_ids(task, tiny_backbone("bert"))


def test_a_word_for_no_class_is_an_error(tiny_backbone: Backbones) -> None:
    task = find("sst2").changed(
        {"words": {"negative": "terrible", "positive": "great", "neutral": "fine"}}
    )
    with pytest.raises(ConfigError, match="`neutral`, which is no class"):
        word_ids(task, tiny_backbone("bert"))


def test_a_task_without_template_is_an_error() -> None:
    with pytest.raises(ConfigError, match="has no template; prompts need one"):
        template_of(Task("t", ("a", "b")))


def test_empty_texts_are_filled_too(tiny_backbone: Backbones) -> None:
    rows = fill(
        parse("{text} It was {mask} .", pair=False),
        examples(["", "   "]),
        tiny_backbone("roberta").tokenizer,
        20,
    )
    assert [row.cut for row in rows] == [0, 0]
