"""Attention functions for transformers: with cheaper dropout, and able to read one position.

They replace torch's own attention and that of prefix tuning; an encoder with any other attention
(DeBERTa, or one loaded as "eager") stays as it is.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from selftrain.model.fast.dropout import attend
from selftrain.model.fast.one_position import with_all_keys
from selftrain.model.pel import prefix

REPLACED = {
    "sdpa": ("selftrain_fast", with_all_keys(attend)),
    prefix.ATTENTION: ("selftrain_fast_prefix", with_all_keys(prefix.with_prefix(attend))),
}
"""The attention that an encoder's config names, and what replaces it."""


def install(encoder: nn.Module) -> bool:
    """Replace the attention of an encoder, in place; False if it has none that can be replaced."""
    config: Any = encoder.config
    if config._attn_implementation not in REPLACED:
        return False
    name, function = REPLACED[config._attn_implementation]
    AttentionInterface.register(name, function)  # the same function under the same name each time
    AttentionMaskInterface.register(name, sdpa_mask)
    config._attn_implementation = name
    return True
