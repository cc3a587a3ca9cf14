"""The same answers in less time: every speed trick is in this folder, behind ``install``.

| file | what it saves |
|---|---|
| dropout.py | random numbers: one draw of 64 bits decides about four elements |
| attention.py | the attention functions through which dropout and one position act |
| one_position.py | the last layer for the positions that nobody reads |
| projections.py | queries, keys and values that are the same in every dropout pass |
| trunk.py | the frozen layers below a cut: they are computed once in a run, not in every step |

Without this folder and the one call of ``install``, in ``build.py``, every model gives the same
answers in eval mode, within 1e-5 (``tests/model/test_fast.py``). In training mode dropout draws
other numbers at the same rate. The states that ``trunk.py`` remembers depend on the rows of a
run, so ``training`` plans them and forgets them; until then the memory is empty and unused.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from selftrain.model.fast import attention, dropout, one_position, projections
from selftrain.model.fast.trunk import memory_of
from selftrain.model.pel.layers import depth

if TYPE_CHECKING:
    from selftrain.model.classifier import Classifier


def install(model: Classifier) -> None:
    """Make a newly built classifier faster, in place."""
    family = model.backbone.family
    dropout.install(model)
    if attention.install(model.encoder) and family.plain_qkv:
        one_position.install(model.encoder, family)
        model.states_at = one_position.states_at
    if family.plain_qkv:
        model.same_start = partial(projections.same_start, family)
    if model.trunk is not None:
        model.trunk.memory = memory_of(model.backbone, depth(model.trunk.layers, family))
