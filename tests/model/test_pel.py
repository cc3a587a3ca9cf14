"""Every tuning, read by head and by prompt, on every family: all promises on each model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor
from torch.nn import functional as F

from by_hand import FILMS as TASK
from large import roberta_large
from selftrain.data.rows import Example, examples
from selftrain.errors import ConfigError
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.batches import Batch, collate
from selftrain.model.build import build
from selftrain.model.build import load as load_model
from selftrain.model.classifier import Classifier
from selftrain.model.heads import Output
from selftrain.model.pel import IA3, Adapter, AnyTuning, BitFit, Full, LoRA, Prefix, PTuning, Tuning
from selftrain.model.prompt import word_ids
from selftrain.model.surgery import dropout_rates
from tiny import RECIPES

ROWS = examples(["a great film", "the story was long and dull , but the acting was fine", "no"])


MORE = examples(["a terrible film with a good story and a great day of news , but it is no film"])


TEXTS = (*ROWS, *MORE)


PAIRS = (
    Example("1", "a great film", "no , it was terrible"),
    Example("2", "no", "the story was long and dull , but the acting was fine"),
    Example("3", "the acting was fine", "yes"),
    Example("4", "a terrible film with a good story", "it is a great day of news , but no film"),
)


TUNINGS: dict[str, tuple[Tuning, str]] = {  # and what every tensor it adds has in its name
    "full": (Full(), ""),
    "bitfit": (BitFit(), "bias"),
    "adapter": (Adapter(width=4), ".adapter."),
    "prefix": (Prefix(length=3), "prefix."),
    "prefix-mlp": (Prefix(length=3, encoder="mlp"), "prefix."),
    "ptuning": (PTuning(length=3), ".vectors"),
    "ptuning-mlp": (PTuning(length=3, encoder="mlp"), "embeddings."),
    "ptuning-lstm": (PTuning(length=3, encoder="lstm"), "embeddings."),
    "lora": (LoRA(rank=2), ".lora_"),
    "ia3": (IA3(), ".ia3_"),
    "adapter-half": (Adapter(width=4, layers="half"), ".adapter."),
    "prefix-half": (Prefix(length=3, encoder="mlp", layers="half"), "prefix."),
    "lora-half": (LoRA(rank=2, layers="half"), ".lora_"),
    "ia3-half": (IA3(layers="half"), ".ia3_"),
    "bitfit-half": (BitFit(layers="half"), "bias"),
}


REFUSED = {
    ("modernbert", "bitfit"): "no biases",
    ("albert", "-half"): "same weights in every layer",
}


STARTS_ELSEWHERE = ("prefix", "ptuning")


"""Learned keys, values and vectors take attention from the first step on: with no neutral value
to start from, these alone do not begin as the plain model."""


@pytest.mark.parametrize("name", TUNINGS)
@pytest.mark.parametrize("reader", ["head", "prompt"])
@pytest.mark.parametrize("family", RECIPES)
def test_a_tuning_keeps_every_promise(
    family: str,
    reader: Any,
    name: str,
    tiny_backbone: Callable[[str], Backbone],
    tmp_path: Path,
) -> None:
    backbone = tiny_backbone(family)
    tuning, mark = TUNINGS[name]
    for (other, part), problem in REFUSED.items():
        if family == other and part in name:
            with pytest.raises(ConfigError, match=problem):
                build(TASK, backbone, Architecture(tuning, reader), seed=1)
            return
    model = build(TASK, backbone, Architecture(tuning, reader), seed=1)
    if not name.startswith(STARTS_ELSEWHERE):
        starts_as_the_plain_model(model)
    only_what_is_tuned_moves(model, mark)
    padding_and_company_change_nothing(model)
    reload_answers_the_same(model, tmp_path)


@pytest.mark.parametrize("name", TUNINGS)
@pytest.mark.parametrize("rows", [TEXTS, PAIRS], ids=["texts", "pairs"])
def test_a_tuning_keeps_its_promises_where_the_mean_is_pooled(
    rows: Sequence[Example], name: str, tiny_backbone: Callable[[str], Backbone]
) -> None:
    """As the default backbone does it."""
    task = replace(TASK, template=None, pair=rows is PAIRS)
    tuning, mark = TUNINGS[name]
    mean = replace(tiny_backbone("bert"), pooling="mean")
    model = build(task, mean, Architecture(tuning), seed=1)
    if not name.startswith(STARTS_ELSEWHERE):
        starts_as_the_plain_model(model, rows)
    only_what_is_tuned_moves(model, mark, rows[:3])
    padding_and_company_change_nothing(model, rows)


def starts_as_the_plain_model(model: Classifier, rows: Sequence[Example] = ROWS) -> None:
    batch = collate(model.encode(rows), model.pad)
    with torch.no_grad():
        found, expected = model(batch), plain_answer(model, batch)
    exact = model.card.reader == "prompt" or model.backbone.pooling == "cls"
    if model.backbone.family.plain_qkv or not exact:  # other shapes or order, other last bits
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    else:
        assert torch.equal(found.features, expected.features)
        assert torch.equal(found.logits, expected.logits)


def plain_answer(model: Classifier, batch: Batch) -> Output:
    """What the backbone says as it was loaded, read by the model's head or its own MLM head."""
    backbone = model.backbone
    hidden: Tensor = backbone.encoder(**batch.inputs()).last_hidden_state  # [B, L, D]
    if model.card.reader == "prompt":
        assert backbone.mlm is not None
        state = hidden[torch.arange(len(hidden)), batch.mask_at]
        words = torch.tensor([word for (word,) in word_ids(model.task, backbone)])
        return Output(backbone.mlm(state, words), state)
    assert model.head is not None
    state = hidden[:, 0]
    if backbone.pooling == "mean":
        lengths = batch.attention.sum(1).tolist()
        state = torch.stack([row[:n].mean(0) for row, n in zip(hidden, lengths, strict=True)])
    return Output(F.linear(state, model.head.out.weight, model.head.out.bias), state)


def only_what_is_tuned_moves(model: Classifier, mark: str, rows: Sequence[Example] = ROWS) -> None:
    """Three steps: behind a zero up-projection nothing has a gradient before the second."""
    tuned = model.trainable()
    assert tuned
    assert all(mark in n or n.startswith(("head.", "verbalizer.mlm.")) for n in tuned)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = torch.optim.Adam(tuned.values(), lr=0.01)
    batch = collate(model.encode(rows), model.pad)
    model.train()
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(model(batch).logits, torch.tensor([1, 0, 0])).backward()
        optimizer.step()
    model.eval()
    still = f"{model.backbone.family.key}.bias"
    for name, parameter in model.named_parameters():
        assert (parameter.grad is not None) == (name in tuned), name
        if name.endswith(still):
            continue  # softmax does not see what is added to all keys alike: no gradient but noise
        assert torch.equal(parameter, before[name]) == (name not in tuned), name


def padding_and_company_change_nothing(model: Classifier, given: Sequence[Example] = TEXTS) -> None:
    rows = model.encode(given)
    with torch.no_grad():
        together = model(collate(rows, model.pad)).logits
        for row, logits in zip(rows, together, strict=True):
            alone = model(collate([row], model.pad)).logits[0]
            torch.testing.assert_close(alone, logits, atol=1e-5, rtol=1e-4)


def reload_answers_the_same(model: Classifier, folder: Path) -> None:
    model.save(folder)
    again = load_model(folder, model.backbone)
    batch = collate(model.encode(ROWS), model.pad)
    with torch.no_grad():
        assert torch.equal(model(batch).logits, again(batch).logits)
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "model.safetensors"]


@pytest.fixture(scope="module")
def large(tiny_backbone: Callable[[str], Backbone]) -> Backbone:
    return roberta_large(tiny_backbone("roberta"))


@pytest.mark.parametrize(
    ("tuning", "reader", "rest", "count"),
    [
        (PTuning(length=16), "head", {}, 16_384 + 2_050),
        (PTuning(length=16), "prompt", {}, 16_384),
        (Prefix(length=64), "prompt", {}, 3_145_728),
        (Prefix(length=128), "prompt", {}, 6_291_456),
        (Adapter(width=128), "prompt", {}, 12_638_208),
        (Adapter(width=128), "head", {"head": "dense"}, 13_689_858),
        (Adapter(width=128), "prompt", {"lm_head": "tuned"}, 13_740_121),
        (Full(), "prompt", {}, 355_412_057),  # all of roberta-large, its LM head included
    ],
)
def test_tunable_counts_for_roberta_large_are_those_of_the_paper(
    large: Backbone, tuning: Tuning, reader: Any, rest: Any, count: int
) -> None:
    with torch.device("meta"):
        model = build(TASK, large, Architecture(tuning, reader, **rest), seed=1)
    assert sum(p.numel() for p in model.trainable().values()) == count


@pytest.mark.parametrize(
    "tuning", [BitFit(layers=1), Adapter(layers=1), Prefix(layers=1), LoRA(layers=1), IA3(layers=1)]
)
@pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert", "mpnet"])
def test_layers_counts_from_the_top(
    family: str, tuning: Tuning, tiny_backbone: Callable[[str], Backbone]
) -> None:
    if (family, tuning) == ("modernbert", BitFit(layers=1)):
        return
    model = build(TASK, tiny_backbone(family), Architecture(tuning), seed=1)
    assert model.trunk is not None
    layers = model.backbone.family.layers
    whole = model.backbone.encoder.get_submodule(f"{layers}.2")
    top = model.encoder.get_submodule(f"{layers}.0")
    shared = {p.data_ptr() for p in whole.parameters()} & {p.data_ptr() for p in top.parameters()}
    assert len(shared) > 1
    assert len(list(model.encoder.get_submodule(layers).children())) == 1
    assert len(list(model.trunk.layers.get_submodule(layers).children())) == 2
    start = f"encoder.{layers}.0."
    assert all(name.startswith((start, "head.")) for name in model.trainable())
    assert any(name.startswith(start) for name in model.trainable())


def test_more_layers_than_there_are_is_an_error(tiny_backbone: Callable[[str], Backbone]) -> None:
    with pytest.raises(ConfigError, match="layers is 4; expected at most the encoder's 3"):
        build(TASK, tiny_backbone("bert"), Architecture(Adapter(layers=4)), seed=1)


def test_layers_means_nothing_where_all_share_their_weights(
    tiny_backbone: Callable[[str], Backbone],
) -> None:
    with pytest.raises(ConfigError, match="same weights in every layer"):
        build(TASK, tiny_backbone("albert"), Architecture(Adapter(layers=1)), seed=1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Adapter(width=0),
        lambda: Adapter(layers=0),
        lambda: BitFit(layers=-1),
        lambda: Prefix(length=0),
        lambda: Prefix(dropout=1.0),
        lambda: PTuning(length=0),
        lambda: LoRA(rank=0),
        lambda: IA3(layers=0),
    ],
)
def test_a_number_out_of_range_is_an_error(make: Callable[[], Tuning]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        make()


def test_a_tuning_is_read_by_its_kind() -> None:
    parse = TypeAdapter[AnyTuning](AnyTuning).validate_python
    for tuning, _ in TUNINGS.values():
        plain = TypeAdapter(AnyTuning).dump_python(tuning)
        assert plain["kind"] == tuning.kind
        assert parse(plain) == tuning
    with pytest.raises(ValidationError):
        parse({"kind": "magic"})


def test_a_tuning_is_read_without_importing_torch() -> None:
    code = "import sys, selftrain.model.pel, selftrain.data.task; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_learned_vectors_stand_behind_the_first_token_and_are_not_pooled(
    tiny_backbone: Callable[[str], Backbone],
) -> None:
    backbone = replace(tiny_backbone("bert"), pooling="mean")
    model = build(TASK, backbone, Architecture(PTuning(length=3)), seed=1)
    plain = build(TASK, backbone, Architecture(Full()), seed=1)
    (row,), (bare,) = model.encode(ROWS[:1]), plain.encode(ROWS[:1])
    assert row.ids == (bare.ids[0],) * 4 + bare.ids[1:]
    batch = collate([row], model.pad)
    with torch.no_grad():
        hidden: Tensor = model.encoder(
            input_ids=batch.ids, attention_mask=batch.attention
        ).last_hidden_state[0]
        by_hand = torch.cat([hidden[:1], hidden[4:]]).mean(0)
        torch.testing.assert_close(model(batch).features[0], by_hand)


def test_vectors_that_leave_no_room_for_a_text_are_an_error(
    tiny_backbone: Callable[[str], Backbone],
) -> None:
    with pytest.raises(ConfigError, match="room for a text"):
        build(TASK, tiny_backbone("bert"), Architecture(PTuning(length=60)), seed=1)


@pytest.mark.parametrize("family", RECIPES)
def test_dropout_acts_in_the_frozen_part_and_only_in_training(
    family: str, tiny_backbone: Callable[[str], Backbone]
) -> None:
    model = build(TASK, tiny_backbone(family), Architecture(Adapter(width=4), "prompt"), seed=1)
    batch = collate(model.encode(ROWS), model.pad)
    with torch.no_grad():
        assert torch.equal(model(batch).logits, model(batch).logits)
        model.train()
        assert not torch.equal(model(batch).logits, model(batch).logits)


def test_a_backbone_without_dropout_gets_some_and_says_so(
    tiny_backbone: Callable[[str], Backbone],
) -> None:
    for family, added in {"albert": 0.1, "modernbert": 0.1, "bert": None}.items():
        backbone = tiny_backbone(family)
        model = build(TASK, backbone, Architecture(Adapter(width=4)), seed=1)
        assert model.dropout_added == added
        assert set(dropout_rates(model.encoder)) == {0.1}
        assert set(dropout_rates(backbone.encoder)) == ({0.1} if added is None else {0.0})


def test_the_rate_of_dropout_can_be_set(tiny_backbone: Callable[[str], Backbone]) -> None:
    model = build(TASK, tiny_backbone("bert"), Architecture(Adapter(), dropout=0.3), seed=1)
    assert set(dropout_rates(model)) == {0.3}
    assert model.dropout_added is None
