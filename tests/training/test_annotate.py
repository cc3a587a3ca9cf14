"""The teacher reads the pool: what its votes are, in which order, and from which randomness."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from by_hand import MACHINE, POOL, TASK
from selftrain.errors import ModelError
from selftrain.method.scores import certainty, joined
from selftrain.model import classifier
from selftrain.model.architecture import Architecture
from selftrain.model.build import build, with_dropout_in
from selftrain.model.families import FAMILIES
from selftrain.model.pel import IA3, Adapter, BitFit, Full, LoRA, Prefix, PTuning
from selftrain.training import annotate as room
from selftrain.training.annotate import annotate

NAMES = ("plain", "mean", "wins", "variance", "entropy")


def teacher(backbone, **change):
    return build(TASK, backbone, Architecture(Full(), **change), seed=1)


def votes(model, pool=POOL, passes=3, seed=12):
    return joined([part for _, part in annotate(model, pool, passes, seed=seed, machine=MACHINE)])


def equal(one, other) -> bool:
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in NAMES)


@pytest.mark.parametrize("reader", ["head", "prompt"])
def test_votes_are_in_pool_order_whatever_the_lengths(tiny_backbone, monkeypatch, reader):
    """Algorithm 1, line 5: batches go by length, but row i of the votes is row i of the pool."""
    monkeypatch.setattr("selftrain.model.batches.CPU_TOKENS", 64)  # some five rows a batch
    model = teacher(tiny_backbone("bert"), reader=reader)
    lengths = [len(row.ids) for row in model.encode(POOL)]
    assert len(set(lengths)) > 3
    assert lengths != sorted(lengths, reverse=True)
    seen = votes(model)
    alone = torch.cat([model.probabilities([example]) for example in POOL])
    torch.testing.assert_close(seen.plain.float(), alone, atol=1e-5, rtol=1e-4)


def test_passes_shake_the_plain_answer_and_average_near_it(tiny_backbone):
    """Algorithm 1, line 7, and Eq. 12, 13: dropout is on, in the frozen part too."""
    student = build(TASK, tiny_backbone("bert"), Architecture(Adapter(width=4)), seed=1)
    seen = votes(student, POOL[:8], passes=30)
    assert seen.passes == 30
    assert (seen.variance > 0).all()
    assert (seen.wins.sum(1) == 30).all()
    torch.testing.assert_close(seen.mean.sum(1), torch.ones(8, dtype=torch.float64))
    spread = seen.variance.sqrt().mean()
    assert (seen.mean - seen.plain).abs().mean() < spread


def test_chunks_are_cut_by_the_order_of_the_pool(tiny_backbone, monkeypatch):
    monkeypatch.setattr(room, "CHUNK", 16)
    chunks = list(annotate(teacher(tiny_backbone("bert")), POOL, 2, seed=12, machine=MACHINE))
    assert [len(examples) for examples, _ in chunks] == [16, 16, 8]
    assert [example for examples, _ in chunks for example in examples] == POOL
    assert [len(part.mean) for _, part in chunks] == [16, 16, 8]


def test_the_pool_is_read_as_it_is_needed(tiny_backbone, monkeypatch):
    monkeypatch.setattr(room, "CHUNK", 8)
    read = []

    def pool():
        for example in POOL:
            read.append(example)
            yield example

    stream = annotate(teacher(tiny_backbone("bert")), pool(), 2, seed=12, machine=MACHINE)
    next(stream)
    assert len(read) == 16, "one chunk ahead, whose texts become tokens meanwhile"


def test_annotation_ignores_the_global_generator_and_leaves_it_untouched(
    tiny_backbone, monkeypatch
):
    """Also between two chunks, while the reader of the stream does something else."""
    monkeypatch.setattr(room, "CHUNK", 16)
    model = teacher(tiny_backbone("bert"))
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    drawn, parts = [], []
    for _, part in annotate(model, POOL, 3, seed=12, machine=MACHINE):
        drawn.append(torch.rand(1))
        parts.append(part)
    assert torch.equal(torch.cat(drawn), expected)
    torch.manual_seed(2)
    assert equal(votes(model), joined(parts))


def test_each_chunk_has_noise_of_its_own_and_each_seed_too(tiny_backbone, monkeypatch):
    model = teacher(tiny_backbone("bert"))
    monkeypatch.setattr(room, "CHUNK", 4)
    twice = [*POOL[:4], *POOL[:4]]
    (_, first), (_, second) = annotate(model, twice, 3, seed=12, machine=MACHINE)
    assert torch.equal(first.plain, second.plain)
    assert not torch.equal(first.mean, second.mean)
    (_, other) = next(annotate(model, twice, 3, seed=13, machine=MACHINE))
    assert not torch.equal(first.mean, other.mean)


def test_the_first_chunks_votes_do_not_depend_on_what_comes_after(tiny_backbone, monkeypatch):
    model = teacher(tiny_backbone("bert"))
    monkeypatch.setattr(room, "CHUNK", 8)
    assert equal(
        next(annotate(model, POOL, 3, seed=12, machine=MACHINE))[1],
        next(annotate(model, POOL[:8], 3, seed=12, machine=MACHINE))[1],
    )


def test_passes_that_agree_to_the_last_bit_are_an_error(tiny_backbone):
    model = teacher(tiny_backbone("bert"), dropout=0.0)
    with pytest.raises(ModelError, match=r"5 dropout passes of .* agree to the last bit") as caught:
        votes(model, passes=5)
    assert caught.value.hint == "set a rate in the method: dropout = 0.1"


def test_a_single_pass_cannot_disagree_and_is_no_error(tiny_backbone):
    seen = votes(teacher(tiny_backbone("bert"), dropout=0.0), passes=1)
    assert torch.equal(seen.mean, seen.plain)
    assert (certainty(seen) == 1).all()


def test_the_teacher_is_left_as_it_was(tiny_backbone):
    model = teacher(tiny_backbone("bert"))
    before = {name: tensor.clone() for name, tensor in model.state().items()}
    votes(model)
    assert not model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state().items())
    assert all(p.grad is None for p in model.parameters())


def test_no_graph_is_built(tiny_backbone, monkeypatch):
    """A graph would hold every activation of a batch until its votes are counted."""
    model = teacher(tiny_backbone("bert"))
    grown = []
    upper = model.upper

    def watched(*given):
        out = upper(*given)
        grown.append(out.logits.requires_grad)
        return out

    monkeypatch.setattr(model, "upper", watched)
    votes(model)
    assert set(grown) == {False}


# ── what passes over the same states need not compute again ──────────────────────────────────

TUNINGS = [
    Full(),
    BitFit(),
    Adapter(width=4),
    Prefix(length=3),
    PTuning(length=3),
    LoRA(rank=2),
    IA3(),
]


@pytest.mark.parametrize("reader", ["head", "prompt"])
@pytest.mark.parametrize("tuning", TUNINGS, ids=lambda tuning: tuning.kind)
@pytest.mark.parametrize("family", [name for name, seams in FAMILIES.items() if seams.plain_qkv])
def test_projecting_once_changes_no_bit(tiny_backbone, monkeypatch, family, tuning, reader):
    model = build(TASK, tiny_backbone(family), Architecture(tuning, reader), seed=1)
    torch.manual_seed(7)
    for p in model.trainable().values():  # as after training
        p.data += 0.1 * torch.randn_like(p)
    narrow = with_dropout_in(model, 2)
    calls = []
    layers = list(narrow.encoder.get_submodule(FAMILIES[family].layers).children())
    value = layers[0].get_submodule(FAMILIES[family].value)
    forward = value.forward
    monkeypatch.setattr(value, "forward", lambda x: calls.append(x.shape) or forward(x))
    seen = votes(narrow, POOL[:6], passes=4)
    assert len(calls) == 1
    with monkeypatch.context() as patched:
        patched.setattr(narrow, "same_start", classifier.same_start)
        assert equal(votes(narrow, POOL[:6], passes=4), seen)
    assert len(calls) == 1 + 5
    assert equal(votes(narrow, POOL[:6], passes=4), seen)  # nothing was left behind


def test_other_states_are_projected_as_ever(tiny_backbone):
    model = with_dropout_in(teacher(tiny_backbone("bert")), 1)
    family = model.backbone.family
    (layer,) = model.encoder.get_submodule(family.layers).children()
    query = layer.get_submodule(family.query)
    states, others = torch.randn(2, 3, 5, model.backbone.width)
    expected = query(states), query(others)
    with torch.no_grad(), model.same_start(model.encoder, states):
        for _ in range(2):
            assert torch.equal(query(states), expected[0])
            assert torch.equal(query(others), expected[1])
    assert torch.equal(query(states), expected[0])


def test_progress_counts_batches(tiny_backbone, monkeypatch):
    monkeypatch.setattr("selftrain.model.batches.CPU_TOKENS", 64)
    seen = []

    def progress(numbers, what, total):
        seen.append((what, total))
        return numbers

    model = teacher(tiny_backbone("bert"))
    list(annotate(model, POOL, 2, seed=12, machine=replace(MACHINE, progress=progress)))
    ((what, total),) = seen
    assert what == "annotating"
    assert total > 3


def test_an_empty_pool_gives_no_chunks(tiny_backbone):
    assert list(annotate(teacher(tiny_backbone("bert")), [], 3, seed=12, machine=MACHINE)) == []
