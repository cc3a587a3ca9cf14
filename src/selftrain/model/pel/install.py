"""Putting a tuning into an encoder: what it moves, what it adds, what it wants in a row."""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from selftrain.errors import ConfigError
from selftrain.model.families import Family
from selftrain.model.pel import (
    IA3,
    Adapter,
    BitFit,
    Full,
    LoRA,
    Prefix,
    PTuning,
    Tuning,
    adapter,
    lora,
    prefix,
    ptuning,
)
from selftrain.model.pel.seams import layer_names


def owned(how: Tuning, encoder: nn.Module, family: Family) -> set[str]:
    """Names of the pretrained parameters it moves; a twin must have its own copy of them."""
    names = [name for name, _ in encoder.named_parameters()]
    match how:
        case Full():
            return set(names)
        case BitFit():
            return _biases(names, layer_names(encoder, family, how.layers), how, family)
        case _:
            return set()


def install(how: Tuning, encoder: nn.Module, family: Family) -> None:
    """Add a tuning's own modules to an encoder, in place."""
    match how:
        case Adapter():
            adapter.install(how, encoder, family)
        case Prefix():
            prefix.install(how, encoder, family)
        case PTuning():
            ptuning.install(how, encoder, family)
        case LoRA() | IA3():
            lora.install(how, encoder, family)
        case Full() | BitFit():
            return  # what moves is there already


def all_layers(how: Tuning) -> Tuning:
    """The same tuning for an encoder of which only the chosen layers are left."""
    return how if isinstance(how, Full | PTuning) else replace(how, layers=None)


def placeholders(how: Tuning) -> int:
    """How many tokens behind a row's first one have their embeddings learned."""
    return how.length if isinstance(how, PTuning) else 0


def _biases(names: list[str], layers: list[str], how: BitFit, family: Family) -> set[str]:
    biases = {name for name in names if name.endswith(".bias")}
    if not biases:
        raise ConfigError(
            f"`{family.name}` has no biases, so bitfit has nothing to move",
            "use another tuning, for example: adapter, lora",
        )
    if how.layers is None:
        return biases
    return {name for name in biases if name.startswith(tuple(f"{at}." for at in layers))}
