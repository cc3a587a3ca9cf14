"""The head of a masked language model (MLM), and add-ons that give one to an encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from transformers.activations import ACT2FN

from selftrain.errors import ModelError
from selftrain.model.families import Family

HEAD_NAMES = {
    "mlm.transform.dense.weight": "dense.weight",
    "mlm.transform.dense.bias": "dense.bias",
    "mlm.transform.LayerNorm.weight": "norm.weight",
    "mlm.transform.LayerNorm.bias": "norm.bias",
    "mlm.bias": "bias",
}
"""Names of the parts of a head in an add-on, and in ``MLMHead``."""
OTHER_HALF = {"A.weight": "B.weight", "B.weight": "A.weight"}


class MLMHead(nn.Module):
    """Dense, activation, norm, then one row per word: all nine families have this shape.

    ``weight`` is the tensor of the word embeddings itself where a family ties them.
    """

    def __init__(
        self,
        dense: nn.Module,
        activation: Callable[[Tensor], Tensor],
        norm: nn.Module,
        weight: nn.Parameter,
        bias: nn.Parameter,
    ) -> None:
        super().__init__()
        self.dense = dense
        self.activation = activation
        self.norm = norm
        self.weight = weight  # [V, E]
        self.bias = bias  # [V]

    def forward(self, hidden: Tensor, words: Tensor | slice) -> Tensor:
        """Logits of the given words only: the other words of the vocabulary are not computed."""
        state = self.norm(self.activation(self.dense(hidden)))  # [B, E]
        return nn.functional.linear(state, self.weight[words], self.bias[words])  # [B, W]


def pretrained_head(model: nn.Module, family: Family) -> MLMHead:
    """The MLM head of a complete model, found by the family's seams."""
    config: Any = model.config
    parameters = dict(model.named_parameters(remove_duplicate=False))
    seam = next(seam for seam in family.mlm if seam.bias in parameters)
    return MLMHead(
        model.get_submodule(seam.dense),
        ACT2FN["gelu" if seam.activation is None else getattr(config, seam.activation)],
        model.get_submodule(seam.norm),
        parameters[seam.weight],
        parameters[seam.bias],
    )


def new_head(encoder: nn.Module, family: Family) -> MLMHead:
    """A head to train: its dense layer is the identity, its decoder is the word embeddings."""
    config: Any = encoder.config
    words = encoder.get_submodule(family.word_embeddings)
    assert isinstance(words, nn.Embedding)
    dense = nn.Linear(config.hidden_size, words.embedding_dim)
    nn.init.eye_(dense.weight)
    nn.init.zeros_(dense.bias)
    norm = nn.LayerNorm(words.embedding_dim, eps=getattr(config, "layer_norm_eps", 1e-12))
    bias = nn.Parameter(torch.zeros(words.num_embeddings))
    return MLMHead(dense, ACT2FN["gelu"], norm, words.get_parameter("weight"), bias)


@dataclass(frozen=True, slots=True)
class Addon:
    """A low-rank update, new biases and norms, and an MLM head, for one exact base."""

    base: str
    """The backbone it was trained for, by name."""
    base_sha256: str
    tensors: Mapping[str, Tensor]

    def apply(self, encoder: nn.Module, family: Family) -> MLMHead:
        """Change an encoder in place and return its head."""
        for name in sorted(self.required() - self.tensors.keys()):
            raise ValueError(f"it lacks tensor `{name}`")
        head = new_head(encoder, family)
        places = dict(encoder.named_parameters())
        places |= {name: head.get_parameter(place) for name, place in HEAD_NAMES.items()}
        with torch.no_grad():
            for name, tensor in self.tensors.items():
                stem, _, part = name.rpartition(".lora_")
                if part == "A.weight":
                    _add(places[f"{stem}.weight"], self.tensors[f"{stem}.lora_B.weight"], tensor)
                elif part != "B.weight":
                    _copy(places[name], tensor)
        return head

    def required(self) -> set[str]:
        """Names of all parts of the head, which must be trained, and of both halves of each B A."""
        parts = [name.rpartition(".lora_") for name in self.tensors]
        halves = {
            f"{stem}{lora}{OTHER_HALF[part]}" for stem, lora, part in parts if part in OTHER_HALF
        }
        return halves | HEAD_NAMES.keys()


def read_addon(path: Path) -> Addon:
    """Read an add-on file; ``tools/train_mlm.py`` writes one."""
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
        return Addon(metadata["base"], metadata["base_sha256"], tensors)
    except (OSError, SafetensorError, KeyError) as error:
        raise ModelError(
            f"add-on `{path}` cannot be read: {error}", "copy the file again, or train a new one"
        ) from None


def _add(place: Tensor, b: Tensor, a: Tensor) -> None:
    """W + B A, if it fits: with wrong sizes the product could fill all memory."""
    if (b.ndim, a.ndim) != (2, 2) or [len(b), a.shape[1]] != list(place.shape):
        product = f"{list(b.shape)} times {list(a.shape)}"
        raise ValueError(f"shape {product}; expected {list(place.shape)}")
    place.add_(b @ a)


def _copy(place: Tensor, tensor: Tensor) -> None:
    if place.shape != tensor.shape:  # copy_ would broadcast
        raise ValueError(f"shape {list(tensor.shape)}; expected {list(place.shape)}")
    place.copy_(tensor)
