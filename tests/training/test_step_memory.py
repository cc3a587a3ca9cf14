"""Less memory in a step: batches that are encoded again for their gradient."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from by_hand import GOLD, MACHINE, POOL, STUDENT, TASK, same, steps
from selftrain.data.rows import Labelled, Lesson
from selftrain.method.recipes import recipe
from selftrain.method.spec import Tune
from selftrain.model import batches
from selftrain.model.architecture import Architecture
from selftrain.model.build import build
from selftrain.model.classifier import Classifier
from selftrain.model.pel import IA3, Adapter, BitFit, Full, LoRA, Prefix, PTuning
from selftrain.training.fit import History, fit, forward, step_loss
from selftrain.training.machine import Machine
from selftrain.training.steps import Table

LESSON = Lesson(
    gold=GOLD,
    easy=tuple(Labelled(x, x.uid.split("-")[0], soft=(0.5, 0.5)) for x in POOL[:8]),
    hard=tuple(Labelled(x, x.uid.split("-")[0], soft=(0.5, 0.5)) for x in POOL[8:16]),
)
TWICE = replace(MACHINE, checkpointing=True)
TUNINGS = [
    Full(),
    Adapter(width=4),
    Prefix(length=2),
    PTuning(length=2),
    LoRA(rank=2),
    BitFit(),
    IA3(),
]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "CPU_TOKENS", 40)


def fitted(backbone, how: Tune, machine: Machine) -> Classifier:
    architecture = Architecture(how.tuning, how.reader, head=how.head)
    model = build(TASK, backbone, architecture, seed=1)
    fit(model, LESSON, how, seed=1, machine=machine)
    return model


@pytest.mark.parametrize("tuning", TUNINGS, ids=lambda each: type(each).__name__)
def test_checkpointing_changes_no_bit_of_a_fit(tiny_backbone, tuning) -> None:
    """Each batch draws the same dropout when it is encoded again."""
    how = replace(STUDENT, tuning=tuning)
    once, twice = (fitted(tiny_backbone("bert"), how, each) for each in (MACHINE, TWICE))
    assert same(once, twice)


@pytest.mark.parametrize("how", [STUDENT, recipe("supcon").student[0]], ids=["easy-hard", "supcon"])
def test_a_step_in_parts_has_the_gradient_of_the_whole_step(tiny_backbone, how) -> None:
    """A contrast compares rows of several parts. Without dropout only roundings differ."""
    model = build(TASK, tiny_backbone("bert"), Architecture(how.tuning), seed=1)
    of = Table.of(model, LESSON)
    (step,) = steps(of, how, 1)

    def gradients(parts: int) -> dict[str, Tensor]:
        machine = replace(MACHINE, accumulate=parts)
        step_loss(model, of, step, how, History(), machine).backward()
        found = {name: p.grad for name, p in model.trainable().items() if p.grad is not None}
        model.zero_grad()
        return found

    whole, parts = gradients(1), gradients(8)
    assert any(bool(each.abs().max() > 1e-3) for each in whole.values())
    torch.testing.assert_close(whole, parts, atol=1e-6, rtol=1e-5)


def test_a_step_keeps_what_one_batch_needs(tiny_backbone) -> None:
    model = build(TASK, tiny_backbone("bert"), Architecture(Full()), seed=1).train()
    rows = model.encode(POOL)

    def kept(machine: Machine) -> int:
        """Bytes that are kept for the gradient until all rows are encoded."""
        found: dict[int, int] = {}

        def note(tensor: Tensor) -> Tensor:
            found[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            forward(model, rows, model.pad, torch.device("cpu"), machine)
        return sum(found.values())

    assert kept(TWICE) < kept(MACHINE) / 5


@pytest.mark.parametrize("parts", [2, 5])
def test_rows_are_dealt_into_at_least_so_many_batches(tiny_backbone, parts: int) -> None:
    model = build(TASK, tiny_backbone("bert"), Architecture(Full()), seed=1)
    rows = model.encode(POOL[:10])
    cpu = torch.device("cpu")
    batches_, back = batches.grouped(rows, model.pad, cpu, parts)
    assert len(batches_) >= parts
    assert sorted(back.tolist()) == [*range(10)]
    alone, _ = batches.grouped(rows, model.pad, cpu, 100)
    assert [len(batch.ids) for batch in alone] == [1] * 10
