"""What may change in a frozen encoder: the tunings, as plain data.

Each is a frozen dataclass with a ``kind``; ``install.py`` puts one into an encoder. This file does
not import torch, so reading a method is quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from selftrain.errors import require, require_up_to

Layers = int | Literal["half", "last"] | None
"""Which layers of an encoder: the top k, its upper half, its last, or None for all of them.

Where all layers share their weights (ALBERT), a tuning of some layers is an error, and dropout
passes differ in all of them."""
LARGEST_SIZE = 65_536
"""Of what a tuning adds to a layer: far wider than any encoder, and still built in memory."""


@dataclass(frozen=True, slots=True)
class Full:
    """Everything moves; with a prompt the LM head too."""

    kind: Literal["full"] = "full"
    """The name of this tuning."""


@dataclass(frozen=True, slots=True)
class BitFit:
    """Only biases move (Ben Zaken et al., 2022)."""

    kind: Literal["bitfit"] = "bitfit"
    """The name of this tuning."""
    layers: Layers = None
    """The top k layers, the upper `half`, or the `last` one; left out, all, and the embeddings."""

    def __post_init__(self) -> None:
        check_layers(self.layers)


@dataclass(frozen=True, slots=True)
class Adapter:
    """Two small bottlenecks in each layer (Houlsby et al., 2019), the identity at the start."""

    kind: Literal["adapter"] = "adapter"
    """The name of this tuning."""
    width: int = 64
    """The bottleneck m."""
    layers: Layers = None
    """The top k layers, the upper `half`, or the `last` one; left out, all of them."""

    def __post_init__(self) -> None:
        require_up_to(LARGEST_SIZE, "adapter width", self.width)
        check_layers(self.layers)


@dataclass(frozen=True, slots=True)
class Prefix:
    """Learned keys and values in front of every layer's own (Li and Liang, 2021)."""

    kind: Literal["prefix"] = "prefix"
    """The name of this tuning."""
    length: int = 16
    """The number of learned vectors, I."""
    layers: Layers = None
    """The top k layers, the upper `half`, or the `last` one; left out, all of them."""
    encoder: Literal["none", "mlp"] = "none"
    """Learn the vectors directly, or through a small network that all layers share."""
    dropout: float = 0.1
    """On the learned keys and values."""

    def __post_init__(self) -> None:
        require_up_to(LARGEST_SIZE, "prefix length", self.length)
        require(0 <= self.dropout < 1, "prefix dropout", self.dropout, "0 or more and below 1")
        check_layers(self.layers)


@dataclass(frozen=True, slots=True)
class PTuning:
    """Learned vectors at the input, behind the first special token (Liu et al., 2021)."""

    kind: Literal["ptuning"] = "ptuning"
    """The name of this tuning."""
    length: int = 16
    """The number of learned vectors, I."""
    encoder: Literal["none", "mlp", "lstm"] = "none"
    """Learn the vectors directly, or through a small network."""

    def __post_init__(self) -> None:
        require_up_to(LARGEST_SIZE, "ptuning length", self.length)


@dataclass(frozen=True, slots=True)
class LoRA:
    """A low-rank update of queries and values (Hu et al., 2022), zero at the start."""

    kind: Literal["lora"] = "lora"
    """The name of this tuning."""
    rank: int = 8
    """The rank of the update, r."""
    layers: Layers = None
    """The top k layers, the upper `half`, or the `last` one; left out, all of them."""

    def __post_init__(self) -> None:
        require_up_to(LARGEST_SIZE, "lora rank", self.rank)
        check_layers(self.layers)


@dataclass(frozen=True, slots=True)
class IA3:
    """A factor for every key, value and feed-forward unit (Liu et al., 2022), one at the start."""

    kind: Literal["ia3"] = "ia3"
    """The name of this tuning."""
    layers: Layers = None
    """The top k layers, the upper `half`, or the `last` one; left out, all of them."""

    def __post_init__(self) -> None:
        check_layers(self.layers)


@dataclass(frozen=True, slots=True)
class Probe:
    """Nothing of the encoder moves: only the head learns, by regression on the pooled vectors."""

    kind: Literal["probe"] = "probe"
    """The name of this tuning."""


Tuning = Full | BitFit | Adapter | Prefix | PTuning | LoRA | IA3 | Probe
AnyTuning = Annotated[Tuning, Field(discriminator="kind")]


def layers_of(tuning: Tuning) -> Layers:
    """The layers in which a tuning acts; None is all of them."""
    return getattr(tuning, "layers", None)


def placeholders(tuning: Tuning) -> int:
    """How many tokens a tuning adds behind the first of a row, to learn their embeddings."""
    return tuning.length if isinstance(tuning, PTuning) else 0


def check_layers(layers: Layers, name: str = "layers") -> None:
    """Raise unless ``layers`` is a valid choice; ``name`` is that of the entry."""
    valid = layers is None or isinstance(layers, str) or layers >= 1
    require(valid, name, layers, "at least 1, `half`, `last`, or nothing for all")
