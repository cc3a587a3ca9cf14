"""Reaching the seams of an encoder: where ``layers`` becomes modules."""

from __future__ import annotations

import math

from torch import nn

from selftrain.errors import ConfigError, require
from selftrain.model.families import Family
from selftrain.model.pel import Layers


def layer_names(encoder: nn.Module, family: Family, layers: Layers) -> list[str]:
    """Paths of the chosen layers of an encoder, lowest first."""
    count = depth(encoder, family)
    first = count - top(layers, family, count)
    return [f"{family.layers}.{number}" for number in range(first, count)]


def depth(encoder: nn.Module, family: Family) -> int:
    """How many layers an encoder has; one that is shared counts once."""
    return len(list(encoder.get_submodule(family.layers).children()))


def top(layers: Layers, family: Family, count: int) -> int:
    """How many of an encoder's layers are meant, from the top."""
    if layers is None:
        return count
    if family.shared:
        raise ConfigError(
            f"layers is {layers!r}, but `{family.name}` has the same weights in every layer: "
            "a change of one is a change of all",
            "leave layers out",
        )
    if isinstance(layers, str):
        return math.ceil(count / 2) if layers == "half" else 1
    require(layers <= count, "layers", layers, f"at most the encoder's {count}")
    return layers


def wavering(layers: Layers, family: Family, count: int) -> int:
    """In how many layers dropout passes differ.

    A preset says ``last`` for every family; where every layer has the same weights that is all.
    """
    if isinstance(layers, str) and family.shared:
        return count
    return top(layers, family, count)
