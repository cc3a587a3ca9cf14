"""Losses against autograd, finite differences, and loops written from the formula."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from selftrain.errors import ConfigError
from selftrain.method.losses import (
    PHCE,
    CrossEntropy,
    EasyHard,
    Soft,
    SupCon,
    contrast,
    phce,
    supcon,
)

quick = settings(max_examples=60, deadline=None, derandomize=True)
SHARES = st.floats(1e-6, 1 - 1e-6)
TAUS = st.floats(1.01, 100)


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


# ── PHCE ─────────────────────────────────────────────────────────────────────────────────────


@quick
@given(st.lists(SHARES, min_size=1, max_size=8), TAUS)
def test_phce_never_pulls_harder_than_tau(shares, tau):
    """Eq. 14: |d loss / d p| = min(tau, 1/p)."""
    p = tensor(shares).requires_grad_()
    phce(p.log(), tau).sum().backward()
    assert (p.grad.abs() <= tau * (1 + 1e-9)).all()
    torch.testing.assert_close(-p.grad, (1 / p.detach()).clamp(max=tau))


@quick
@given(st.lists(st.floats(-6, 6), min_size=3, max_size=3), st.integers(0, 2), TAUS)
def test_phce_gradient_equals_finite_differences(logits, label, tau):
    z = tensor([logits])
    labels = torch.tensor([label])
    z.requires_grad_()
    PHCE(tau)(z, labels, z).sum().backward()
    step = 1e-6
    for c in range(3):
        nudge = torch.zeros_like(z)
        nudge[0, c] = step
        with torch.no_grad():
            rise = PHCE(tau)(z + nudge, labels, z) - PHCE(tau)(z - nudge, labels, z)
        # A difference across the joint is off by the jump in curvature, which is tau² there.
        assert float(rise) / (2 * step) == pytest.approx(float(z.grad[0, c]), abs=1e-4)


@quick
@given(st.lists(SHARES, min_size=1, max_size=8), TAUS)
def test_phce_lies_below_cross_entropy_and_touches_it_above_the_joint(shares, tau):
    p = tensor(shares)
    huber, plain = phce(p.log(), tau), -p.log()
    assert (huber <= plain + 1e-12).all()
    assert torch.equal(huber[p > 1.0001 / tau], plain[p > 1.0001 / tau])


@pytest.mark.parametrize("tau", [1e6, 1e39, 1e300])
def test_phce_with_a_huge_tau_is_cross_entropy_in_value_and_gradient(tau):
    """Eq. 14, tau → ∞; also where tau p is no float32 any more."""
    labels = torch.tensor([0, 1, 2])
    z = torch.tensor([[2.0, 0.0, -1.0], [2.0, 0.0, -1.0], [2.0, 0.0, -1.0]])
    ours, plain = z.clone().requires_grad_(), z.clone().requires_grad_()
    value, expected = PHCE(tau)(ours, labels, z), CrossEntropy()(plain, labels, z)
    torch.testing.assert_close(value, expected)
    value.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(ours.grad, plain.grad)


def test_a_hopeless_label_has_a_finite_loss_and_gradient():
    z = torch.tensor([[200.0, -200.0]], requires_grad=True)
    value = PHCE(10)(z, torch.tensor([1]), z)
    value.sum().backward()
    assert value.item() == pytest.approx(math.log(10) + 1)
    assert z.grad.abs().max() < 1e-30, "a label the student finds impossible no longer pulls"


@pytest.mark.parametrize("tau", [1, 1.0, 0.5, 0, -3, math.nan])
def test_tau_must_exceed_one(tau):
    with pytest.raises(ConfigError, match=r"tau is .* above 1"):
        PHCE(tau)


# ── cross entropy and soft labels ────────────────────────────────────────────────────────────


def test_soft_loss_of_a_one_hot_teacher_is_cross_entropy():
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    labels = torch.tensor([0, 1, 2, 1, 0])
    soft = Soft()(z, labels, torch.eye(3)[labels])
    torch.testing.assert_close(soft, CrossEntropy()(z, labels, z))


def test_soft_loss_by_hand():
    """p = (.75, .25), teacher (.5, .5): -.5 ln .75 - .5 ln .25 = .143841 + .693147 = .836988."""
    value = Soft()(tensor([[0.75, 0.25]]).log(), torch.tensor([0]), tensor([[0.5, 0.5]]))
    assert value.tolist() == pytest.approx([0.836988], abs=1e-6)


@pytest.mark.parametrize("loss", [CrossEntropy(), Soft(), PHCE(2.0), PHCE(10.0)], ids=repr)
def test_each_loss_gives_one_value_a_row_and_adds_no_constant_to_logits(loss):
    z = torch.randn(4, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    labels, soft = torch.tensor([0, 1, 2, 0]), z.flip(0).softmax(1)
    each = loss(z, labels, soft)
    assert each.shape == (4,)
    torch.testing.assert_close(loss(z + 100, labels, soft), each)


# ── contrast ─────────────────────────────────────────────────────────────────────────────────


def contrast_by_loop(anchors, positives, negatives, temperature) -> list[float]:
    """Eq. 10 as SPEC writes it, one exponential at a time."""

    def g(x, y) -> float:
        dot = sum(float(a) * float(b) for a, b in zip(x, y, strict=True))
        norms = math.sqrt(sum(float(a) ** 2 for a in x) * sum(float(b) ** 2 for b in y))
        return dot / norms / temperature

    values = []
    for x, near, far in zip(anchors, positives, negatives, strict=True):
        together = math.exp(g(x, near))
        apart = sum(math.exp(g(x, other)) for other in far) / len(far)
        values.append(-math.log(together / (together + apart)))
    return values


@quick
@given(st.integers(1, 5), st.integers(1, 4), st.floats(0.05, 2), st.integers(0, 1000))
def test_contrast_equals_a_loop_over_the_formula(anchors, negatives, temperature, seed):
    """Eq. 10."""
    generator = torch.Generator().manual_seed(seed)
    x, near = torch.randn(2, anchors, 6, generator=generator, dtype=torch.float64)
    far = torch.randn(anchors, negatives, 6, generator=generator, dtype=torch.float64)
    ours = contrast(x, near, far, temperature).tolist()
    # Above 20, softplus(x) is x: off by e^-20 at most.
    assert ours == pytest.approx(contrast_by_loop(x, near, far, temperature), rel=1e-9, abs=1e-8)


def test_a_step_down_the_gradient_brings_positives_nearer_and_negatives_further():
    generator = torch.Generator().manual_seed(3)
    near = torch.randn(4, 8, generator=generator).requires_grad_()
    far = torch.randn(4, 2, 8, generator=generator).requires_grad_()
    x = torch.randn(4, 8, generator=generator)
    contrast(x, near, far, 0.1).mean().backward()
    with torch.no_grad():
        nearer = F.cosine_similarity(x, near - 0.1 * near.grad) - F.cosine_similarity(x, near)
        moved = F.cosine_similarity(x[:, None], far - 0.1 * far.grad, dim=-1)
        further = F.cosine_similarity(x[:, None], far, dim=-1) - moved
    assert (nearer >= 0).all()
    assert nearer.max() > 0
    assert further.sum() > 0


def test_repeating_every_negative_changes_nothing():
    """Eq. 10 averages the negatives, so a class with few hard rows is not pushed less."""
    generator = torch.Generator().manual_seed(4)
    x, near = torch.randn(2, 3, 5, generator=generator)
    far = torch.randn(3, 2, 5, generator=generator)
    torch.testing.assert_close(
        contrast(x, near, far.repeat(1, 3, 1), 0.1), contrast(x, near, far, 0.1)
    )


def test_contrast_of_a_cold_temperature_does_not_overflow():
    x = torch.tensor([[1.0, 0.0]], requires_grad=True)
    value = contrast(x, torch.tensor([[-1.0, 0.1]]), torch.tensor([[[1.0, 0.1]]]), 1e-3)
    value.sum().backward()
    assert value.item() == pytest.approx(2 * 1000 / math.sqrt(1.01), rel=1e-4)
    assert torch.isfinite(x.grad).all()


def test_a_zero_vector_has_a_finite_contrast():
    x = torch.zeros(1, 3, requires_grad=True)
    value = contrast(x, torch.ones(1, 3), torch.ones(1, 2, 3), 0.1)
    value.sum().backward()
    assert value.item() == pytest.approx(math.log(2))
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize(
    ("wrong", "names"),
    [({"weight": -0.1}, "lambda"), ({"negatives": 0}, "N_n"), ({"temperature": 0}, "temperature")],
)
def test_contrast_values_out_of_range_are_named(wrong, names):
    with pytest.raises(ConfigError, match=names):
        EasyHard(**wrong)


# ── the contrast of labels ───────────────────────────────────────────────────────────────────


def test_the_contrast_of_labels_is_its_formula():
    """A loop over the rows: minus the mean log share of the partners among all other rows."""
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    labels = [0, 1, 0, 2, 1, 0]
    expected = []
    for i in range(6):
        g = {j: math.exp(F.cosine_similarity(x[i], x[j], dim=0) / 0.3) for j in range(6) if j != i}
        partners = [math.log(g[j] / sum(g.values())) for j in g if labels[j] == labels[i]]
        expected.append(-sum(partners) / len(partners) if partners else 0)
    torch.testing.assert_close(supcon(x, torch.tensor(labels), 0.3), tensor(expected))


def test_the_contrast_of_labels_brings_a_class_together_and_pushes_others_away():
    x = torch.tensor([[1.0, 0.2], [1.0, -0.4], [0.6, 0.9], [0.5, 1.0]], requires_grad=True)
    labels = torch.tensor([0, 0, 1, 1])
    supcon(x, labels, 0.1).sum().backward()
    with torch.no_grad():
        before, after = (F.normalize(v, dim=1) for v in (x, x - 0.01 * x.grad))
    assert before[0] @ before[1] < after[0] @ after[1]
    assert before[0] @ before[2] > after[0] @ after[2]


def test_a_row_without_a_partner_has_no_contrast_and_a_finite_slope():
    x = torch.zeros(3, 2, requires_grad=True)
    value = supcon(x, torch.tensor([0, 1, 2]), 0.1)
    value.sum().backward()
    assert value.tolist() == [0, 0, 0]
    assert torch.isfinite(x.grad).all()


def test_a_contrast_of_labels_needs_a_temperature_above_zero():
    with pytest.raises(ConfigError, match="temperature"):
        SupCon(temperature=0)
