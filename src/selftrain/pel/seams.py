"""Reaching the seams of an encoder: where ``layers`` becomes modules."""

from __future__ import annotations

from torch import nn

from selftrain.errors import ConfigError, require
from selftrain.families import Family


def layer_names(encoder: nn.Module, family: Family, top: int | None) -> list[str]:
    """Paths of the top layers of an encoder, lowest first; of all layers for None."""
    count = len(list(encoder.get_submodule(family.layers).children()))
    if top is not None and family.shared:
        raise ConfigError(
            f"layers is {top}, but `{family.name}` has the same weights in every layer: "
            "a change of one is a change of all",
            "leave layers out",
        )
    require(top is None or top <= count, "layers", top, f"at most the encoder's {count}")
    first = 0 if top is None else count - top
    return [f"{family.layers}.{number}" for number in range(first, count)]


def replace(encoder: nn.Module, path: str, module: nn.Module) -> None:
    """Put a module in the place of another."""
    parent, _, name = path.rpartition(".")
    setattr(encoder.get_submodule(parent), name, module)
