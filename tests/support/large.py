"""RoBERTa-large without memory: the paper's encoder on the meta device, to count parameters."""

from __future__ import annotations

from dataclasses import replace

import torch
from transformers import AutoModelForMaskedLM, RobertaConfig

from selftrain.model.backbone import FAMILIES, Backbone
from selftrain.model.mlm import pretrained_head

LARGE = RobertaConfig(
    vocab_size=50265,
    hidden_size=1024,
    num_hidden_layers=24,
    num_attention_heads=16,
    intermediate_size=4096,
    max_position_embeddings=514,
    type_vocab_size=1,
)


def roberta_large(tiny_roberta: Backbone) -> Backbone:
    """A tiny RoBERTa with the encoder and the MLM head of the large one."""
    with torch.device("meta"):
        model = AutoModelForMaskedLM.from_config(LARGE)
    head = pretrained_head(model, FAMILIES["roberta"])
    return replace(tiny_roberta, encoder=model.base_model, mlm=head, max_length=512)
