"""Token rows of selftrain-lite are those of selftrain: row for row, for every kind of tokenizer."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from selftrain.data.rows import Example
from selftrain.data.task import Task
from selftrain.export.facts import tokens_of
from selftrain.export.folder import write_tokenizer
from selftrain.export.parity import without_slots
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.build import build
from selftrain.model.pel import BitFit, PTuning
from selftrain_lite.folder import _rule as rule_of
from selftrain_lite.rows import RowMaker

# One for each kind of tokenizer: WordPiece, byte-level BPE, and a Unigram as SentencePiece has.
FAMILIES = ["bert", "roberta", "albert"]
ALL_FAMILIES = [
    *FAMILIES, "xlm-roberta", "electra", "distilbert", "deberta-v2", "modernbert", "mpnet"
]  # fmt: skip
TEMPLATES = {
    False: ["{text} It was {mask} .", "{mask} news : {text}", "It is {mask}, {text}!"],
    True: ["{a} ? {mask} , {b}", "{a} {mask}: {b}", "{mask} {b}. {a}"],
}
WORDS = {"no": ("terrible",), "yes": ("great",)}
TEXT = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from(
            [
                "great",
                "film",
                "story",
                "[MASK]",
                "<mask>",
                "</s>",
                "[SEP]",
                "?",
                "!",
                ".",
                "  ",
                "é",
            ]
        ),
        max_size=40,
    ).map(" ".join),
)

Both = tuple[Callable[[list[Example]], list[object]], RowMaker]


@pytest.fixture(scope="session")
def makers(
    tiny_backbone: Callable[[str], Backbone], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str | None, bool], Both]:
    """Rows of a model, and the maker of rows that an export of it would have."""

    @cache
    def make(family: str, template: str | None, pair: bool) -> Both:
        words = WORDS if template else {}
        task = Task(
            "small", ("no", "yes"), template=template, words=words, pair=pair, max_length=24
        )
        tuning = PTuning(length=2) if template else BitFit()
        if family == "modernbert" and not template:
            tuning = PTuning(length=2)  # it has no biases
        reader = "prompt" if template else "head"
        model = build(task, tiny_backbone(family), Architecture(tuning, reader), seed=0)
        folder = tmp_path_factory.mktemp("tokenizer")
        write_tokenizer(model, folder)
        stored = json.loads(json.dumps(tokens_of(model)))
        rule = rule_of(stored, pair=pair, prompt=template is not None)
        return without_slots(model), RowMaker(Tokenizer.from_file(f"{folder}/tokenizer.json"), rule)

    return make


def check(both: Both, texts: list[tuple[str, str]], *, pair: bool) -> None:
    theirs, ours = both
    examples = [Example(str(n), a, b if pair else None) for n, (a, b) in enumerate(texts)]
    expected = [(row.ids, row.types) for row in theirs(examples)]  # type: ignore[attr-defined]
    found = ours.rows([(each.text, each.pair) for each in examples], pair=pair)
    assert [(row.ids, row.types) for row in found] == expected


KINDS = [
    (None, False),
    (None, True),
    *((t, pair) for pair in (False, True) for t in TEMPLATES[pair]),
]


@pytest.mark.parametrize(("template", "pair"), KINDS)
@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4))
@example(texts=[("", ""), ("a " * 90, "film " * 5), ("a " * 5, "great " * 90), ("a " * 90,) * 2])
@example(texts=[("It was great!?…", "Yes, İt is."), ("\x00\u200b\ufffd", "  "), ("ﬁ", "\u0301")])
def test_rows_are_those_of_selftrain(
    makers: Callable[[str, str | None, bool], Both],
    family: str,
    template: str | None,
    pair: bool,
    texts: list[tuple[str, str]],
) -> None:
    check(makers(family, template, pair), texts, pair=pair)


@pytest.mark.slow
@pytest.mark.parametrize(("template", "pair"), KINDS)
@pytest.mark.parametrize("family", ALL_FAMILIES)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4))
def test_rows_of_every_family_are_those_of_selftrain(
    makers: Callable[[str, str | None, bool], Both],
    family: str,
    template: str | None,
    pair: bool,
    texts: list[tuple[str, str]],
) -> None:
    check(makers(family, template, pair), texts, pair=pair)
