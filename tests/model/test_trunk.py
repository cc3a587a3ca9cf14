"""The remembered trunk: the same answers, the same bits on resume, and limits that hold."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from by_hand import FILMS as TASK
from cut_models import TEXTS, cut_model, planned, train_a_little
from selftrain.data.rows import Example
from selftrain.data.task import Task
from selftrain.errors import ModelError, RunError
from selftrain.model import build as build_room
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone, load
from selftrain.model.batches import Row, collate
from selftrain.model.build import build
from selftrain.model.fast import trunk
from selftrain.model.fast.trunk import Memory, memory_of
from selftrain.model.pel import Adapter, BitFit, LoRA, Prefix, Tuning
from small_disk import small_disk
from tiny import RECIPES

CUT = [family for family in RECIPES if family != "albert"]


@pytest.mark.parametrize("reader", ["head", "prompt"])
@pytest.mark.parametrize("family", CUT)
def test_answers_from_memory_are_those_without(
    family: str, reader: Any, tiny_folder: Callable[[str], Path]
) -> None:
    model = build(
        TASK, load(tiny_folder(family)), Architecture(Adapter(width=4, layers=2), reader), seed=1
    )
    train_a_little(model)
    expected = model.probabilities(TEXTS)
    assert planned(model, TEXTS[:8])  # four are not planned for
    for _ in range(2):  # when they are first computed, and when they are looked up
        found = model.probabilities(TEXTS)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
        assert torch.equal(found.argmax(1), expected.argmax(1))


@pytest.mark.parametrize("tuning", [Adapter(width=4, layers=2), Prefix(length=3, layers=2)])
@pytest.mark.parametrize("family", CUT)
def test_a_cut_encoder_answers_as_the_whole_one_does(
    family: str,
    tuning: Tuning,
    tiny_backbone: Callable[[str], Backbone],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Learned keys and values that stand at placeholders too (deberta, mpnet): they are those of
    a layer, and below the cut there are none."""
    model = cut_model(tiny_backbone(family), tuning)
    monkeypatch.setattr(
        build_room, "_split_off_trunk", lambda _card, _backbone, encoder: (None, encoder)
    )
    whole = build(TASK, tiny_backbone(family), Architecture(tuning), seed=1)
    assert model.trunk is not None
    assert whole.trunk is None
    for tensor, other in zip(model.trainable().values(), whole.trainable().values(), strict=True):
        other.data.copy_(tensor)
    expected = whole.read(TEXTS)
    torch.testing.assert_close(model.read(TEXTS), expected, atol=1e-5, rtol=0)


def test_pairs_with_other_segments_have_other_states(backbone: Backbone) -> None:
    task = Task("pairs", ("no", "yes"), pair=True, max_length=32)
    model = build(task, backbone, Architecture(Adapter(width=4, layers=1)), seed=1)
    pairs = [Example("1", "a great film", "no"), Example("2", "a great", "film no")]
    expected = model.probabilities(pairs)
    planned(model, pairs)
    torch.testing.assert_close(model.probabilities(pairs), expected, atol=1e-5, rtol=0)
    assert not torch.allclose(expected[0], expected[1], atol=1e-6)


@pytest.mark.parametrize(
    "tuning",
    [Adapter(width=4, layers=1), Prefix(length=3, layers=1), LoRA(layers=1), BitFit(layers=1)],
)
def test_gradients_from_memory_are_those_without(tuning: Tuning, backbone: Backbone) -> None:
    model = cut_model(backbone, tuning)
    model.eval()

    def gradients() -> list[Tensor]:
        model.zero_grad()
        batch = collate(model.encode(TEXTS), model.pad)
        F.cross_entropy(model(batch).logits, torch.arange(12) % 2).backward()
        return [p.grad.clone() for p in model.trainable().values() if p.grad is not None]

    expected = gradients()
    planned(model, TEXTS)
    assert len(expected) == len(model.trainable())
    torch.testing.assert_close(gradients(), expected, atol=1e-5, rtol=1e-4)


def test_below_the_cut_nothing_is_dropped(backbone: Backbone) -> None:
    model = cut_model(backbone)
    model.train()
    assert model.trunk is not None
    assert not any(module.training for module in model.trunk.modules())
    batch = collate(model.encode(TEXTS), model.pad)
    assert torch.equal(model.trunk(batch), model.trunk(batch))
    assert not torch.equal(model(batch).logits, model(batch).logits)


def test_a_rows_bits_do_not_depend_on_who_asks_first(
    backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What makes a resumed run the same: it asks for other rows first, or in other company."""
    monkeypatch.setattr(trunk, "BLOCK", 5)
    model = cut_model(backbone)
    found = []
    for order in (range(12), reversed(range(12)), (7, 3, 11, 0, 1, 2, 4, 5, 6, 8, 9, 10)):
        planned(model, TEXTS)
        states = {}
        for i in order:
            batch = collate(model.encode([TEXTS[i]]), model.pad)
            states[i] = model.lower(batch)
        found.append(states)
    for i in range(12):
        assert torch.equal(found[0][i], found[1][i])
        assert torch.equal(found[0][i], found[2][i])


def test_every_row_is_encoded_once(backbone: Backbone) -> None:
    model = cut_model(backbone)
    assert model.trunk is not None
    planned(model, [*TEXTS, *TEXTS])
    tokens = []
    model.trunk.layers.register_forward_pre_hook(
        lambda _, __, inputs: tokens.append(int(inputs["attention_mask"].sum())), with_kwargs=True
    )
    for _ in range(3):
        model.probabilities(TEXTS)
    assert sum(tokens) == sum(len(row.ids) for row in model.encode(TEXTS))


def test_the_limit_holds_and_the_other_rows_are_still_answered(backbone: Backbone) -> None:
    model = cut_model(backbone)
    lengths = [len(row.ids) for row in model.encode(TEXTS)]
    one = backbone.width * 4
    expected = model.probabilities(TEXTS)
    assert planned(model, TEXTS, limit=sum(lengths[:5]) * one + one - 1) == sum(lengths[:5]) * one
    assert memory_of(backbone, 2).planned == 5
    torch.testing.assert_close(model.probabilities(TEXTS), expected, atol=1e-5, rtol=0)
    assert planned(model, TEXTS, limit=0) == 0
    assert torch.equal(model.probabilities(TEXTS), expected)


def test_rows_without_a_place_are_all_that_is_encoded_again(backbone: Backbone) -> None:
    model = cut_model(backbone)
    assert model.trunk is not None
    batch = collate(model.encode(TEXTS), model.pad)
    expected = model.lower(batch)
    planned(model, TEXTS[:8])
    model.lower(batch)
    rows = []
    model.trunk.layers.register_forward_pre_hook(
        lambda _, __, inputs: rows.append(len(inputs["attention_mask"])), with_kwargs=True
    )
    found = model.lower(batch)
    assert rows == [4]
    real = batch.attention.bool()
    torch.testing.assert_close(found[real], expected[real], atol=1e-5, rtol=0)


def test_a_state_too_large_for_16_bits_is_an_error(backbone: Backbone) -> None:
    model = cut_model(backbone)
    planned(model, TEXTS, half=True)
    assert model.trunk is not None
    model.trunk.layers.register_forward_hook(lambda _, __, out: scaled(out, 1e6))
    with pytest.raises(ModelError, match=r"a state of [\d,]+ does not fit into 16 bits") as caught:
        model.probabilities(TEXTS)
    assert caught.value.hint == 'keep 32: states = "fp32"'


def scaled(out: Any, factor: float) -> Any:
    out.last_hidden_state = out.last_hidden_state * factor
    return out


def test_rows_that_come_twice_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trunk, "MAX_ROWS", 2)
    rows = [Row((1, 2, 3)), Row((4,)), Row((1, 2, 3)), Row((4,))]
    memory = Memory()
    memory.plan(rows, 8, limit=10**6)
    assert (memory.planned, memory.short) == (2, False)
    memory.plan([*rows, Row((5,))], 8, limit=10**6)
    assert (memory.planned, memory.short) == (2, True)


def test_half_precision_takes_half_and_is_near(backbone: Backbone) -> None:
    model = cut_model(backbone)
    expected = model.probabilities(TEXTS)
    whole = planned(model, TEXTS)
    assert planned(model, TEXTS, half=True) * 2 == whole
    found = model.probabilities(TEXTS)
    assert 0 < (found - expected).abs().max() < 0.01


def test_a_full_disk_is_an_error_before_anything_is_computed(
    backbone: Backbone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(RunError, match="does not take the 0 MB of states"):
        planned(cut_model(backbone), TEXTS, folder=tmp_path)


def plan_on_a_small_disk(place: Path) -> None:
    """In a process of its own: exits 0 only if a really full disk raises our error."""
    small_disk(place)()
    try:
        Memory().plan([Row(tuple(range(1000)))], 1000, limit=10**9, folder=place)
    except RunError as error:
        sys.exit(0 if "does not take the 4 MB of states" in error.message else 2)
    sys.exit(3)


def test_a_disk_that_is_really_too_small_is_an_error(tmp_path: Path) -> None:
    forks = multiprocessing.get_context("forkserver")
    process = forks.Process(target=plan_on_a_small_disk, args=(tmp_path,))
    process.start()
    process.join(60)
    assert process.exitcode == 0


def test_nothing_is_left_in_the_folder(backbone: Backbone, tmp_path: Path) -> None:
    model = cut_model(backbone)
    planned(model, TEXTS, folder=tmp_path)
    model.probabilities(TEXTS)
    assert list(tmp_path.iterdir()) == []


def test_without_fallocate_the_space_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "posix_fallocate")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: (tmp_path / "file").open("w+b"))
    rows = [Row((1, 2, 3)), Row((4,))]
    assert Memory().plan(rows, 100_000, limit=10**9) == 1_600_000
    assert (tmp_path / "file").stat().st_size == 1_600_000
