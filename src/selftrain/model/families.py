"""Nine families of encoders and their seams: the names that each gives its modules.

A seam is a path to a module that a tuning or reader works on. Tunings use seams only, so nine
families and seven tunings are sixteen pieces of code, not sixty-three. A new family is one row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MLMSeam:
    """The parts of a family's MLM head, as paths inside the complete model."""

    dense: str
    norm: str
    weight: str
    """The decoder: one row per word."""
    bias: str
    activation: str | None = None
    """The config entry of the activation; None where the family's code always uses GELU."""
    switch: tuple[str, bool] | None = None
    """The config entry to set for this layout, where checkpoints do not have it."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The modules that must not act when an encoder is cut into two halves."""

    ends: str | None = None
    """The last module of the encoder: the identity in the lower half."""
    starts: str | None = None
    """The module behind the embeddings: the identity in the upper half."""
    absent: str | None = None
    """A part of the first layer that the upper half must not have."""


@dataclass(frozen=True, slots=True)
class Family:
    """The seams of one family: paths inside the encoder (the first two) or inside a layer."""

    name: str
    """The ``model_type`` of its configurations."""
    layers: str
    word_embeddings: str
    attention: str
    """The module that mixes positions."""
    query: str
    key: str
    value: str
    attention_out: str
    """The Linear behind the attention, before residual and norm."""
    ffn_out: str
    """The Linear behind the feed-forward, before residual and norm."""
    mlm: tuple[MLMSeam, ...]
    """More than one where its checkpoints come in two layouts."""
    reserved_positions: int = 0
    """Positions at the start of the table that no token uses."""
    shares_layers: bool = False
    """All layers have the same weights."""
    cut: Cut = Cut()
    plain_qkv: bool = False
    """Queries, keys and values are three Linears of a layer's input and nothing more. Then the last
    layer can compute one position only, and the first need not project the same states twice."""
    slots: Mapping[str, int] | None = None
    """For attention outside transformers' AttentionInterface: its arguments of shape [.., L, L],
    and their value for a key that is always seen, at no distance."""


def _bert_like(name: str, *mlm: MLMSeam, **seams: Any) -> Family:
    """Most families have BERT's names; a row lists the ones that differ."""
    bert: dict[str, Any] = {
        "layers": "encoder.layer",
        "word_embeddings": "embeddings.word_embeddings",
        "attention": "attention.self",
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "attention_out": "attention.output.dense",
        "ffn_out": "output.dense",
    }
    return Family(name=name, mlm=mlm, **(bert | seams))


_BERT_HEAD = MLMSeam(
    "cls.predictions.transform.dense",
    "cls.predictions.transform.LayerNorm",
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    activation="hidden_act",
)
_ROBERTA_HEAD = MLMSeam(
    "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder.weight", "lm_head.decoder.bias"
)

_ROWS = (
    _bert_like("bert", _BERT_HEAD, plain_qkv=True),
    _bert_like("roberta", _ROBERTA_HEAD, reserved_positions=2, plain_qkv=True),
    _bert_like("xlm-roberta", _ROBERTA_HEAD, reserved_positions=2, plain_qkv=True),
    _bert_like(
        "electra",
        MLMSeam(
            "generator_predictions.dense",
            "generator_predictions.LayerNorm",
            "generator_lm_head.weight",
            "generator_lm_head.bias",
        ),
        cut=Cut(starts="embeddings_project"),
        plain_qkv=True,
    ),
    _bert_like(
        "albert",
        MLMSeam(
            "predictions.dense",
            "predictions.LayerNorm",
            "predictions.decoder.weight",
            "predictions.decoder.bias",
            activation="hidden_act",
        ),
        layers="encoder.albert_layer_groups",
        attention="albert_layers.0.attention",
        query="albert_layers.0.attention.query",
        key="albert_layers.0.attention.key",
        value="albert_layers.0.attention.value",
        attention_out="albert_layers.0.attention.dense",
        ffn_out="albert_layers.0.ffn_output",
        shares_layers=True,
    ),
    _bert_like(
        "distilbert",
        MLMSeam(
            "vocab_transform",
            "vocab_layer_norm",
            "vocab_projector.weight",
            "vocab_projector.bias",
            activation="activation",
        ),
        layers="transformer.layer",
        attention="attention",
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        attention_out="attention.out_lin",
        ffn_out="ffn.lin2",
        plain_qkv=True,
    ),
    _bert_like(
        "deberta-v2",
        _BERT_HEAD,
        MLMSeam(  # the layout of the published v3 checkpoints
            "lm_predictions.lm_head.dense",
            "lm_predictions.lm_head.LayerNorm",
            "deberta.embeddings.word_embeddings.weight",
            "lm_predictions.lm_head.bias",
            activation="hidden_act",
            switch=("legacy", False),
        ),
        query="attention.self.query_proj",
        key="attention.self.key_proj",
        value="attention.self.value_proj",
        slots={"attention_mask": 1, "relative_pos": 0},
        cut=Cut(absent="encoder.conv"),
    ),
    _bert_like(
        "modernbert",
        MLMSeam(
            "head.dense",
            "head.norm",
            "decoder.weight",
            "decoder.bias",
            activation="classifier_activation",
        ),
        layers="layers",
        word_embeddings="embeddings.tok_embeddings",
        attention="attn",
        query="attn.Wqkv",
        key="attn.Wqkv",
        value="attn.Wqkv",
        attention_out="attn.Wo",
        ffn_out="mlp.Wo",
        cut=Cut(ends="final_norm"),
    ),
    _bert_like(
        "mpnet",
        _ROBERTA_HEAD,
        attention="attention.attn",
        query="attention.attn.q",
        key="attention.attn.k",
        value="attention.attn.v",
        attention_out="attention.attn.o",
        reserved_positions=2,
        slots={"attention_mask": 0, "position_bias": 0},
    ),
)

FAMILIES: Mapping[str, Family] = {family.name: family for family in _ROWS}
