"""Changes of an encoder: second trees on the same memory, and a cut in two."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from selftrain.errors import ConfigError
from selftrain.model.backbone import Backbone
from selftrain.model.surgery import cut, twin
from tiny import RECIPES

Backbones = Callable[[str], Backbone]


def test_a_twin_shares_its_memory_except_for_the_copied_parameters(
    tiny_backbone: Backbones,
) -> None:
    backbone = tiny_backbone("bert")
    name = "embeddings.word_embeddings.weight"
    second = twin(backbone.encoder, {name})
    for (path, second_tensor), tensor in zip(
        second.named_parameters(), backbone.encoder.parameters(), strict=True
    ):
        assert (second_tensor.data_ptr() == tensor.data_ptr()) == (path != name)
    assert torch.equal(second.get_parameter(name), backbone.encoder.get_parameter(name))


def test_a_twin_keeps_a_tied_decoder_tied(tiny_backbone: Backbones) -> None:
    backbone = tiny_backbone("roberta")
    assert backbone.mlm is not None
    both = nn.ModuleDict({"encoder": backbone.encoder, "mlm": backbone.mlm})
    second = twin(both, {"encoder.embeddings.word_embeddings.weight"})
    words = second["encoder"].get_submodule("embeddings.word_embeddings").weight
    assert second["mlm"].weight is words
    assert words is not backbone.mlm.weight


def test_a_change_of_a_twin_does_not_change_the_first(tiny_backbone: Backbones) -> None:
    encoder = tiny_backbone("bert").encoder
    names = [name for name, _ in encoder.named_modules()]
    second = twin(encoder)
    second.encoder.layer[0].output.dense = nn.Identity()
    second.config._attn_implementation = "eager"
    assert [name for name, _ in encoder.named_modules()] == names
    assert isinstance(encoder.encoder.layer[0].output.dense, nn.Linear)
    assert encoder.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("family", [name for name in RECIPES if name != "albert"])
def test_an_encoder_cut_in_two_answers_the_same_to_the_last_bit(
    family: str, at: int, tiny_backbone: Backbones
) -> None:
    backbone = tiny_backbone(family)
    rows = backbone.tokenizer(["a great film", "no"], padding=True, return_tensors="pt")
    ids, mask = rows["input_ids"], rows["attention_mask"]
    lower, upper = cut(backbone.encoder, backbone.family, at)
    with torch.no_grad():
        whole = backbone.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        middle = lower(input_ids=ids, attention_mask=mask).last_hidden_state
        halves = upper(inputs_embeds=middle, attention_mask=mask).last_hidden_state
    assert torch.equal(whole[mask.bool()], halves[mask.bool()])


def test_shared_layers_cannot_be_cut(tiny_backbone: Backbones) -> None:
    backbone = tiny_backbone("albert")
    with pytest.raises(ConfigError, match="cannot be cut"):
        cut(backbone.encoder, backbone.family, 1)
