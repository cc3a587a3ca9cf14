"""Nine families of encoders and their seams: the only place that knows a family's names.

A tuning is written against seams, so nine families and seven tunings are sixteen pieces, not
sixty-three. A new family is one row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MLMSeam:
    """Where a family keeps the parts of its MLM head, as paths inside the whole model."""

    dense: str
    norm: str
    weight: str
    """The decoder: one row per word."""
    bias: str
    activation: str | None = None
    """What its config calls the activation; None where the family's code says GELU."""
    switch: tuple[str, bool] | None = None
    """What its config must say for this layout, where the config itself does not know."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What must not act when an encoder runs as two halves."""

    ends: str | None = None
    """The module that ends the whole encoder: the identity in its lower half."""
    starts: str | None = None
    """The module behind the embeddings: the identity in its upper half."""
    absent: str | None = None
    """A part of the first layer that the upper half must not have."""


@dataclass(frozen=True, slots=True)
class Family:
    """The seams of one family, as paths: the first two inside the encoder, the rest in a layer."""

    name: str
    """The ``model_type`` of its configurations."""
    layers: str
    words: str
    """The word embeddings."""
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
    reserved: int = 0
    """Positions at the start of the table that no token gets."""
    shared: bool = False
    """One layer's weights serve every depth."""
    cut: Cut = Cut()
    one_row: bool = False
    """Queries, keys and values are three Linears of a layer's input and nothing more: the last
    layer can be asked for one position, and the first need not project the same states twice."""
    slots: Mapping[str, int] | None = None
    """For attention that transformers' AttentionInterface does not reach: the arguments shaped
    [.., L, L], and what a key that is always seen, at no distance, has there."""


def _bert_like(name: str, *mlm: MLMSeam, **seams: Any) -> Family:
    """Most families keep BERT's names; a row says where one does not."""
    bert: dict[str, Any] = {
        "layers": "encoder.layer",
        "words": "embeddings.word_embeddings",
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
    _bert_like("bert", _BERT_HEAD, one_row=True),
    _bert_like("roberta", _ROBERTA_HEAD, reserved=2, one_row=True),
    _bert_like("xlm-roberta", _ROBERTA_HEAD, reserved=2, one_row=True),
    _bert_like(
        "electra",
        MLMSeam(
            "generator_predictions.dense",
            "generator_predictions.LayerNorm",
            "generator_lm_head.weight",
            "generator_lm_head.bias",
        ),
        cut=Cut(starts="embeddings_project"),
        one_row=True,
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
        shared=True,
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
        one_row=True,
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
        words="embeddings.tok_embeddings",
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
        reserved=2,
        slots={"attention_mask": 0, "position_bias": 0},
    ),
)

FAMILIES: Mapping[str, Family] = {family.name: family for family in _ROWS}
