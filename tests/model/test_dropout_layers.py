"""Dropout in the upper layers only: the same answers, and passes that vary above the cut."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from by_hand import FILMS as TASK
from cut_models import TEXTS, cut_model
from selftrain.errors import ConfigError
from selftrain.method.scores import certainty
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.batches import collate
from selftrain.model.build import build, with_dropout_in
from selftrain.model.pel import Adapter, Full, Prefix, PTuning, Tuning
from selftrain.model.surgery import dropout_rates
from selftrain.training.annotate import annotate
from small_run import MACHINE

# ── passes that differ in the upper layers only ──


@pytest.mark.parametrize(
    "tuning",
    [Full(), Adapter(width=4), Adapter(width=4, layers=2), PTuning(length=3), Prefix(length=3)],
)
def test_a_model_with_dropout_in_its_upper_layers_answers_the_same_and_varies_above_the_cut(
    tuning: Tuning, backbone: Backbone
) -> None:
    model = cut_model(backbone, tuning)
    narrow = with_dropout_in(model, 1)
    batch = collate(model.encode(TEXTS), model.pad)
    with torch.no_grad():
        assert torch.equal(narrow(batch).logits, model(batch).logits)
        narrow.train()
        assert torch.equal(narrow.lower(batch), narrow.lower(batch))
        assert not torch.equal(narrow(batch).logits, narrow(batch).logits)
    shared = {p.data_ptr() for p in model.parameters()}
    assert {p.data_ptr() for p in narrow.parameters()} <= shared


def test_dropout_in_all_layers_left_is_the_model_itself(
    backbone: Backbone, tiny_backbone: Callable[[str], Backbone]
) -> None:
    model = cut_model(backbone)
    assert with_dropout_in(model, None) is model
    assert with_dropout_in(model, 1) is model
    assert with_dropout_in(model, "half") is model
    assert with_dropout_in(model, "last") is model
    shared = build(TASK, tiny_backbone("albert"), Architecture(Full()), seed=1)
    assert with_dropout_in(shared, "half") is shared
    with pytest.raises(ConfigError, match="the same weights in every layer"):
        with_dropout_in(shared, 1)


def test_passes_in_upper_layers_measure_certainty_and_do_not_change_the_teacher(
    backbone: Backbone,
) -> None:
    teacher = cut_model(backbone, Full())
    assert any(dropout_rates(teacher))
    before = teacher.probabilities(TEXTS)
    ((_, wide),) = annotate(teacher, TEXTS, 8, seed=3, machine=MACHINE)
    ((_, narrow),) = annotate(with_dropout_in(teacher, 1), TEXTS, 8, seed=3, machine=MACHINE)
    torch.testing.assert_close(narrow.plain, wide.plain, atol=1e-6, rtol=0)
    assert (certainty(narrow) < 1).all()
    assert certainty(narrow).mean() > certainty(wide).mean()
    assert torch.equal(teacher.probabilities(TEXTS), before)
    assert not teacher.training
