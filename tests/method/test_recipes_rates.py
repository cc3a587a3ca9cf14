"""How far the rates of a recipe can move a weight, and what weight decay takes of it."""

from __future__ import annotations

import math

import pytest
import torch

from selftrain.method.recipes import BASES, recipe
from selftrain.method.spec import Tune
from selftrain.model.backbone import load
from selftrain.model.pel import Full
from selftrain.training.fit import slope


def reach(tune: Tune, steps: int) -> float:
    """The sum of all rates: AdamW moves a weight by about its rate in a step, at most."""
    factor = slope(steps, tune.warmup)
    return tune.learning_rate * sum(map(factor, range(steps)))


def test_a_prefix_of_the_laptop_can_move_by_2():
    """80 steps: 5 up, 1/5 + ... + 5/5 = 3, then 75/75 + ... + 1/75 = 38; 41 steps at 5e-2."""
    for reader in ("head", "prompt"):
        (student,) = recipe(f"upet-{reader}-prefix").student
        assert reach(student, 80) == pytest.approx(41 * 5e-2)


def test_a_prefix_can_move_as_far_as_real_keys_are_long():
    """At the rate of P-tuning it could not: 41 steps at 5e-3 are 0.2."""
    backbone = load("minilm")
    sizes: list[float] = []
    for layer in backbone.encoder.get_submodule(backbone.family.layers):
        layer.get_submodule(backbone.family.key).register_forward_hook(
            lambda _, __, keys: sizes.append(float(keys.square().mean().sqrt()))
        )
    with torch.no_grad():
        backbone.encoder(**backbone.tokenizer("a long and dull film", return_tensors="pt"))
    (prefix,), (ptuning,) = (recipe(f"upet-head-{name}").student for name in ("prefix", "ptuning"))
    assert len(sizes) == 6
    assert reach(ptuning, 80) < 0.25 < 0.8 < min(sizes)
    assert max(sizes) < 1.5 < reach(prefix, 80)


def decayed(tune: Tune, steps: int) -> float:
    """The share of itself that a weight loses to weight decay: AdamW takes rate x decay a step."""
    return reach(tune, steps) * tune.weight_decay


@pytest.mark.parametrize("name", BASES)
def test_decay_takes_next_to_nothing_of_a_norm_or_bias_of_the_laptop(name):
    """60 steps are 31 at the full rate, 80 are 41.

    41 x 2e-5 x 0.01 = 8.2e-6, and 31 x 5e-5 x 0.01 = 1.55e-5 for `supcon`.
    """
    method = recipe(name)
    bound = 1.6e-5 if name == "supcon" else 1e-5
    for tune in (method.teacher, *method.student):
        if tune.tuning == Full():  # no module moves a norm or a bias of the encoder
            assert decayed(tune, tune.steps) < bound
    assert decayed(method.teacher, 60) == pytest.approx(31 * method.teacher.learning_rate * 0.01)


@pytest.mark.parametrize("name", BASES)
def test_decay_takes_at_most_a_seven_hundredth_of_a_norm_or_bias_of_the_paper(name):
    """Of 1,024 rows 6,400 steps, of all 4,096 rows 25,600: half of them x 1e-5 x 0.01."""
    method = recipe(name, "paper")
    for tune in method.student:
        if tune.tuning == Full():
            rows = method.select.count or method.pool
            steps = tune.steps or math.ceil(rows / tune.batch_size) * tune.epochs
            assert decayed(tune, steps) < 1 / 700


def test_decay_takes_about_a_hundredth_of_a_norm_or_bias_in_all_rounds_of_published_ust():
    """25 rounds of 3,200 steps at half of 3e-5, and the warm-up: 25 x 1,697 x 3e-5 x 0.01."""
    method = recipe("ust", "published")
    (student,) = method.student
    steps = math.ceil(method.select.count / student.batch_size) * student.epochs
    assert steps == 3200
    assert method.rounds * decayed(student, steps) == pytest.approx(0.012, abs=0.001)


def test_learned_tokens_can_move_as_far_as_word_vectors_are_long():
    """Those of MiniLM have an rms of 0.06; 41 steps at 5e-3 are 0.205."""
    backbone = load("minilm")
    words = backbone.encoder.get_submodule(backbone.family.word_embeddings).weight
    (student,) = recipe("upet-head-ptuning").student
    assert 0.05 < float(words.square().mean().sqrt()) < 0.06 < reach(student, 80)
