"""From features to logits: a classification head, or the label words of a prompt."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from selftrain.errors import no_number
from selftrain.model.mlm import MLMHead


class Output(NamedTuple):
    """The result of one forward pass."""

    logits: Tensor  # [B, C]
    features: Tensor  # [B, D]: the pooled vector, or the hidden state at the mask


def with_numbers(out: Output) -> Output:
    """The same answers, [N, C] and [N, D]; an error where finite weights gave one that is none.

    A logit of minus infinity is a probability of 0, and fine.
    """
    lost = out.logits.softmax(1).isnan().any(1) | ~out.features.isfinite().all(1)  # [N]
    if lost.any():
        raise no_number(int(lost.sum()), len(lost))
    return out


class Head(nn.Module):
    """Features to logits: one Linear, or dense, tanh and a Linear (Eq. 6)."""

    def __init__(self, width: int, classes: int, shape: Literal["linear", "dense"], rate: float):
        super().__init__()
        self.dropout = nn.Dropout(rate)
        self.dense = nn.Linear(width, width) if shape == "dense" else None
        self.out = nn.Linear(width, classes)
        for linear in (self.dense, self.out):
            if linear is not None:
                nn.init.normal_(linear.weight, std=0.02)
                nn.init.zeros_(linear.bias)

    def forward(self, features: Tensor) -> Tensor:
        """[B, D] to [B, C]."""
        state = self.dropout(features)
        if self.dense is not None:
            state = self.dropout(torch.tanh(self.dense(state)))
        logits: Tensor = self.out(state)
        return logits


class Verbalizer(nn.Module):
    """The hidden state at the mask to logits: pretrained MLM head, label words (Eq. 7)."""

    ids: Tensor  # [W], the label words of all classes, class by class

    def __init__(self, mlm: MLMHead, words: tuple[tuple[int, ...], ...]) -> None:
        super().__init__()
        self.mlm = mlm
        self.counts = [len(group) for group in words]
        ids = torch.tensor([word for group in words for word in group])
        self.register_buffer("ids", ids, persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """[B, D] to [B, C]: probabilities of a class's words add, so their logits log-sum-exp."""
        scores: Tensor = self.mlm(features, self.ids)  # [B, W]
        if max(self.counts) == 1:
            return scores
        groups = torch.split(scores, self.counts, dim=1)
        return torch.stack([group.logsumexp(1) for group in groups], dim=1)
