"""The mixture over the folds' scores: what the pool says where labels are few or wrong."""

from __future__ import annotations

import torch
from torch import Tensor

from selftrain.training.folds import Folds, Rows, folds_of
from selftrain.training.mixture import fitted, mixture_belief


def clouds(count: int, seed: int, classes: int = 2) -> tuple[Tensor, Tensor]:
    """Rows around one corner for each class, and their classes in turn."""
    labels = torch.arange(count) % classes
    noise = torch.randn(count, 6, generator=torch.Generator().manual_seed(seed))
    return noise + 2.5 * torch.eye(6)[labels], labels


def accuracy_believed(belief: Tensor, answers: Tensor) -> float:
    return float(belief.gather(1, answers[:, None]).mean())


def test_two_heaps_of_modest_scores_are_told_apart_surely():
    """A high temperature leaves 0.6 and 0.4, but no row lies between the two heaps."""
    jitter = 0.01 * torch.randn(200, generator=torch.Generator().manual_seed(3)).double()
    first = torch.where(torch.arange(200) % 2 == 0, 0.6, 0.4) + jitter
    belief = torch.stack([first, 1 - first], dim=1)
    gold = torch.tensor([[0.6, 0.4], [0.4, 0.6]] * 4, dtype=torch.float64)
    equal = torch.tensor([0.5, 0.5], dtype=torch.float64)
    folds = Folds(belief, equal, gold, torch.tensor([0, 1] * 4))
    answers = belief.argmax(1)
    assert accuracy_believed(folds.pool_belief, answers) < 0.62
    assert accuracy_believed(mixture_belief(folds), answers) > 0.98


def test_with_right_labels_the_mixture_knows_the_share_of_right_answers():
    gold, labels = clouds(48, seed=1, classes=3)
    pool, truth = clouds(900, seed=2, classes=3)
    folds = folds_of(Rows(gold, labels), pool, 3, seed=3)
    assert folds is not None
    belief = mixture_belief(folds)
    torch.testing.assert_close(belief.sum(1), torch.ones(900, dtype=torch.float64))
    answers = folds.pool_belief.argmax(1)
    right = float((answers == truth).double().mean())
    assert abs(accuracy_believed(belief, answers) - right) < 0.08


def test_the_covariance_is_that_within_classes():
    """Around 0 and 10: variance 1 within each class, not the 26 of all rows together."""
    rows = torch.tensor([[-1.0], [1.0], [9.0], [11.0]], dtype=torch.float64)
    shares = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]], dtype=torch.float64)
    means, covariance = fitted(rows, shares)
    assert means.tolist() == [[0.0], [10.0]]
    assert abs(float(covariance) - 1) < 0.01


def test_a_class_without_labels_and_answers_breaks_nothing():
    belief = torch.tensor([[0.8, 0.2, 0.0]] * 20, dtype=torch.float64)
    gold = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]], dtype=torch.float64)
    prior = torch.tensor([0.7, 0.3, 0.0], dtype=torch.float64)
    found = mixture_belief(Folds(belief, prior, gold, torch.tensor([0, 1])))
    assert found.isfinite().all()
