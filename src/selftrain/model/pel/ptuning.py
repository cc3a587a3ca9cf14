"""P-tuning: placeholder tokens in the input whose embeddings are learned."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from selftrain.model.families import Family
from selftrain.model.pel import PTuning


class LSTM(nn.Module):
    """A two-way LSTM over the vectors, then a small network: each depends on its neighbours."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(size, size, num_layers=2, bidirectional=True)
        self.out = nn.Sequential(nn.Linear(2 * size, size), nn.ReLU(), nn.Linear(size, size))

    def forward(self, vectors: Tensor) -> Tensor:
        """[I, E] to [I, E]."""
        states, _ = self.lstm(vectors)  # [I, 2 E]
        encoded: Tensor = self.out(states)
        return encoded


class LearnedTokens(nn.Module):
    """Word embeddings in which positions 1 to I are learned vectors.

    They have the size of the embeddings, so a family that projects those (ALBERT, ELECTRA)
    projects the learned vectors too.
    """

    def __init__(self, frozen: nn.Embedding, tuning: PTuning) -> None:
        super().__init__()
        size = frozen.embedding_dim
        self.frozen = frozen
        self.vectors = nn.Parameter(torch.empty(tuning.length, size))  # [I, E]
        nn.init.normal_(self.vectors, std=0.02)
        self.encoder: nn.Module
        match tuning.encoder:
            case "none":
                self.encoder = nn.Identity()
            case "mlp":
                self.encoder = nn.Sequential(
                    nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size)
                )
            case "lstm":
                self.encoder = LSTM(size)

    def forward(self, ids: Tensor) -> Tensor:
        """[B, L] to [B, L, E]; the ids at the placeholders do not matter."""
        words: Tensor = self.frozen(ids)
        learned = self.encoder(self.vectors).expand(ids.shape[0], -1, -1)  # [B, I, E]
        return torch.cat([words[:, :1], learned, words[:, 1 + self.vectors.shape[0] :]], dim=1)


def install(tuning: PTuning, encoder: nn.Module, family: Family) -> None:
    """Wrap the word embeddings; a decoder tied to them stays tied to the frozen table."""
    frozen = encoder.get_submodule(family.word_embeddings)
    assert isinstance(frozen, nn.Embedding)
    encoder.set_submodule(family.word_embeddings, LearnedTokens(frozen, tuning))
