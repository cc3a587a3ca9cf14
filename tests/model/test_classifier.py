"""A classifier: what it reads, what it says, and how it is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM

from selftrain.data.rows import Example, examples
from selftrain.data.task import Task, find
from selftrain.errors import ConfigError, ModelError, SelftrainError
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.batches import collate
from selftrain.model.build import build, copy
from selftrain.model.build import load as load_model
from selftrain.model.classifier import Classifier
from selftrain.model.pel import Adapter, Full, PTuning
from tiny import RECIPES

Backbones = Callable[[str], Backbone]
TASK = find("sst2")
ROWS = examples(["a great film", "the story was long and dull , but the acting was fine", "no"])


def head(backbone: Backbone, seed: int = 1, **options: Any) -> Classifier:
    return build(TASK, backbone, Architecture(Adapter(width=4), **options), seed=seed)


def prompt(backbone: Backbone, seed: int = 1, **options: Any) -> Classifier:
    return build(TASK, backbone, Architecture(Adapter(width=4), "prompt", **options), seed=seed)


@pytest.mark.parametrize("family", RECIPES)
def test_a_prompt_says_what_the_whole_language_model_says_at_the_mask(
    family: str, tiny_backbone: Backbones, tiny_folder: Callable[[str], Path]
) -> None:
    backbone = tiny_backbone(family)
    model = prompt(backbone)
    whole = AutoModelForMaskedLM.from_pretrained(tiny_folder(family)).eval()
    batch = collate(model.encode(ROWS), model.pad)
    tokenizer = backbone.tokenizer
    words = [
        tokenizer(f" {w}", add_special_tokens=False)["input_ids"] for w in ("terrible", "great")
    ]
    with torch.no_grad():
        everything = whole(input_ids=batch.ids, attention_mask=batch.attention).logits
        expected = everything[torch.arange(3), batch.mask_at][:, [ids[0] for ids in words]]
        torch.testing.assert_close(model(batch).logits, expected, atol=1e-5, rtol=1e-5)
    assert (batch.ids[torch.arange(3), batch.mask_at] == tokenizer.mask_token_id).all()


def test_the_probabilities_of_a_classes_words_add(tiny_backbone: Backbones) -> None:
    many = TASK.changed({"words": {"negative": ["terrible", "dull"], "positive": ["great"]}})
    backbone = tiny_backbone("bert")
    model = build(many, backbone, Architecture(Full(), "prompt"), seed=1)
    batch = collate(model.encode(ROWS), model.pad)
    assert model.verbalizer is not None
    with torch.no_grad():
        p = model.verbalizer.mlm(model(batch).features, model.verbalizer.ids).softmax(1)  # [B, 3]
        by_hand = torch.stack([p[:, 0] + p[:, 1], p[:, 2]], dim=1)
        torch.testing.assert_close(model(batch).logits.softmax(1), by_hand)


def test_the_pooled_vector_is_the_first_token_or_the_mean_of_the_real_ones(
    tiny_backbone: Backbones,
) -> None:
    for pooling in ("cls", "mean"):
        backbone = replace(tiny_backbone("bert"), pooling=pooling)
        model = head(backbone)
        batch = collate(model.encode(ROWS), model.pad)
        with torch.no_grad():
            hidden = backbone.encoder(
                input_ids=batch.ids, attention_mask=batch.attention
            ).last_hidden_state
            short = int(batch.attention[2].sum())
            by_hand = hidden[2, 0] if pooling == "cls" else hidden[2, :short].mean(0)
            torch.testing.assert_close(model(batch).features[2], by_hand)


@pytest.mark.parametrize("family", RECIPES)
def test_a_pair_is_framed_as_its_tokenizer_frames_it(family: str, tiny_backbone: Backbones) -> None:
    backbone = tiny_backbone(family)
    task = replace(TASK, pair=True)
    model = build(task, backbone, Architecture(Adapter(width=4)), seed=1)
    (row,) = model.encode([Example("x", "a great film", "no , it was terrible")])
    expected = backbone.tokenizer(
        "a great film", "no , it was terrible", return_token_type_ids=True
    )
    assert list(row.ids) == expected["input_ids"]
    if family in ("bert", "electra", "albert"):
        assert row.types is not None
        assert list(row.types) == expected["token_type_ids"]
    else:
        assert row.types is None


def test_the_second_segment_of_a_pair_is_seen(tiny_backbone: Backbones) -> None:
    model = build(
        replace(TASK, pair=True), tiny_backbone("bert"), Architecture(Adapter(width=4)), seed=1
    )
    (row,) = model.encode([Example("x", "great", "great")])
    with torch.no_grad():
        typed = model(collate([row], model.pad)).features
        untyped = model(collate([replace(row, types=None)], model.pad)).features
    assert not torch.allclose(typed, untyped)


@pytest.mark.parametrize("reader", ["head", "prompt"])
def test_a_long_text_is_cut_to_length_and_the_loss_is_counted(
    reader: Any, tiny_backbone: Backbones
) -> None:
    task = replace(TASK, max_length=12)
    model = build(task, tiny_backbone("bert"), Architecture(PTuning(length=4), reader), seed=1)
    short, long = model.encode(examples(["great", "great " * 30]))
    assert (short.cut, len(long.ids)) == (0, 12 + 4)
    frame = 2 if reader == "head" else 2 + 4  # [CLS] and [SEP]; "it was [MASK] ."
    assert long.cut == 30 - (12 - frame)


def test_a_long_pair_loses_from_its_longer_text(tiny_backbone: Backbones) -> None:
    task = replace(TASK, pair=True, max_length=16)
    model = build(task, tiny_backbone("bert"), Architecture(Adapter(width=4)), seed=1)
    (row,) = model.encode([Example("x", "great " * 30, "no film")])
    assert len(row.ids) == 16
    assert model.backbone.tokenizer.decode(row.ids[-4:]) == "[SEP] no film [SEP]"


def test_the_same_seed_is_the_same_model_and_no_other_randomness_moves(
    tiny_backbone: Backbones,
) -> None:
    backbone = tiny_backbone("bert")
    before = torch.random.get_rng_state()
    one, same, other = (head(backbone, seed=seed).state() for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["head.out.weight"], other["head.out.weight"])


def test_answers_come_in_the_order_of_the_examples(
    tiny_backbone: Backbones, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("selftrain.model.batches.CPU_TOKENS", 16)  # several groups, out of order
    model = head(tiny_backbone("bert"))
    together = model.probabilities(ROWS)
    assert together.dtype == torch.float32
    torch.testing.assert_close(together.sum(1), torch.ones(3))
    for row, answer in zip(ROWS, together, strict=True):
        torch.testing.assert_close(model.probabilities([row])[0], answer, atol=1e-5, rtol=1e-4)


def test_no_examples_are_no_answers_and_training_goes_on_training(
    tiny_backbone: Backbones,
) -> None:
    model = head(tiny_backbone("bert")).train()
    assert model.probabilities([]).shape == (0, 2)
    model.probabilities(ROWS)
    assert model.training


def test_a_heads_parameters_are_known_by_their_name(tiny_backbone: Backbones) -> None:
    linear = head(tiny_backbone("bert")).trainable()
    dense = head(tiny_backbone("bert"), head="dense").trainable()
    assert {n for n in linear if n.startswith("head.")} == {"head.out.weight", "head.out.bias"}
    assert {"head.dense.weight", "head.dense.bias"} <= dense.keys()


def test_a_tuned_lm_head_moves_but_its_decoder_rows_stay(tiny_backbone: Backbones) -> None:
    frozen = prompt(tiny_backbone("bert")).trainable()
    tuned = prompt(tiny_backbone("bert"), lm_head="tuned").trainable()
    assert tuned.keys() - frozen.keys() == {
        f"verbalizer.mlm.{name}"
        for name in ("dense.weight", "dense.bias", "norm.weight", "norm.bias", "bias")
    }


def test_full_tuning_under_a_prompt_keeps_the_decoder_tied(tiny_backbone: Backbones) -> None:
    model = build(TASK, tiny_backbone("bert"), Architecture(Full(), "prompt"), seed=1)
    assert model.verbalizer is not None
    words = model.encoder.get_submodule("embeddings.word_embeddings").weight
    assert model.verbalizer.mlm.weight is words
    assert (
        words
        is not tiny_backbone("bert").encoder.get_submodule("embeddings.word_embeddings").weight
    )


def test_a_copy_answers_the_same_and_goes_its_own_way(tiny_backbone: Backbones) -> None:
    model = head(tiny_backbone("bert"))
    with torch.no_grad():
        for parameter in model.trainable().values():
            parameter.add_(0.1)
    second = copy(model)
    assert torch.equal(second.probabilities(ROWS), model.probabilities(ROWS))
    with torch.no_grad():
        for parameter in second.trainable().values():
            parameter.add_(0.1)
    assert not torch.equal(second.probabilities(ROWS), model.probabilities(ROWS))
    frozen = model.encoder.get_submodule("embeddings.word_embeddings").weight
    assert second.encoder.get_submodule("embeddings.word_embeddings").weight is frozen


def test_a_backbone_without_language_model_cannot_be_prompted(tiny_backbone: Backbones) -> None:
    bare = replace(tiny_backbone("bert"), mlm=None, name="bare")
    with pytest.raises(ModelError, match="`bare` has no pretrained MLM head") as caught:
        prompt(bare)
    assert "upet-head-adapter" in caught.value.hint


def test_a_state_must_fit_exactly(tiny_backbone: Backbones) -> None:
    model = head(tiny_backbone("bert"))
    state = {name: tensor.clone() for name, tensor in model.state().items()}
    for odd, problem in (
        ({n: t for n, t in state.items() if n != "head.out.bias"}, "lacks tensor `head.out.bias`"),
        (state | {"extra": torch.zeros(1)}, "unknown tensor `extra`"),
        (state | {"head.out.bias": torch.zeros(1)}, "tensor `head.out.bias`"),
        (state | {"head.out.bias": torch.zeros(2, dtype=torch.float64)}, "tensor `head.out.bias`"),
    ):
        with pytest.raises(ModelError, match=problem):
            model.load_state(odd)


@pytest.fixture
def saved(tiny_backbone: Backbones, tmp_path: Path) -> Path:
    head(tiny_backbone("bert")).save(tmp_path)
    return tmp_path


def test_a_model_is_loaded_with_the_backbone_it_is_given(
    saved: Path, tiny_backbone: Backbones
) -> None:
    model = load_model(saved, tiny_backbone("bert"))
    assert model.labels == ("negative", "positive")
    assert model.probabilities(ROWS).shape == (3, 2)


def test_a_backbone_that_only_the_card_names_is_not_followed(saved: Path) -> None:
    with pytest.raises(ModelError, match="is not embedded"):
        load_model(saved)


def test_only_what_was_tuned_is_saved(saved: Path) -> None:
    names = load_file(saved / "model.safetensors").keys()
    assert all(".adapter." in n or n.startswith("head.") for n in names)


def rewrite(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": 1}, "format 1; this version reads format 2"),
        ({"format": 3}, "format 3; this version reads format 2"),
        ({"surprise": 1}, "surprise"),
        ({"reader": "mind"}, "reader"),
        ({"tuning": {"kind": "adapter", "width": 8}}, "expected F32"),
        ({"tuning": {"kind": "adapter", "width": 10**13}}, "expected from 1 to 65,536"),
        ({"tuning": {"kind": "adapter", "width": -1}}, "adapter width is -1"),
        ({"tuning": {"kind": "lora"}}, "tensor"),
        ({"head": "dense"}, r"lacks tensor `head\.dense\.bias`"),
        ({"dropout": "much"}, "dropout"),
        ({"dropout": 1.0}, "dropout"),
        ({"dropout": -0.1}, "dropout"),
        ({"dropout": float("nan")}, "dropout"),
        ({"task": {"name": "t", "labels": ["a"]}}, "1 class"),
        ({"task": {"name": "t", "labels": ["a", "b", "c"]}}, r"tensor `head\.out"),
        ({"backbone": {"name": "x", "revision": None, "sha256": "0"}}, "sha256"),
    ],
)
def test_a_forged_card_is_refused(
    changes: dict[str, Any], problem: str, saved: Path, tiny_backbone: Backbones
) -> None:
    rewrite(saved / "model.json", **changes)
    with pytest.raises(SelftrainError, match=problem):
        load_model(saved, tiny_backbone("bert"))


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"format": 2}'])
def test_a_card_that_is_none_is_refused(text: str, saved: Path, tiny_backbone: Backbones) -> None:
    (saved / "model.json").write_text(text)
    with pytest.raises(ModelError, match="is no model card"):
        load_model(saved, tiny_backbone("bert"))


def test_a_giant_card_is_not_even_read(saved: Path, tiny_backbone: Backbones) -> None:
    with (saved / "model.json").open("ab") as file:
        file.truncate(2**30)
    with pytest.raises(ModelError, match="bytes; expected at most"):
        load_model(saved, tiny_backbone("bert"))


def test_a_folder_without_card_or_tensors_is_refused(
    saved: Path, tmp_path: Path, tiny_backbone: Backbones
) -> None:
    (saved / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        load_model(saved, tiny_backbone("bert"))
    with pytest.raises(ModelError, match=r"has no model\.json"):
        load_model(tmp_path / "nowhere")


def test_damaged_or_foreign_tensors_are_refused(saved: Path, tiny_backbone: Backbones) -> None:
    path = saved / "model.safetensors"
    whole = path.read_bytes()
    half = {name: tensor.half() for name, tensor in load_file(path).items()}
    for damage in (b"", whole[:100], whole[:-8], b"\xff" * 64):
        path.write_bytes(damage)
        with pytest.raises(ModelError, match="cannot be read"):
            load_model(saved, tiny_backbone("bert"))
    for odd, problem in ((half, "is F16"), ({"x": torch.zeros(1)}, "lacks tensor")):
        save_file(odd, path)
        with pytest.raises(ModelError, match=problem):
            load_model(saved, tiny_backbone("bert"))


def test_a_pipe_in_the_place_of_tensors_is_not_waited_for(
    saved: Path, tiny_backbone: Backbones, monkeypatch: pytest.MonkeyPatch
) -> None:
    (saved / "model.safetensors").unlink()
    os.mkfifo(saved / "model.safetensors")
    monkeypatch.setattr("selftrain.model.saved.safe_open", lambda *_: pytest.fail("it was opened"))
    with pytest.raises(ModelError, match="cannot be read"):
        load_model(saved, tiny_backbone("bert"))


def test_tensors_behind_a_link_are_read(saved: Path, tiny_backbone: Backbones) -> None:
    """As in a hub's cache."""
    path = saved / "model.safetensors"
    path.rename(saved / "blob")
    path.symlink_to("blob")
    assert load_model(saved, tiny_backbone("bert")).labels == ("negative", "positive")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_whose_numbers_are_none_is_refused(
    value: float, saved: Path, tiny_backbone: Backbones
) -> None:
    tensors = load_file(saved / "model.safetensors")
    tensors["head.out.bias"][0] = value
    save_file(tensors, saved / "model.safetensors")
    with pytest.raises(ModelError, match=r"`head.out.bias` of .* has values that are no numbers"):
        load_model(saved, tiny_backbone("bert"))


def test_a_prompt_without_words_or_template_is_an_error(tiny_backbone: Backbones) -> None:
    with pytest.raises(ConfigError, match="no template"):
        build(Task("t", ("a", "b")), tiny_backbone("bert"), Architecture(Full(), "prompt"), seed=1)


def test_a_template_that_leaves_no_room_is_found_when_the_model_is_built(
    tiny_backbone: Backbones,
) -> None:
    task = replace(TASK, template="{text} " + "it was " * 5 + "{mask} .", max_length=12)
    with pytest.raises(ConfigError, match="the template alone is 12 tokens"):
        build(task, tiny_backbone("bert"), Architecture(Full(), "prompt"), seed=1)
