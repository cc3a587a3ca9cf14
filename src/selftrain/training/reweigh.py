"""How far each row's gradient agrees with the gradient of the gold labels (LiST).

    w_i = relu(<grad l_i, grad L_gold>) / (sum + 1e-6)

No gradient of a single row is computed: the inner products of a whole batch are one derivative of
its losses in the direction of the gold gradient, a forward pass that carries tangents.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import functional_call, jvp
from torch.nn.attention import SDPBackend, sdpa_kernel

from selftrain.model.batches import Batch
from selftrain.model.classifier import Classifier
from selftrain.model.heads import Output

Predict = Callable[[Batch], Output]
"""A model, or one with other parameters in its place."""
Losses = Callable[[Predict], Tensor]
"""The losses of some rows, [B], from the model that predicts them."""


def agreement(model: Classifier, rows: Losses, gold: Losses) -> Tensor:
    """The weight of each row, [B]: they add up to 1, or to less where hardly any row agrees.

    Dropout is off for both, so that a row is not judged by two different networks.
    """
    was_training = model.training
    model.eval()
    names = list(model.trainable())
    with torch.enable_grad():
        gold_gradient = torch.autograd.grad(gold(model).mean(), list(model.trainable().values()))

    def losses(*tensors: Tensor) -> Tensor:
        parameters = dict(zip(names, tensors, strict=True))
        return rows(lambda batch: functional_call(model, parameters, (batch,)))

    values = tuple(parameter.detach() for parameter in model.trainable().values())
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):  # the fused kernels carry no tangents
        products: Tensor = jvp(losses, values, gold_gradient)[1]
    model.train(was_training)
    agreeing: Tensor = products.detach().relu()
    return agreeing / (agreeing.sum() + 1e-6)
