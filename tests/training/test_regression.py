"""Regression on fixed vectors: scikit-learn's for cross entropy, the same objective for others."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression

from selftrain.method.losses import PHCE
from selftrain.model.heads import Head
from selftrain.training.regression import Linear, logistic, mean_length, minimised


def clouds(classes: int, rows: int = 60, width: int = 5, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % classes
    vectors = 3 * torch.randn(rows, width, generator=generator)
    vectors[torch.arange(rows), labels] += 4
    return vectors, labels


@pytest.mark.parametrize("classes", [2, 3])
def test_logits_are_those_of_scikit_learn(classes):
    vectors, labels = clouds(classes)
    found = logistic(vectors, labels, classes, strength=2.0)
    x = (vectors / mean_length(vectors)).numpy()
    expected = LogisticRegression(C=2.0, max_iter=1000).fit(x, labels.numpy()).predict_proba(x)
    assert found(vectors).softmax(1).numpy() == pytest.approx(expected, abs=1e-6)


def test_the_length_of_vectors_changes_no_answer():
    vectors, labels = clouds(3)
    short = logistic(vectors / 100, labels, 3, strength=1.0)
    assert short(vectors / 100) == pytest.approx(
        logistic(vectors, labels, 3, strength=1.0)(vectors), abs=1e-3
    )


def test_a_class_without_a_row_keeps_weights_of_zero():
    vectors, labels = clouds(2)
    found = logistic(vectors, 2 * labels, 3, strength=1.0)
    assert found.weight.shape == (3, 5)
    assert not found.weight[1].any()
    assert set(found(vectors).argmax(1).tolist()) == {0, 2}


def test_a_weight_of_two_counts_a_row_twice():
    vectors, labels = clouds(2, rows=20)
    twice = torch.cat([vectors, vectors[:5]]), torch.cat([labels, labels[:5]])
    weights = torch.tensor([2.0] * 5 + [1.0] * 15)
    # The scale of the vectors is a mean over rows: the same penalty needs the same scale.
    factor = float(mean_length(twice[0]) / mean_length(vectors)) ** 2
    weighed = logistic(vectors, labels, 2, strength=1.0, weights=weights)
    repeated = logistic(*twice, 2, strength=1.0 * factor)
    assert weighed(vectors) == pytest.approx(repeated(vectors), abs=2e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_with_cross_entropy_the_solver_for_any_loss_ends_where_scikit_learn_does(classes):
    vectors, labels = clouds(classes)
    weights = torch.linspace(0.5, 1.5, len(labels))
    penalty = 1e-2
    strength = 1 / (penalty * float(weights.sum()))
    expected = logistic(vectors, labels, classes, strength=strength, weights=weights)
    nothing = Linear(torch.zeros(classes, 5), torch.zeros(classes), 0)

    def losses(logits):
        return F.cross_entropy(logits, labels, reduction="none")

    found = minimised(nothing, vectors, losses, penalty=penalty, weights=weights)
    assert found(vectors).softmax(1) == pytest.approx(expected(vectors).softmax(1), abs=2e-3)


def test_phce_is_pulled_less_by_a_wrong_label():
    """Two clear clouds, six of sixty labels wrong: tau 2 believes the truth of them more."""
    vectors, labels = clouds(2, seed=4)
    wrong = labels.clone()
    wrong[:6] = 1 - wrong[:6]
    weights = torch.ones(len(labels))
    start = logistic(vectors, wrong, 2, strength=1 / (1e-3 * len(labels)))
    found = minimised(
        start, vectors, lambda z: PHCE(tau=2)(z, wrong, z), penalty=1e-3, weights=weights
    )
    in_truth = [
        float(each(vectors[:6]).softmax(1).gather(1, labels[:6, None]).mean())
        for each in (start, found)
    ]
    assert in_truth[1] > in_truth[0]
    assert found.steps > 0


def test_a_linear_layer_is_written_into_a_head():
    head = Head(5, 3, "linear", 0.1).eval()
    vectors, labels = clouds(3)
    found = logistic(vectors, labels, 3, strength=1.0)
    found.write_to(head)
    assert torch.allclose(head(vectors), found(vectors), atol=1e-5)
    shift = torch.tensor([1.0, 0.0, -1.0])
    assert torch.allclose(found.shifted(shift)(vectors), found(vectors) + shift)
