"""Houlsby adapters: behind the attention output and behind the feed-forward output."""

from __future__ import annotations

from torch import Tensor, nn

from selftrain.model.families import Family
from selftrain.model.pel import Adapter
from selftrain.model.pel.layers import layer_names


class Bottleneck(nn.Module):
    """x + up(gelu(down(x))), with ``up`` zero at the start: exactly the identity."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.down = nn.Linear(size, width)
        self.up = nn.Linear(width, size)
        nn.init.normal_(self.down.weight, std=0.02)
        nn.init.zeros_(self.down.bias)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] to [..., D]."""
        change: Tensor = self.up(nn.functional.gelu(self.down(x)))
        return x + change


class Adapted(nn.Module):
    """A frozen Linear and a bottleneck behind it, before the residual and the norm."""

    def __init__(self, frozen: nn.Linear, width: int) -> None:
        super().__init__()
        self.frozen = frozen
        self.adapter = Bottleneck(frozen.out_features, width)

    def forward(self, x: Tensor) -> Tensor:
        """The output of the Linear, adapted."""
        adapted: Tensor = self.adapter(self.frozen(x))
        return adapted


def install(tuning: Adapter, encoder: nn.Module, family: Family) -> None:
    """Wrap both output Linears of every chosen layer."""
    for layer in layer_names(encoder, family, tuning.layers):
        for seam in (family.attention_out, family.ffn_out):
            path = f"{layer}.{seam}"
            frozen = encoder.get_submodule(path)
            assert isinstance(frozen, nn.Linear)
            encoder.set_submodule(path, Adapted(frozen, tuning.width))
