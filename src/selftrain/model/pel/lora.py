"""LoRA and IA3, through peft, with the modules named one by one."""

from __future__ import annotations

from peft import IA3Config, LoraConfig, inject_adapter_in_model
from torch import nn

from selftrain.model.families import Family
from selftrain.model.pel import IA3, LoRA
from selftrain.model.pel.seams import layer_names

NAME = "tuned"  # peft wants a name for what it adds


def install(how: LoRA | IA3, encoder: nn.Module, family: Family) -> None:
    """Let peft wrap the Linears at the chosen seams.

    Where a family computes queries, keys and values in one Linear (ModernBERT), both act on
    all three.
    """

    def at(*seams: str) -> list[str]:
        layers = layer_names(encoder, family, how.layers)
        return sorted({f"{layer}.{seam}" for layer in layers for seam in seams})

    if isinstance(how, LoRA):
        # alpha = 2 r: the update counts twice, whatever the rank.
        config = LoraConfig(
            r=how.rank, lora_alpha=2 * how.rank, target_modules=at(family.query, family.value)
        )
    else:
        config = IA3Config(
            target_modules=at(family.key, family.value, family.ffn_out),
            feedforward_modules=at(family.ffn_out),
        )
    inject_adapter_in_model(config, encoder, adapter_name=NAME)
