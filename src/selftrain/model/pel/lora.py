"""LoRA and IA3: peft adds them to the modules that the family names."""

from __future__ import annotations

from peft import IA3Config, LoraConfig, inject_adapter_in_model
from torch import nn

from selftrain.model.families import Family
from selftrain.model.pel import IA3, LoRA
from selftrain.model.pel.layers import layer_names

NAME = "tuned"  # peft needs a name for what it adds


def install(tuning: LoRA | IA3, encoder: nn.Module, family: Family) -> None:
    """Let peft wrap the Linears of the chosen layers.

    Where a family computes queries, keys and values in one Linear (ModernBERT), both act on
    all three.
    """

    def paths(*seams: str) -> list[str]:
        layers = layer_names(encoder, family, tuning.layers)
        return sorted({f"{layer}.{seam}" for layer in layers for seam in seams})

    if isinstance(tuning, LoRA):
        # alpha = 2 r: the update counts twice, whatever the rank.
        config = LoraConfig(
            r=tuning.rank,
            lora_alpha=2 * tuning.rank,
            target_modules=paths(family.query, family.value),
        )
    else:
        config = IA3Config(
            target_modules=paths(family.key, family.value, family.ffn_out),
            feedforward_modules=paths(family.ffn_out),
        )
    inject_adapter_in_model(config, encoder, adapter_name=NAME)
