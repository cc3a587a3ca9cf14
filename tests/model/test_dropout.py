"""The cheaper dropout: the same as torch's except for the random numbers it draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from selftrain.model.backbone import Backbone
from selftrain.model.fast import attention, dropout
from selftrain.model.fast.dropout import Dropout, attend, drop, keep
from selftrain.model.surgery import dropout_rates, set_dropout, twin
from tiny import RECIPES


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_elements_stay_at_the_rate_and_independently(rate: float) -> None:
    torch.manual_seed(0)
    mask = keep(torch.Size((1001, 999)), rate).float()
    sigma = (rate * (1 - rate) / mask.numel()) ** 0.5
    assert abs(float(mask.mean()) - (1 - rate)) < 5 * sigma + 1 / dropout.STEPS
    # Four elements share one random number: no lag of a few may be correlated.
    flat = mask.flatten() - mask.mean()
    for lag in (1, 2, 3, 4, 8):
        shared = float((flat[lag:] * flat[:-lag]).mean())
        assert abs(shared) < 6 * max(rate * (1 - rate), 1e-9) / flat.numel() ** 0.5


def test_what_stays_is_scaled_and_has_the_gradient_of_what_stayed() -> None:
    torch.manual_seed(0)
    x = torch.randn(64, 50, requires_grad=True)
    y = drop(x, 0.25)
    stayed = y != 0
    assert 0 < int((~stayed).sum()) < x.numel()
    torch.testing.assert_close(y[stayed], x[stayed] / 0.75)
    y.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, stayed.float() / 0.75)


def test_a_rate_of_one_drops_all() -> None:
    assert not drop(torch.ones(10), 1.0).any()


def test_the_draws_follow_the_seed() -> None:
    layer, x = Dropout(0.5), torch.ones(1000)
    torch.manual_seed(3)
    first = layer(x)
    assert not torch.equal(layer(x), first)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first)


def test_nothing_is_dropped_outside_training() -> None:
    x = torch.randn(100)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0).train()(x), x)


def masked() -> tuple[Any, ...]:
    torch.manual_seed(1)
    query, key, value = torch.randn(3, 2, 4, 6, 8).unbind(0)
    seen = torch.ones(2, 1, 6, 6, dtype=torch.bool)
    seen[1, :, :, 4:] = False
    return query, key, value, seen


def test_attention_whose_draws_drop_nothing_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, value, seen = masked()
    monkeypatch.setattr(dropout, "drop", lambda x, _: x)
    for mask in (seen, None):
        found, _ = attend(nn.Module(), query, key, value, mask, dropout=0.1, is_causal=False)
        expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        torch.testing.assert_close(found, expected.transpose(1, 2), atol=1e-6, rtol=1e-5)


def test_attention_with_draws_is_right_on_the_mean() -> None:
    query, key, value, seen = masked()
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=seen).transpose(1, 2)
    found = [attend(nn.Module(), query, key, value, seen, dropout=0.3)[0] for _ in range(3000)]
    stacked = torch.stack(found)
    sigma = stacked.std(0) / len(found) ** 0.5
    assert ((stacked.mean(0) - expected).abs() < 5 * sigma + 1e-5).all()


def test_a_query_that_sees_no_key_spreads_no_nan() -> None:
    query, key, value, seen = masked()
    seen[0, :, 3] = False
    found, _ = attend(nn.Module(), query, key, value, seen, dropout=0.1)
    assert found.isfinite().all()


@pytest.mark.parametrize("family", RECIPES)
def test_an_encoder_answers_as_before_and_its_passes_vary_as_much(
    family: str, tiny_backbone: Callable[[str], Backbone]
) -> None:
    """The spread of its passes, over all rows and positions, equals that of torch's dropout."""
    backbone = tiny_backbone(family)
    plain = twin(backbone.encoder)
    set_dropout(plain, 0.1)
    cheap = twin(plain)
    dropout.install(cheap)
    attention.install(cheap)
    assert dropout_rates(cheap) == dropout_rates(plain)
    ids = torch.arange(5, 29).view(2, 12)
    mask = torch.ones_like(ids)
    mask[1, 8:] = 0
    real = mask.bool()
    with torch.no_grad():
        one, other = (m.eval()(ids, mask).last_hidden_state[real] for m in (plain, cheap))
        assert torch.equal(one, other)
        torch.manual_seed(5)
        passes = {
            name: torch.stack(
                [m.train()(ids, mask).last_hidden_state[real] for _ in range(150)]
            ).std(0)
            for name, m in (("plain", plain), ("cheap", cheap))
        }
    assert passes["cheap"].mean() == pytest.approx(passes["plain"].mean().item(), rel=0.05)
