"""TAPT: an encoder reads the pool before it sees a label."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from by_hand import MACHINE, METHOD, POOL, SPLIT, STUDENT, TASK, same
from selftrain.data.rows import Example
from selftrain.errors import ConfigError, ModelError
from selftrain.method.spec import TAPT
from selftrain.model.architecture import Architecture
from selftrain.model.build import build
from selftrain.model.build import load as load_model
from selftrain.model.pel import Adapter, Full
from selftrain.runs.lines import line_of
from selftrain.training.job import Job
from selftrain.training.loop import self_train
from selftrain.training.tapt import hide, pretrain

HOW = TAPT(steps=3, batch_size=8, learning_rate=1e-3)
ALONE = replace(METHOD, student=(), rounds=0)


def test_masked_words_are_guessed_better_after_reading_the_pool(tiny_backbone):
    backbone = tiny_backbone("bert")
    model = build(TASK, backbone, Architecture(Full()), seed=1)
    few = pretrain(model, POOL, replace(HOW, steps=2), seed=1, machine=MACHINE)
    many = pretrain(
        model, POOL, replace(HOW, steps=200, learning_rate=1e-2), seed=1, machine=MACHINE
    )
    assert many < 0.85 * few


def test_without_a_word_to_mask_nothing_is_learnt_and_nothing_told(tiny_backbone):
    model = build(TASK, tiny_backbone("bert"), Architecture(Full()), seed=1)
    before = {name: tensor.clone() for name, tensor in model.state().items()}
    nothing = [Example("empty", "")]
    assert pretrain(model, nothing, replace(HOW, batch_size=1), seed=1, machine=MACHINE) is None
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state().items())


def test_the_backbone_and_its_head_stay_as_they_were(tiny_backbone):
    backbone = tiny_backbone("bert")
    parts = {**dict(backbone.encoder.named_parameters()), **dict(backbone.mlm.named_parameters())}
    before = {name: p.detach().clone() for name, p in parts.items()}
    model = build(TASK, backbone, Architecture(Full()), seed=1)
    pretrain(model, POOL, HOW, seed=1, machine=MACHINE)
    assert all(torch.equal(before[name], p) for name, p in parts.items())
    fresh = build(TASK, backbone, Architecture(Full()), seed=1)
    assert not same(model, fresh)


def test_an_adapted_teacher_is_saved_with_what_it_read(tiny_backbone, tmp_path):
    backbone = tiny_backbone("bert")
    (only,) = self_train(Job(TASK, SPLIT, replace(ALONE, tapt=HOW), backbone, 1), machine=MACHINE)
    assert f"masked-word loss {only.numbers['adapted']:.2f}" in line_of(only, 0)
    only.model.save(tmp_path)
    again = load_model(tmp_path, backbone)
    assert torch.equal(again.read(POOL).logits, only.model.read(POOL).logits)
    (plain,) = self_train(Job(TASK, SPLIT, ALONE, backbone, 1), machine=MACHINE)
    assert not same(plain.model, only.model)


def test_reading_twice_with_one_seed_gives_the_same_bits(tiny_backbone):
    models = [
        build(TASK, tiny_backbone("bert"), Architecture(Full(), "prompt"), seed=1) for _ in range(2)
    ]
    for model in models:
        pretrain(model, POOL, HOW, seed=5, machine=MACHINE)
    assert same(*models)


def test_special_tokens_and_padding_are_never_masked(tiny_backbone):
    tokenizer = tiny_backbone("bert").tokenizer
    ids = torch.tensor([[tokenizer.cls_token_id, 9, 10, tokenizer.sep_token_id]])
    ids = torch.cat([ids, torch.full((1, 40), tokenizer.pad_token_id)], dim=1)
    hidden, where = hide(ids, tokenizer, 0.999, torch.Generator().manual_seed(0))
    assert where.nonzero().tolist() == [[0, 1], [0, 2]]
    assert hidden[where].tolist() == [tokenizer.mask_token_id] * 2
    assert torch.equal(hidden[~where], ids[~where])


def test_an_encoder_without_an_mlm_head_is_named(tiny_backbone):
    backbone = replace(tiny_backbone("bert"), mlm=None)
    model = build(TASK, backbone, Architecture(Full()), seed=1)
    with pytest.raises(ModelError, match="no pretrained MLM head"):
        pretrain(model, POOL, HOW, seed=1, machine=MACHINE)


def test_students_would_start_without_it_so_rounds_are_refused():
    with pytest.raises(ConfigError, match="tapt"):
        replace(METHOD, student=(STUDENT,), rounds=1, tapt=HOW)
    with pytest.raises(ConfigError, match="tapt"):
        replace(ALONE, teacher=replace(METHOD.teacher, tuning=Adapter()), tapt=HOW)
