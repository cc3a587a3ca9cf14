"""Which layers of an encoder a tuning or dropout acts in: from ``layers`` to numbers and paths."""

from __future__ import annotations

import math

from torch import nn

from selftrain.errors import ConfigError, require
from selftrain.model.families import Family
from selftrain.model.pel import Layers


def layer_names(encoder: nn.Module, family: Family, layers: Layers) -> list[str]:
    """Paths of the chosen layers of an encoder, lowest first."""
    count = depth(encoder, family)
    first = count - top_layers(layers, family, count)
    return [f"{family.layers}.{number}" for number in range(first, count)]


def depth(encoder: nn.Module, family: Family) -> int:
    """How many layers an encoder has; layers that share their weights count as one."""
    return len(list(encoder.get_submodule(family.layers).children()))


def top_layers(layers: Layers, family: Family, count: int) -> int:
    """How many of an encoder's ``count`` layers are chosen, counted from the top."""
    if layers is None:
        return count
    if family.shares_layers:
        raise ConfigError(
            f"layers is {layers!r}, but `{family.name}` has the same weights in every layer: "
            "a change of one is a change of all",
            "leave layers out",
        )
    if isinstance(layers, str):
        return math.ceil(count / 2) if layers == "half" else 1
    require(layers <= count, "layers", layers, f"at most the encoder's {count}")
    return layers


def dropout_depth(layers: Layers, family: Family, count: int) -> int:
    """In how many layers dropout passes differ, counted from the top.

    A recipe has ``last`` for every family; where all layers share their weights that means all.
    """
    if isinstance(layers, str) and family.shares_layers:
        return count
    return top_layers(layers, family, count)
