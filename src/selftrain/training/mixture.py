"""What the pool itself says of the folds' scores: a semi-supervised mixture (after SSME).

The belief of the folds is calibrated on a few labels. Here the scores of labelled and pool rows
together are explained by one normal density for each class, all of one covariance: labelled rows
count with their class, pool rows by EM. Where labels are few or some of them wrong, the shape of
the pool corrects the belief. SSME (arXiv 2501.11866) has kernel densities over several classifiers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from selftrain.training.folds import Folds

ITERATIONS = 50
PRIOR_ROWS = 32.0
"""Rows of equal class shares that the shares of the mixture are shrunk by."""
LEAST_VARIANCE = 1e-3


def mixture_belief(folds: Folds) -> Tensor:
    """The probability of each class for each pool row that the folds were asked about, [N, C].

    The scores of a row are its log-probabilities, centred; those of a gold row come from the fold
    that did not see it. Labels and pool count the same in all: a gold row counts as N / K rows.
    """
    classes, gold, pool = len(folds.prior), scores(folds.gold), scores(folds.belief)
    rows = torch.cat([gold, pool])  # [K + N, C - 1]
    known = torch.eye(classes, dtype=torch.float64)[folds.labels] * (len(pool) / len(gold))
    belief = folds.pool_belief.double()
    for _ in range(ITERATIONS):
        shares = torch.cat([known, belief])  # [K + N, C]
        means, covariance = fitted(rows, shares)
        factor = torch.linalg.cholesky(covariance)
        whitened = (
            torch.linalg.solve_triangular(factor, x.T, upper=False).T for x in (pool, means)
        )
        distance = torch.cdist(*whitened).square()  # [N, C]
        prior = (belief.sum(0) + PRIOR_ROWS / classes) / (len(pool) + PRIOR_ROWS)
        belief = (prior.log() - distance / 2).softmax(1)
    return belief


def scores(p: Tensor) -> Tensor:
    """Centred log-probabilities without the last class, which the others decide, [N, C - 1]."""
    logs = p.double().clamp_min(1e-6).log()
    return (logs - logs.mean(1, keepdim=True))[:, :-1]


def fitted(rows: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of each class and their common covariance, of rows [N, D] weighed by shares [N, C].

    >>> fitted(torch.tensor([[0.0], [2.0], [5.0]]), torch.tensor([[1.0, 0], [1, 0], [0, 1]]))[0]
    tensor([[1.],
            [5.]])
    """
    total = shares.sum(0).clamp_min(1e-9)  # [C]; a class without a row has no say
    means = shares.T @ rows / total[:, None]  # [C, D]
    squares = (rows * shares.sum(1, keepdim=True)).T @ rows - means.T @ (total[:, None] * means)
    return means, squares / total.sum() + LEAST_VARIANCE * torch.eye(rows.shape[1]).to(rows)
