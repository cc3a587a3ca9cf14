"""Changes of a loaded encoder: a second copy on the same weights, a cut in two, dropout rates."""

from __future__ import annotations

import copy
from collections.abc import Container
from typing import Any, TypeVar

from torch import Tensor, nn

from selftrain.errors import ConfigError
from selftrain.model.families import Family

Tree = TypeVar("Tree", bound=nn.Module)


def twin(module: Tree, copied: Container[str] = ()) -> Tree:
    """A second module tree on the same tensors, with new copies of the ``copied`` parameters.

    A deepcopy whose memo already contains what is shared: ties survive (the decoder of an MLM
    head stays its word embeddings), and a module put into one tree does not change the other.
    """
    parameters = (p for name, p in module.named_parameters() if name not in copied)
    shared = [*parameters, *module.buffers()]
    return copy.deepcopy(module, {id(tensor): tensor for tensor in shared})


def cut(encoder: nn.Module, family: Family, at: int) -> tuple[nn.Module, nn.Module]:
    """An encoder as two, below layer ``at`` and from it on, with the same weights and code.

    ``upper(inputs_embeds=lower(ids, mask).last_hidden_state, attention_mask=mask)`` equals the
    output of the uncut encoder, to the last bit.
    """
    if family.shares_layers:
        raise ConfigError(
            f"`{family.name}` has the same weights in every layer and cannot be cut",
            "leave out the student's `tuning.layers`, and `dropout_layers`: all layers",
        )
    lower, upper = twin(encoder), twin(encoder)
    for half, chosen in ((lower, slice(None, at)), (upper, slice(at, None))):
        layers = list(half.get_submodule(family.layers).children())
        half.set_submodule(family.layers, nn.ModuleList(layers[chosen]))
    if family.cut.ends is not None:
        lower.set_submodule(family.cut.ends, nn.Identity())
    if family.cut.starts is not None and hasattr(upper, family.cut.starts):
        upper.set_submodule(family.cut.starts, nn.Identity())
    if family.cut.absent is not None:
        parent, _, name = family.cut.absent.rpartition(".")
        setattr(upper.get_submodule(parent), name, None)
    upper.set_submodule("embeddings", PassThrough())
    return lower, upper


class PassThrough(nn.Module):
    """Takes the place of the embeddings in an upper half, whose input is hidden states."""

    def forward(
        self, _ids: None = None, inputs_embeds: Tensor | None = None, *_: Any, **__: Any
    ) -> Tensor:
        """Its input, unchanged."""
        assert inputs_embeds is not None
        return inputs_embeds


def dropout_rates(module: nn.Module) -> list[float]:
    """Every dropout rate in a module tree."""
    rates = [part.p for part in module.modules() if isinstance(part, nn.Dropout)]
    return rates + [part.attention_dropout for part in _with_attention_dropout(module)]


def set_dropout(module: nn.Module, rate: float) -> None:
    """Set every dropout rate in a module tree."""
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = rate
    for part in _with_attention_dropout(module):
        part.attention_dropout = rate


def _with_attention_dropout(module: nn.Module) -> list[Any]:
    # ModernBERT has the dropout rate of its attention as a number, not as a module.
    return [m for m in module.modules() if isinstance(getattr(m, "attention_dropout", 0), float)]
