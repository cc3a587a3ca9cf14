"""The remembered trunk: the same answers, the same bits on resume, and no room for surprises."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import by_hand
from by_hand import FILMS as TASK
from selftrain.data.rows import Example, examples
from selftrain.data.task import Task
from selftrain.errors import ConfigError, ModelError, RunError
from selftrain.method.scores import certainty
from selftrain.method.spec import Tune
from selftrain.model import build as build_room
from selftrain.model.backbone import Backbone, load
from selftrain.model.batches import Row, collate
from selftrain.model.build import build, narrowed
from selftrain.model.classifier import Classifier
from selftrain.model.fast import trunk
from selftrain.model.fast.trunk import Memory, memory_of
from selftrain.model.pel import Adapter, BitFit, Full, LoRA, Prefix, PTuning, Tuning
from selftrain.model.surgery import dropout_rates
from selftrain.training.annotate import annotate
from selftrain.training.loop import Round, self_train
from selftrain.training.machine import Machine
from small_disk import small_disk
from small_run import MACHINE
from tiny import RECIPES

CUT = [family for family in RECIPES if family != "albert"]
LONG = "a great film the story was long and dull but fine no good day of news terrible"
TEXTS = examples([LONG[i : i + 4 + 7 * (i % 9)].strip() for i in range(12)])


@pytest.fixture
def backbone(tiny_folder: Callable[[str], Path]) -> Backbone:
    """A backbone of one test alone: its memories are nobody else's."""
    return load(tiny_folder("bert"))


def cut_model(backbone: Backbone, tuning: Tuning = Adapter(width=4, layers=1)) -> Classifier:
    model = build(TASK, backbone, tuning, reader="head", seed=1)
    moved(model)
    return model


def moved(model: Classifier) -> None:
    """As after training: a tuning that starts as the identity would hide a mistake."""
    torch.manual_seed(7)
    for p in model.trainable().values():
        p.data += 0.1 * torch.randn_like(p)


def planned(model: Classifier, rows: Sequence[Example], **how: Any) -> int:
    assert model.trunk is not None
    assert model.trunk.memory is not None
    options = {"limit": 10**9, **how}
    return model.trunk.memory.plan(model.encode(rows), model.backbone.width, **options)


@pytest.mark.parametrize("reader", ["head", "prompt"])
@pytest.mark.parametrize("family", CUT)
def test_answers_from_memory_are_those_without(
    family: str, reader: Any, tiny_folder: Callable[[str], Path]
) -> None:
    model = build(
        TASK, load(tiny_folder(family)), Adapter(width=4, layers=2), reader=reader, seed=1
    )
    moved(model)
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
    monkeypatch.setattr(build_room, "_cut", lambda _card, _backbone, encoder: (None, encoder))
    whole = build(TASK, tiny_backbone(family), tuning, reader="head", seed=1)
    assert model.trunk is not None
    assert whole.trunk is None
    for mine, other in zip(model.trainable().values(), whole.trainable().values(), strict=True):
        other.data.copy_(mine)
    expected = whole.read(TEXTS)
    torch.testing.assert_close(model.read(TEXTS), expected, atol=1e-5, rtol=0)


def test_pairs_with_segments_are_told_apart(backbone: Backbone) -> None:
    task = Task("pairs", ("no", "yes"), pair=True, max_length=32)
    model = build(task, backbone, Adapter(width=4, layers=1), reader="head", seed=1)
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


def test_the_limit_is_kept_and_the_rest_still_answered(backbone: Backbone) -> None:
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
    there = batch.attention.bool()
    torch.testing.assert_close(found[there], expected[there], atol=1e-5, rtol=0)


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
    monkeypatch.setattr(trunk, "MOST_ROWS", 2)
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
    """In a process of its own: exits 0 only where a truly full disk is told in words."""
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


# ── passes that differ in the upper layers only ──


@pytest.mark.parametrize(
    "tuning",
    [Full(), Adapter(width=4), Adapter(width=4, layers=2), PTuning(length=3), Prefix(length=3)],
)
def test_a_narrowed_model_says_the_same_and_wavers_above_alone(
    tuning: Tuning, backbone: Backbone
) -> None:
    model = cut_model(backbone, tuning)
    narrow = narrowed(model, 1)
    batch = collate(model.encode(TEXTS), model.pad)
    with torch.no_grad():
        assert torch.equal(narrow(batch).logits, model(batch).logits)
        narrow.train()
        assert torch.equal(narrow.lower(batch), narrow.lower(batch))
        assert not torch.equal(narrow(batch).logits, narrow(batch).logits)
    shared = {p.data_ptr() for p in model.parameters()}
    assert {p.data_ptr() for p in narrow.parameters()} <= shared


def test_all_layers_narrow_to_the_model_itself(
    backbone: Backbone, tiny_backbone: Callable[[str], Backbone]
) -> None:
    model = cut_model(backbone)
    assert narrowed(model, None) is model
    assert narrowed(model, 1) is model
    assert narrowed(model, "half") is model
    assert narrowed(model, "last") is model
    shared = build(TASK, tiny_backbone("albert"), Full(), reader="head", seed=1)
    assert narrowed(shared, "half") is shared
    with pytest.raises(ConfigError, match="the same weights in every layer"):
        narrowed(shared, 1)


def test_narrow_passes_tell_certainty_and_leave_the_teacher_alone(backbone: Backbone) -> None:
    teacher = cut_model(backbone, Full())
    assert any(dropout_rates(teacher))
    before = teacher.probabilities(TEXTS)
    ((_, wide),) = annotate(teacher, TEXTS, 8, seed=3, on=MACHINE)
    ((_, narrow),) = annotate(narrowed(teacher, 1), TEXTS, 8, seed=3, on=MACHINE)
    torch.testing.assert_close(narrow.plain, wide.plain, atol=1e-6, rtol=0)
    assert (certainty(narrow) < 1).all()
    assert certainty(narrow).mean() > certainty(wide).mean()
    assert torch.equal(teacher.probabilities(TEXTS), before)
    assert not teacher.training


# ── in a run ──


def rounds_of(
    backbone: Backbone,
    on: Machine = by_hand.MACHINE,
    done: Sequence[Round] = (),
    teacher: Tune = by_hand.METHOD.teacher,
    **student: Any,
) -> Generator[Round]:
    how = replace(by_hand.STUDENT, tuning=Adapter(width=4, layers=1), **student)
    method = replace(by_hand.METHOD, teacher=teacher, student=(how,), rounds=2)
    yield from self_train(
        by_hand.TASK, by_hand.SPLIT, method, backbone=backbone, seed=3, on=on, done=done
    )


def run(backbone: Backbone, on: Machine = by_hand.MACHINE, **student: Any) -> list[Round]:
    return list(rounds_of(backbone, on, **student))


def test_a_run_plans_all_its_rows_and_learns_as_without_memory(backbone: Backbone) -> None:
    memory = memory_of(backbone, 2)
    small = replace(by_hand.MACHINE, cache_mb=0)
    with_memory = [(round_, memory.planned) for round_ in rounds_of(backbone)]
    with_none = [(round_, memory.planned) for round_ in rounds_of(backbone, small)]
    remembered, planned = zip(*with_memory, strict=True)
    without, none = zip(*with_none, strict=True)
    assert min(planned) > len(by_hand.SPLIT.labelled) + by_hand.METHOD.pool
    assert set(none) == {0}
    for one, other in zip(remembered, without, strict=True):
        for name, tensor in one.model.state().items():
            torch.testing.assert_close(tensor, other.model.state()[name], atol=1e-4, rtol=1e-3)


def test_nothing_is_remembered_after_a_run_or_one_that_was_left(backbone: Backbone) -> None:
    """Else the disk stays taken, and a later model would read states that it did not ask for."""
    memory = memory_of(backbone, 2)
    run(backbone)
    assert memory.planned == 0
    left = rounds_of(backbone)
    next(left)
    assert memory.planned > 0
    left.close()
    assert memory.planned == 0


def test_a_finished_run_plans_nothing(backbone: Backbone, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(backbone)
    monkeypatch.setattr(Memory, "plan", lambda *_, **__: pytest.fail("planned again"))
    assert list(rounds_of(backbone, done=done)) == []


def test_a_teacher_cut_elsewhere_is_remembered_too(backbone: Backbone) -> None:
    teacher = replace(by_hand.METHOD.teacher, tuning=Adapter(width=4, layers=2))
    left = rounds_of(backbone, teacher=teacher)
    next(left)
    assert memory_of(backbone, 1).planned == memory_of(backbone, 2).planned > 0
    left.close()


def test_a_run_keeps_states_in_half_when_asked_and_that_changes_answers(
    backbone: Backbone,
) -> None:
    whole = run(backbone)[-1].model.probabilities(TEXTS)
    half = run(backbone, states="fp16")[-1].model.probabilities(TEXTS)
    assert 0 < (whole - half).abs().max() < 0.1


def test_a_run_says_what_it_takes_of_the_disk_before_it_starts(
    backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    plan = Memory.plan

    def large(memory: Memory, *rows: Any, limit: int, **how: Any) -> int:
        return 1000 * plan(memory, *rows, limit=limit // 1000, **how)

    monkeypatch.setattr(Memory, "plan", large)
    for megabytes in (4096, 2):
        on = replace(by_hand.MACHINE, note=said.append, cache_mb=megabytes)
        next(rounds_of(backbone, on))
    told = r"frozen layers are computed once for \d+ texts: \d+ MB of disk meanwhile"
    assert re.fullmatch(told, said[0])
    assert re.fullmatch(told + "; not all fit: the others are computed each time", said[1])
