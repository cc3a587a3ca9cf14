"""The last layer for one position: the same answers and gradients as from the whole layer."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from by_hand import FILMS as TASK
from selftrain.data.rows import examples
from selftrain.method.scores import certainty
from selftrain.model import fast
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.batches import Batch, collate
from selftrain.model.build import build, with_dropout_in
from selftrain.model.classifier import Classifier, states_at
from selftrain.model.families import FAMILIES
from selftrain.model.fast import one_position
from selftrain.model.pel import IA3, Adapter, BitFit, Full, LoRA, Prefix, PTuning, Tuning
from selftrain.model.surgery import twin
from selftrain.training.annotate import annotate
from small_run import MACHINE
from tiny import RECIPES

ROWS = examples(
    [
        "a great film",
        "the story was long and dull , but the acting was fine",
        "no",
        "a terrible film with a good story and a great day of news , but it is no film",
    ]
)
GOLD = torch.tensor([1, 0, 0, 1])
ACTS = ["bert", "roberta", "xlm-roberta", "electra", "distilbert"]
TUNINGS: dict[str, Tuning] = {
    "full": Full(),
    "bitfit": BitFit(),
    "adapter": Adapter(width=4),
    "prefix": Prefix(length=3),
    "prefix-mlp": Prefix(length=3, encoder="mlp"),
    "ptuning": PTuning(length=3),
    "lora": LoRA(rank=2),
    "ia3": IA3(),
    "adapter-last": Adapter(width=4, layers="last"),
    "prefix-half": Prefix(length=3, layers="half"),
    "lora-half": LoRA(rank=2, layers="half"),
    "ia3-last": IA3(layers="last"),
}
Make = Callable[[str], Backbone]


def model_of(backbone: Backbone, tuning: Tuning, reader: Any = "prompt") -> Classifier:
    """As after training: a tuning that starts as the identity would hide a mistake."""
    model = build(TASK, backbone, Architecture(tuning, reader), seed=1)
    torch.manual_seed(7)
    for parameter in model.trainable().values():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def padded(model: Classifier) -> Batch:
    """Rows of four lengths, and padding behind the longest too."""
    batch = collate(model.encode(ROWS), model.pad)
    wide = {"ids": F.pad(batch.ids, (0, 2), value=model.pad)}
    wide["attention"] = F.pad(batch.attention, (0, 2))
    if batch.types is not None:
        wide["types"] = F.pad(batch.types, (0, 2))
    assert not wide["attention"].all(1).any()
    return replace(batch, **wide)


def whole(model: Classifier, batch: Batch) -> tuple[Tensor, Tensor]:
    """Logits and features by the whole encoder, and one position picked at the end."""
    hidden = model.encoder(**batch.inputs(model.lower(batch))).last_hidden_state  # [B, L, D]
    assert hidden.shape[:2] == batch.ids.shape
    at = batch.mask_at if model.card.reader == "prompt" else torch.zeros_like(batch.mask_at)
    features = hidden[torch.arange(len(at)), at]
    reader = model.head or model.verbalizer
    assert reader is not None
    return reader(features), features


def gradients(model: Classifier, logits: Tensor) -> dict[str, Tensor | None]:
    model.zero_grad()
    F.cross_entropy(logits, GOLD).backward()
    return {name: p.grad for name, p in model.trainable().items()}


def rows_seen(model: Classifier, batch: Batch) -> list[int]:
    """How many rows go into each feed-forward output, layer by layer."""
    seen: list[int] = []
    family = model.backbone.family
    layers = list(model.encoder.get_submodule(family.layers).children())
    hooks = [
        layer.get_submodule(family.ffn_out).register_forward_pre_hook(
            lambda _, inputs: seen.append(inputs[0].shape[:-1].numel())
        )
        for layer in layers
    ]
    with torch.no_grad():
        model(batch)
    for hook in hooks:
        hook.remove()
    return seen


def test_the_families_that_can_are_those_with_keys_and_values_of_their_own() -> None:
    assert [name for name, family in FAMILIES.items() if family.plain_qkv] == ACTS


@pytest.mark.parametrize("name", TUNINGS)
@pytest.mark.parametrize("reader", ["head", "prompt"])
@pytest.mark.parametrize("family", RECIPES)
def test_answers_and_gradients_are_those_of_the_whole_layer(
    family: str, reader: Any, name: str, tiny_backbone: Make
) -> None:
    if (family, name) == ("modernbert", "bitfit"):
        return  # it has no biases
    if family == "albert" and name.endswith(("half", "last")):
        return  # its layers are one
    model = model_of(tiny_backbone(family), TUNINGS[name], reader)
    batch = padded(model)
    expected_logits, expected = whole(model, batch)
    found = model(batch)
    torch.testing.assert_close(found.features, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(found.logits, expected_logits, atol=1e-5, rtol=0)
    assert torch.equal(found.logits.argmax(1), expected_logits.argmax(1))
    by_one = gradients(model, found.logits)
    by_all = gradients(model, expected_logits)
    assert all(gradient is not None for gradient in by_all.values())
    torch.testing.assert_close(by_one, by_all, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", ACTS)
def test_without_padding_there_is_no_mask_and_all_is_seen(family: str, tiny_backbone: Make) -> None:
    model = model_of(tiny_backbone(family), Prefix(length=3))
    batch = collate(model.encode(ROWS[1:2]), model.pad)
    with torch.no_grad():
        torch.testing.assert_close(model(batch).logits, whole(model, batch)[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("reader", ["head", "prompt"])
@pytest.mark.parametrize("family", RECIPES)
def test_the_last_feed_forward_sees_one_row_of_each_example(
    family: str, reader: Any, tiny_backbone: Make
) -> None:
    model = model_of(tiny_backbone(family), Adapter(width=4), reader)
    batch = padded(model)
    every = batch.ids.numel()
    expected = [every, every, len(ROWS) if family in ACTS else every]
    assert rows_seen(model, batch) == expected
    model.train()
    assert rows_seen(model, batch) == expected


@pytest.mark.parametrize("layers", [1, 2, "half"])
@pytest.mark.parametrize("tuning", [Adapter(width=4), Prefix(length=3), LoRA(rank=2), PTuning(3)])
@pytest.mark.parametrize("family", ACTS)
def test_a_model_with_dropout_in_some_layers_reads_one_row_too(
    family: str, tuning: Tuning, layers: Any, tiny_backbone: Make
) -> None:
    model = model_of(tiny_backbone(family), tuning)
    narrow = with_dropout_in(model, layers)
    batch = padded(model)
    assert rows_seen(narrow, batch)[-1] == len(ROWS)
    with torch.no_grad():
        torch.testing.assert_close(narrow(batch).logits, whole(model, batch)[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("layers", [None, "last"])
@pytest.mark.parametrize("tuning", [Adapter(width=4), Prefix(length=3)])
@pytest.mark.parametrize("family", ACTS)
def test_dropout_passes_still_differ(
    family: str, tuning: Tuning, layers: Any, tiny_backbone: Make
) -> None:
    model = with_dropout_in(model_of(tiny_backbone(family), tuning), layers)
    ((_, votes),) = annotate(model, ROWS, 8, seed=3, machine=MACHINE)
    assert (certainty(votes) < 1).all()


@pytest.mark.parametrize("tuning", [Adapter(width=4), Prefix(length=3)])
def test_passes_vary_as_much_as_those_of_the_whole_layer(
    tuning: Tuning, tiny_backbone: Make
) -> None:
    model = with_dropout_in(model_of(tiny_backbone("bert"), tuning), "last")
    batch = padded(model)
    model.train()
    torch.manual_seed(5)
    with torch.no_grad():
        one = torch.stack([model(batch).features for _ in range(400)])
        every = torch.stack([whole(model, batch)[1] for _ in range(400)])
    assert one.std(0).mean() == pytest.approx(every.std(0).mean().item(), rel=0.05)
    sigma = (one.var(0) + every.var(0)).div(400).sqrt()
    assert ((one.mean(0) - every.mean(0)).abs() < 5 * sigma).all()


def test_other_positions_act_through_keys_and_values(tiny_backbone: Make) -> None:
    """Both with a gradient and in the answer; padding has neither."""
    model = model_of(tiny_backbone("bert"), Adapter(width=4, layers="last"), "head")
    batch = padded(model)
    state = model.lower(batch)
    assert state is not None
    state.requires_grad_()
    F.cross_entropy(model.upper(batch, state).logits, GOLD).backward()
    assert state.grad is not None
    used = state.grad.abs().sum(2) > 0  # [B, L]
    assert torch.equal(used, batch.attention.bool())


def test_a_mean_of_all_positions_computes_the_whole_layer(tiny_backbone: Make) -> None:
    backbone = replace(tiny_backbone("bert"), pooling="mean")
    model = model_of(backbone, Adapter(width=4), "head")
    batch = padded(model)
    assert rows_seen(model, batch) == [batch.ids.numel()] * 3
    assert rows_seen(model_of(backbone, Adapter(width=4)), batch)[-1] == len(ROWS)


def test_attention_of_another_kind_computes_the_whole_layer(tiny_backbone: Make) -> None:
    """It would ignore the keys and values in ``seen``."""
    encoder = twin(tiny_backbone("bert").encoder)
    encoder.config._attn_implementation = "eager"
    model = model_of(replace(tiny_backbone("bert"), encoder=encoder), Adapter(width=4))
    batch = padded(model)
    assert rows_seen(model, batch) == [batch.ids.numel()] * 3
    assert model.states_at is states_at
    with torch.no_grad():
        torch.testing.assert_close(model(batch).logits, whole(model, batch)[0])


def test_an_encoder_without_the_hook_is_an_error(tiny_backbone: Make) -> None:
    model = model_of(tiny_backbone("bert"), Adapter(width=4))
    batch = padded(model)
    bare = twin(model.encoder)
    for layer in bare.get_submodule("encoder.layer").children():
        layer._forward_pre_hooks.clear()
    with pytest.raises(AssertionError, match="was not called for this encoder"):
        one_position.states_at(bare, batch.inputs(), batch.mask_at)


def test_a_copy_answers_the_same_and_a_broken_pass_leaves_nothing(tiny_backbone: Make) -> None:
    model = model_of(tiny_backbone("bert"), Prefix(length=3))
    batch = padded(model)
    with torch.no_grad():
        expected = model(batch).logits
        assert torch.equal(copy.deepcopy(model)(batch).logits, expected)
        family = model.backbone.family
        top = model.encoder.get_submodule(f"{family.layers}.2.{family.ffn_out}")

        def fail(*_: object) -> None:
            raise RuntimeError("stopped")

        hook = top.register_forward_pre_hook(fail)
        with pytest.raises(RuntimeError, match="stopped"):
            model(batch)
        hook.remove()
        assert torch.equal(model(batch).logits, expected)
        torch.testing.assert_close(whole(model, batch)[0], expected, atol=1e-5, rtol=0)


def test_no_tensor_of_a_pass_stays_in_memory(tiny_backbone: Make) -> None:
    model = model_of(tiny_backbone("bert"), Prefix(length=3))
    born: list[weakref.ref[Tensor]] = []
    family = model.backbone.family
    for seam in (family.key, family.value):
        linear: nn.Module = model.encoder.get_submodule(f"{family.layers}.2.{seam}")
        linear.register_forward_hook(lambda _, __, output: born.append(weakref.ref(output)))
    with torch.no_grad():
        model(padded(model))
    gc.collect()
    assert born
    assert not any(ref() is not None for ref in born)


@pytest.mark.parametrize("name", TUNINGS)
def test_names_in_a_saved_model_stay_as_they_were(name: str, tiny_backbone: Make) -> None:
    backbone = tiny_backbone("bert")
    names = list(build(TASK, backbone, Architecture(TUNINGS[name], "prompt"), seed=1).state_dict())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast, "install", lambda _: None)
        assert names == list(
            build(TASK, backbone, Architecture(TUNINGS[name], "prompt"), seed=1).state_dict()
        )
