"""What is done to a loaded encoder: a second copy, a cut in two, other dropout rates."""

from __future__ import annotations

import copy
from collections.abc import Container
from typing import Any

from torch import Tensor, nn

from selftrain.errors import ConfigError
from selftrain.model.backbone import Tree, _numbers
from selftrain.model.families import Family


def twin(module: Tree, own: Container[str] = ()) -> Tree:
    """A second module tree on the same tensors, except the parameters named in ``own``.

    A deepcopy whose memo already holds what is shared: ties survive (the decoder of an MLM head
    stays its word embeddings), and what is put into one tree leaves the other alone.
    """
    shared = [*(p for name, p in module.named_parameters() if name not in own), *module.buffers()]
    return copy.deepcopy(module, {id(tensor): tensor for tensor in shared})


def cut(encoder: nn.Module, family: Family, at: int) -> tuple[nn.Module, nn.Module]:
    """An encoder as two, below layer ``at`` and from it on, with the same weights and code.

    ``upper(inputs_embeds=lower(ids, mask).last_hidden_state, attention_mask=mask)`` is what the
    whole encoder says, to the last bit.
    """
    if family.shared:
        raise ConfigError(
            f"`{family.name}` has the same weights in every layer and cannot be cut",
            "leave `layers` out of what the student changes, and `passes_in`: all layers",
        )
    lower, upper = twin(encoder), twin(encoder)
    for half, kept in ((lower, slice(None, at)), (upper, slice(at, None))):
        layers = list(half.get_submodule(family.layers).children())
        half.set_submodule(family.layers, nn.ModuleList(layers[kept]))
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
    """Stands for the embeddings of an upper half, which is given hidden states."""

    def forward(
        self, _ids: None = None, inputs_embeds: Tensor | None = None, *_: Any, **__: Any
    ) -> Tensor:
        """What came in."""
        assert inputs_embeds is not None
        return inputs_embeds


def dropout_rates(module: nn.Module) -> list[float]:
    """Every dropout rate in a module tree."""
    layers = [each.p for each in module.modules() if isinstance(each, nn.Dropout)]
    return layers + [each.attention_dropout for each in _numbers(module)]


def set_dropout(module: nn.Module, rate: float) -> None:
    """Set every dropout rate in a module tree."""
    for each in module.modules():
        if isinstance(each, nn.Dropout):
            each.p = rate
    for each in _numbers(module):
        each.attention_dropout = rate
