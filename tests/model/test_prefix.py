"""Prefix tuning: learned keys and values shift nothing, and every depth has its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from by_hand import FILMS as TASK
from selftrain.data.rows import examples
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.batches import collate
from selftrain.model.build import build
from selftrain.model.classifier import Classifier
from selftrain.model.pel import Full, Prefix
from selftrain.model.pel.prefix import KeysValues
from selftrain.model.pel.slots import Slotted
from tiny import RECIPES

ROWS = examples(["a great film", "the story was long and dull , but the acting was fine", "no"])


def context_of(model: Classifier) -> Tensor:
    """What the top layer's attention says before its output Linear: [B, L, heads, d]."""
    seen: list[Tensor] = []
    family = model.backbone.family
    top = list(model.encoder.get_submodule(family.layers).children())[-1]
    seam = family.attention_out
    if isinstance(top.get_submodule(family.attention), Slotted):
        seam = seam.replace("attn.", "attn.attention.")
    linear = top.get_submodule(seam)
    hook = linear.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    batch = collate(model.encode(ROWS[1:2]), model.pad)
    with torch.no_grad():
        model.encoder(**batch.inputs(model.lower(batch)))
    hook.remove()
    return seen[0][:, : batch.ids.shape[1]].unflatten(2, (4, 8))


@pytest.mark.parametrize("family", [name for name in RECIPES if name != "albert"])
def test_an_empty_prefix_only_takes_a_share_of_the_attention(
    family: str, tiny_backbone: Callable[[str], Backbone]
) -> None:
    """Zero keys and values leave every head's answer in its direction: no position has shifted,
    no padding or empty state has leaked in."""
    backbone = tiny_backbone(family)
    plain = build(TASK, backbone, Architecture(Full()), seed=1)
    model = build(TASK, backbone, Architecture(Prefix(length=5, layers=1)), seed=1)
    for name, parameter in model.trainable().items():
        if "prefix" in name:
            nn.init.zeros_(parameter)
    share = context_of(model) / context_of(plain)  # [1, L, heads, d]
    torch.testing.assert_close(share, share[..., :1].expand_as(share), atol=1e-3, rtol=1e-3)
    assert 0 < share.min() < share.max() < 1


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "electra", "distilbert"])
def test_a_prefix_of_the_rows_own_keys_and_values_changes_nothing(
    family: str, tiny_backbone: Callable[[str], Backbone]
) -> None:
    """Attention over every key twice is attention over every key once."""
    backbone = tiny_backbone(family)
    plain = build(TASK, backbone, Architecture(Full()), seed=1)
    batch = collate(plain.encode(ROWS[1:2]), plain.pad)
    seams = [
        f"{backbone.family.layers}.2.{at}" for at in (backbone.family.key, backbone.family.value)
    ]
    seen: dict[str, Tensor] = {}
    for seam in seams:
        plain.encoder.get_submodule(seam).register_forward_hook(
            lambda _, __, output, seam=seam: seen.update({seam: output[0]})
        )
    with torch.no_grad():
        expected = plain.encoder(**batch.inputs()).last_hidden_state[:, 0]
        model = build(
            TASK, backbone, Architecture(Prefix(length=batch.ids.shape[1], layers=1)), seed=1
        )
        (vectors,) = [p for name, p in model.trainable().items() if "prefix" in name]
        vectors.copy_(torch.stack([seen[seam] for seam in seams]).unsqueeze(0))
        torch.testing.assert_close(model(batch).features, expected, atol=1e-5, rtol=1e-4)


def test_every_depth_of_shared_layers_has_its_own_prefix(
    tiny_backbone: Callable[[str], Backbone],
) -> None:
    model = build(TASK, tiny_backbone("albert"), Architecture(Prefix(length=4)), seed=1)
    layer = model.encoder.get_submodule(f"{model.backbone.family.layers}.0")
    depths: list[Tensor] = []
    layer.register_forward_hook(lambda _, __, output: depths.append(output))
    (vectors,) = [p for name, p in model.trainable().items() if "prefix" in name]
    assert vectors.shape == (3, 2, 4, 32)
    batch = collate(model.encode(ROWS[:1]), model.pad)
    with torch.no_grad():
        model(batch)
        vectors[1] += 1.0
        model(batch)
    first, second = depths[:3], depths[3:]
    assert torch.equal(first[0], second[0])
    assert not torch.allclose(first[1], second[1])


def test_a_broken_pass_does_not_shift_the_depths_of_the_next(
    tiny_backbone: Callable[[str], Backbone],
) -> None:
    model = build(TASK, tiny_backbone("albert"), Architecture(Prefix(length=4)), seed=1)
    expected = model.probabilities(ROWS)
    for module in model.modules():
        if isinstance(module, KeysValues):
            module.call = 1
    assert torch.equal(model.probabilities(ROWS), expected)


def test_a_reparameterised_prefix_has_one_network_for_all_layers(
    tiny_backbone: Callable[[str], Backbone],
) -> None:
    model = build(
        TASK, tiny_backbone("bert"), Architecture(Prefix(encoder="mlp"), "prompt"), seed=1
    )
    shared = {id(m.shared) for m in model.modules() if isinstance(m, KeysValues)}
    assert len(shared) == 1
    assert sum("shared.vectors" in name for name in model.trainable()) == 1
