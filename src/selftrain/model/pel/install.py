"""Put a tuning into an encoder: what it trains, what it adds, what it needs in a row."""

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
    Probe,
    PTuning,
    Tuning,
    adapter,
    lora,
    prefix,
    ptuning,
)
from selftrain.model.pel.layers import layer_names


def trainable_names(tuning: Tuning, encoder: nn.Module, family: Family) -> set[str]:
    """Names of the pretrained parameters that move; a new model needs its own copy of them."""
    names = [name for name, _ in encoder.named_parameters()]
    match tuning:
        case Full():
            return set(names)
        case BitFit():
            return _biases(names, layer_names(encoder, family, tuning.layers), tuning, family)
        case _:
            return set()


def install(tuning: Tuning, encoder: nn.Module, family: Family) -> None:
    """Add the modules of a tuning to an encoder, in place."""
    match tuning:
        case Adapter():
            adapter.install(tuning, encoder, family)
        case Prefix():
            prefix.install(tuning, encoder, family)
        case PTuning():
            ptuning.install(tuning, encoder, family)
        case LoRA() | IA3():
            lora.install(tuning, encoder, family)
        case Full() | BitFit() | Probe():
            return  # it adds nothing


def in_all_layers(tuning: Tuning) -> Tuning:
    """The same tuning, for an encoder that has only the tuned layers left."""
    return tuning if isinstance(tuning, Full | PTuning | Probe) else replace(tuning, layers=None)


def _biases(names: list[str], layers: list[str], tuning: BitFit, family: Family) -> set[str]:
    biases = {name for name in names if name.endswith(".bias")}
    if not biases:
        raise ConfigError(
            f"`{family.name}` has no biases, so bitfit has nothing to move",
            "use another tuning, for example: adapter, lora",
        )
    if tuning.layers is None:
        return biases
    return {name for name in biases if name.startswith(tuple(f"{layer}." for layer in layers))}
