"""Logistic regression on fixed vectors, as the weights of a linear head.

Cross entropy is scikit-learn's solver. Any other loss has the same penalty and torch's L-BFGS,
started from the solution of cross entropy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from selftrain.model.heads import Head

ITERATIONS = 1000
RowLosses = Callable[[Tensor], Tensor]
"""The loss of each row from the logits [N, C]."""


@dataclass(frozen=True, slots=True)
class Linear:
    """Weights and bias of a linear layer."""

    weight: Tensor  # [C, D]
    bias: Tensor  # [C]
    steps: int
    """Iterations of the solver."""

    def __call__(self, vectors: Tensor) -> Tensor:
        """Logits [N, C] of vectors [N, D]."""
        logits: Tensor = vectors @ self.weight.T + self.bias
        return logits

    @torch.no_grad()
    def write_to(self, head: Head) -> None:
        """Set the last layer of a head."""
        head.out.weight.copy_(self.weight)
        head.out.bias.copy_(self.bias)

    def shifted(self, shift: Tensor) -> Linear:
        """The same layer with this added to every row of logits, [C]."""
        return replace(self, bias=self.bias + shift)


def equal_classes(labels: Tensor, weights: Tensor) -> Tensor:
    """The weights of rows [K], scaled so that each class counts the same; their sum stays.

    How many labels of a class a person gave says little of its share of the pool. A regression on a
    few rows would take it for the prior (benchmarks/development/README.md, section 14).

    >>> equal_classes(torch.tensor([0, 0, 0, 1]), torch.ones(4))
    tensor([0.6667, 0.6667, 0.6667, 2.0000])
    """
    of_class = labels.bincount(weights)  # [C]
    wanted = weights.sum() / (of_class > 0).sum()
    return weights * (wanted / of_class)[labels]


def mean_length(vectors: Tensor) -> Tensor:
    """By which vectors are divided: encoders differ in it, the penalty should not."""
    length: Tensor = vectors.norm(dim=1).mean()
    return length


def logistic(
    vectors: Tensor, labels: Tensor, classes: int, *, strength: float, weights: Tensor | None = None
) -> Linear:
    """scikit-learn's logistic regression; a class without a row keeps weights of zero.

    ``strength`` is scikit-learn's C: the sum of the losses is multiplied by it, half the squared
    weights are added. Vectors are divided by ``mean_length`` first.
    """
    from sklearn.linear_model import LogisticRegression

    scale = mean_length(vectors)
    model = LogisticRegression(C=strength, max_iter=ITERATIONS)
    row_weights = None if weights is None else weights.numpy()
    with warnings.catch_warnings():  # of many classes, with a few labels each
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        model.fit((vectors / scale).numpy(), labels.numpy(), row_weights)
    weight = torch.from_numpy(model.coef_) / scale
    bias = torch.from_numpy(model.intercept_)
    if len(model.classes_) == 2:  # one row of weights; two rows of half of it answer alike
        weight, bias = torch.cat([-weight, weight]) / 2, torch.cat([-bias, bias]) / 2
    all_weights = weight.new_zeros(classes, vectors.shape[1])
    all_biases = bias.new_zeros(classes)
    all_weights[model.classes_], all_biases[model.classes_] = weight, bias
    return Linear(all_weights.to(vectors), all_biases.to(vectors), int(model.n_iter_.max()))


def minimised(
    start: Linear, vectors: Tensor, losses: RowLosses, *, penalty: float, weights: Tensor
) -> Linear:
    """The same objective for any loss: weighted mean loss + penalty / 2 · squared weights.

    Two classes are counted as scikit-learn does, which has one row of weights for both.
    """
    scale = mean_length(vectors)
    x, share = (vectors / scale).double(), (weights / weights.sum()).double()
    weight = (start.weight * scale).double().requires_grad_()
    bias = start.bias.double().requires_grad_()
    factor = penalty * (2 if len(bias) == 2 else 1)
    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=ITERATIONS, line_search_fn="strong_wolfe", tolerance_grad=1e-6
    )

    def objective() -> Tensor:
        optimizer.zero_grad()
        value = (share * losses(x @ weight.T + bias)).sum() + factor / 2 * weight.square().sum()
        torch.autograd.backward(value)
        return value

    optimizer.step(objective)  # type: ignore[no-untyped-call]
    steps = int(optimizer.state_dict()["state"][0]["n_iter"])
    found = (weight.detach() / scale).to(vectors), bias.detach().to(vectors)
    return Linear(*found, steps)
