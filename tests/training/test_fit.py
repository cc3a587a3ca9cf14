"""The training loop: its batches, its objective, its schedule, and what moves."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from torch import nn

from by_hand import GOLD, MACHINE, POOL, STUDENT, TASK, TEACHER, same, steps, table
from selftrain.data.rows import Labelled, Lesson
from selftrain.data.task import Task
from selftrain.errors import TrainingError
from selftrain.method.losses import PHCE, CrossEntropy, EasyHard, Soft
from selftrain.method.spec import Tune
from selftrain.model import batches
from selftrain.model.architecture import Architecture
from selftrain.model.batches import collate
from selftrain.model.build import build
from selftrain.model.heads import Output
from selftrain.model.pel import Adapter, Full
from selftrain.training.fit import (
    History,
    fit,
    forward,
    groups,
    numbers,
    regress_head,
    row_weights,
    slope,
    step_loss,
)

quick = settings(max_examples=60, deadline=None, derandomize=True)
CLASSES = st.lists(st.integers(0, 2), max_size=9)
EASY = st.lists(st.integers(0, 2), min_size=1, max_size=9)


# ── the rate ─────────────────────────────────────────────────────────────────────────────────


def test_the_rate_rises_over_the_warm_up_and_falls_straight_to_zero():
    """100 steps, 6 % of them up: sixths, then (100 - step) / 94."""
    factor = slope(100, 0.06)
    seen = [factor(step) for step in (0, 2, 5, 6, 53, 99, 100, 120)]
    assert seen == pytest.approx([1 / 6, 1 / 2, 1, 1, 0.5, 1 / 94, 0, 0])


@pytest.mark.parametrize(
    ("total", "warmup", "expected"),
    [(1, 0.06, [1]), (4, 0, [1, 1, 2 / 3, 1 / 3]), (4, 1, [0.25, 0.5, 0.75, 1])],
)
def test_short_schedules(total, warmup, expected):
    assert [slope(total, warmup)(step) for step in range(total)] == pytest.approx(expected)


@quick
@given(st.integers(1, 400), st.floats(0, 1))
def test_no_step_is_wasted_on_a_rate_of_zero(total, warmup):
    factors = [slope(total, warmup)(step) for step in range(total)]
    assert all(0 < factor <= 1 for factor in factors)
    assert max(factors) == 1
    top = factors.index(1)
    assert factors[: top + 1] == sorted(factors[: top + 1])
    assert factors[top:] == sorted(factors[top:], reverse=True)


# ── the objective ────────────────────────────────────────────────────────────────────────────


class Looked(nn.Module):
    """A model that looks its answers up by the first token of each row."""

    pad = 0

    def __init__(self, logits: torch.Tensor, features: torch.Tensor | None = None) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)
        vectors = torch.eye(len(logits)) if features is None else features
        self.features = nn.Parameter(vectors)

    def forward(self, batch) -> Output:
        at = batch.ids[:, 0]
        return Output(self.logits[at], self.features[at])


# Rows 0 and 1 easy, 2 and 3 hard, all of class 0; p of class 0 is .2 and .5 for the easy ones.
P = torch.tensor([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1], [0.9, 0.1]])
VECTORS = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [0.8, 0.6]])


def objective(how: Tune, **change) -> tuple[float, History]:
    of = replace(table(gold=[], easy=[0, 0], hard=[0, 0], classes=2), **change)
    (step,) = steps(of, how, 1)
    history = History()
    value = step_loss(Looked(P.log(), VECTORS), of, step, how, history)
    return float(value.detach()), history


def test_the_objective_is_the_mean_phce_of_the_easy_rows():
    """Eq. 9 at tau = 4: (1.586294 + .693147) / 2 = 1.139720; hard rows are not learnt from."""
    value, _ = objective(Tune(loss=PHCE(4), batch_size=2))
    assert value == pytest.approx(1.139720, abs=1e-6)


def test_the_whole_objective_adds_lambda_times_the_mean_contrast():
    """Eq. 11 at temperature .5 and lambda .1, and Algorithm 1, line 11.

    Anchor (1, 0), positive (.6, .8), negatives (0, 1) and (.8, .6): .640015 (as for Eq. 10).
    Anchor (.6, .8), positive (1, 0): cosines .6; .8 and .96; g = 1.2; 1.6 and 1.92.
      (e^1.6 + e^1.92) / 2 = (4.953032 + 6.820958) / 2 = 5.886995
      -ln[ 3.320117 / (3.320117 + 5.886995) ] = 1.019976
    PHCE 1.139720 (Eq. 9) + .1 · (.640015 + 1.019976) / 2 = 1.139720 + .083000 = 1.222720
    """
    how = Tune(
        loss=PHCE(4), batch_size=2, contrast=EasyHard(weight=0.1, negatives=2, temperature=0.5)
    )
    value, history = objective(how)
    assert numbers(history.losses) == pytest.approx([1.139720], abs=1e-6)
    assert numbers(history.contrasts) == pytest.approx([0.829996], abs=1e-6)
    assert value == pytest.approx(1.222720, abs=1e-6)


def test_the_share_of_anchors_counts_easy_rows_whose_class_has_no_hard_row():
    of = table(gold=[], easy=[0, 0, 1, 1], hard=[0])
    how = Tune(batch_size=4, contrast=EasyHard(negatives=2))
    (step,), history = steps(of, how, 1), History()
    step_loss(Looked(logits=torch.zeros(5, 3)), of, step, how, history)
    assert (history.anchors, history.easy_rows) == (2, 4)


def test_lambda_zero_is_phce_alone():
    """Eq. 11."""
    value, _ = objective(Tune(loss=PHCE(4), batch_size=2, contrast=EasyHard(weight=0, negatives=2)))
    assert value == pytest.approx(1.139720, abs=1e-6)


def test_a_row_of_weight_zero_teaches_nothing():
    """Weights (0, 1) or (1, 0), still a mean over two rows: .693147 / 2 or 1.586294 / 2."""
    how = Tune(loss=PHCE(4), batch_size=2)
    first, _ = objective(how, weights=torch.tensor([0.0, 1.0, 1.0, 1.0]))
    second, _ = objective(how, weights=torch.tensor([1.0, 0.0, 1.0, 1.0]))
    assert (first, second) == pytest.approx((0.346574, 0.793147), abs=1e-6)


def test_soft_labels_reach_the_loss():
    """Targets (.5, .5) and (1, 0): -.5 ln .2 - .5 ln .8 = .916291; -ln .5 = .693147."""
    soft = torch.tensor([[0.5, 0.5], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    value, _ = objective(Tune(loss=Soft(), batch_size=2), soft=soft)
    assert value == pytest.approx((0.916291 + 0.693147) / 2, abs=1e-6)


def test_rows_encoded_in_groups_of_like_length_come_back_in_order(tiny_backbone, monkeypatch):
    """Each row answers as it would in one batch padded to the longest."""
    model = build(TASK, tiny_backbone("bert"), Architecture(Adapter(width=4)), seed=1)
    rows = model.encode(POOL[:12])
    assert [len(row.ids) for row in rows] != sorted((len(row.ids) for row in rows), reverse=True)
    with torch.no_grad():
        whole = model(collate(rows, model.pad))
        monkeypatch.setattr(batches, "CPU_TOKENS", 40)
        grouped = forward(model, rows, model.pad, torch.device("cpu"))
    torch.testing.assert_close(grouped, whole, atol=1e-5, rtol=0)
    assert torch.equal(grouped.logits.argmax(1), whole.logits.argmax(1))


# ── what moves ───────────────────────────────────────────────────────────────────────────────

LESSON = Lesson(
    gold=GOLD,
    easy=tuple(Labelled(x, x.uid.split("-")[0], soft=(0.5, 0.5)) for x in POOL[:8]),
    hard=tuple(Labelled(x, x.uid.split("-")[0], soft=(0.5, 0.5)) for x in POOL[8:16]),
)


def new(backbone, how: Tune, seed: int = 1):
    return build(TASK, backbone, Architecture(how.tuning, how.reader, head=how.head), seed=seed)


@pytest.mark.parametrize("reader", ["head", "prompt"])
def test_only_tuned_parameters_move(tiny_backbone, reader):
    """Algorithm 1, line 12: the module (and head) moves, no bit of the pretrained model does."""
    how = replace(STUDENT, reader=reader)
    backbone = tiny_backbone("bert")
    model = new(backbone, how)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    pretrained = {name: p.detach().clone() for name, p in backbone.encoder.named_parameters()}
    fitted = fit(model, LESSON, how, seed=1, machine=MACHINE)
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == set(model.trainable())
    assert all("adapter" in name or name.startswith("head.") for name in moved)
    assert all(torch.equal(p, pretrained[name]) for name, p in backbone.encoder.named_parameters())
    assert fitted.tuned == sum(p.numel() for p in model.trainable().values())
    assert fitted.tuned < fitted.total == sum(p.numel() for p in model.parameters())


def test_a_full_fit_leaves_the_backbone_itself_alone(tiny_backbone):
    """Algorithm 1, line 2: all parameters of the teacher move, on a copy of the PLM."""
    backbone = tiny_backbone("bert")
    pretrained = {name: p.detach().clone() for name, p in backbone.encoder.named_parameters()}
    model = new(backbone, TEACHER)
    fit(model, Lesson(gold=GOLD), TEACHER, seed=1, machine=MACHINE)
    still = [n for n, p in model.encoder.named_parameters() if torch.equal(p, pretrained[n])]
    # The pooler is never read: no gradient, and so no weight decay either.
    assert all("pooler" in name for name in still)
    assert all(torch.equal(p, pretrained[name]) for name, p in backbone.encoder.named_parameters())


def test_training_lowers_the_loss(tiny_backbone):
    how = replace(TEACHER, steps=30, loss=CrossEntropy())
    model = new(tiny_backbone("bert"), how)
    gold = torch.tensor([TASK.labels.index(item.label) for item in GOLD])
    texts = [item.example for item in GOLD]
    before = nn.functional.nll_loss(model.probabilities(texts).log(), gold)
    fit(model, Lesson(gold=GOLD), how, seed=1, machine=MACHINE)
    after = nn.functional.nll_loss(model.probabilities(texts).log(), gold)
    assert after < before / 2


def test_fitting_twice_with_one_seed_gives_the_same_bits(tiny_backbone):
    models = []
    for seed, state in ((1, 5), (1, 6), (2, 5)):
        model = new(tiny_backbone("bert"), STUDENT)
        torch.manual_seed(state)
        before = torch.get_rng_state()
        fit(model, LESSON, STUDENT, seed=seed, machine=MACHINE)
        assert torch.equal(torch.get_rng_state(), before), "the global generator is left alone"
        assert not model.training
        models.append(model)
    assert same(models[0], models[1])
    assert not same(models[0], models[2])


def test_dropout_is_on_while_training(tiny_backbone):
    """The same start, batches and rate; only the dropout rate differs."""
    models = []
    for dropout in (None, 0.0):
        model = build(
            TASK, tiny_backbone("bert"), Architecture(Adapter(width=4), dropout=dropout), seed=1
        )
        fit(model, LESSON, STUDENT, seed=1, machine=MACHINE)
        models.append(model)
    assert not same(*models)


def test_the_rate_follows_its_schedule(tiny_backbone, monkeypatch):
    asked = []

    def watched(total, warmup):
        factor = slope(total, warmup)
        return lambda step: asked.append((step, total, warmup)) or factor(step)

    monkeypatch.setattr("selftrain.training.fit.slope", watched)
    how = replace(STUDENT, steps=4, warmup=0.25)
    fit(new(tiny_backbone("bert"), how), LESSON, how, seed=1, machine=MACHINE)
    assert sorted(set(asked)) == [(step, 4, 0.25) for step in range(5)]


@pytest.mark.parametrize(
    ("lesson", "how", "expected"),
    [
        (Lesson(gold=GOLD), Tune(steps=3), 3),
        (
            Lesson(gold=GOLD),
            Tune(steps=None, epochs=2, batch_size=3),
            2 * 3,
        ),  # 8 gold rows: 3 batches
        (LESSON, Tune(steps=None, epochs=1, batch_size=8), 1),  # 8 easy rows; gold does not count
        (
            LESSON,
            Tune(steps=None, epochs=1, batch_size=8, gold_share=0.5),
            2,
        ),  # 4 of them in a batch
    ],
)
def test_steps_and_epochs(tiny_backbone, lesson, how, expected):
    ticks = []

    def progress(numbers, what, total):
        assert (what, total) == ("training", expected)
        for number in numbers:
            ticks.append(number)
            yield number

    fitted = fit(
        new(tiny_backbone("bert"), how),
        lesson,
        how,
        seed=1,
        machine=replace(MACHINE, progress=progress),
    )
    assert fitted.steps == len(ticks) == expected


def test_the_head_may_have_a_rate_of_its_own(tiny_backbone):
    model = new(tiny_backbone("bert"), STUDENT)
    both = groups(model, replace(STUDENT, head_learning_rate=0.5))
    assert [group["lr"] for group in both] == [STUDENT.learning_rate, 0.5]
    names = {id(p): name for name, p in model.trainable().items()}
    assert {names[id(p)] for p in both[1]["params"]} == {"head.out.weight", "head.out.bias"}
    assert sum(len(group["params"]) for group in both) == len(names)
    assert [group["lr"] for group in groups(model, STUDENT)] == [STUDENT.learning_rate] * 2


def test_a_prompt_without_a_head_has_one_group(tiny_backbone):
    how = replace(STUDENT, reader="prompt", head_learning_rate=0.5)
    assert [group["lr"] for group in groups(new(tiny_backbone("bert"), how), how)] == [
        how.learning_rate
    ]


# ── when training breaks ─────────────────────────────────────────────────────────────────────


def test_a_loss_that_is_no_number_stops_the_fit_and_says_where(tiny_backbone):
    gold = (*GOLD[:7], replace(GOLD[7], weight=math.nan))
    model = new(tiny_backbone("bert"), TEACHER)
    with pytest.raises(TrainingError, match="the loss is nan at step 1 of 6") as caught:
        fit(model, Lesson(gold=gold), TEACHER, seed=1, machine=MACHINE)
    assert caught.value.hint == "try a lower learning_rate than 0.003"


@pytest.mark.parametrize(("steps", "when"), [(1, "after step 1"), (3, "at step 2 of 3")])
def test_a_huge_rate_stops_the_fit_even_in_its_last_step(tiny_backbone, steps, when):
    how = replace(TEACHER, learning_rate=1e37, head_learning_rate=1e37, steps=steps)
    with pytest.raises(TrainingError, match=f"the loss is (nan|inf) {when}"):
        fit(new(tiny_backbone("bert"), how), Lesson(gold=GOLD), how, seed=1, machine=MACHINE)


# ── a head from logistic regression ──────────────────────────────────────────────────────────

THREE = Task("three", ("a", "b", "c"))


@pytest.mark.parametrize("classes", [2, 3])
def test_a_regression_head_answers_as_the_regression_does(tiny_backbone, classes):
    task = Task("some", THREE.labels[:classes])
    model = build(task, tiny_backbone("bert"), Architecture(Full()), seed=1)
    items = [Labelled(x, task.labels[i % classes]) for i, x in enumerate(POOL[:12])]
    features = model.read([item.example for item in items]).features
    features = (features / features.norm(dim=1).mean()).numpy()  # vectors of length 1 on average
    gold = [task.labels.index(item.label) for item in items]
    regress_head(model, Lesson(tuple(items)))
    seen = LogisticRegression(max_iter=1000).fit(features, gold)
    expected = torch.from_numpy(seen.predict_proba(features)).float()
    ours = model.probabilities([item.example for item in items])
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-4)


def test_a_regression_head_leaves_a_class_it_has_not_seen_as_it_was(tiny_backbone):
    model = build(THREE, tiny_backbone("bert"), Architecture(Full()), seed=1)
    before = model.head.out.weight[1].clone()
    regress_head(model, Lesson(tuple(Labelled(x, "ac"[i % 2]) for i, x in enumerate(POOL[:8]))))
    assert torch.equal(model.head.out.weight[1], before)
    assert not torch.equal(model.head.out.weight[0], before)


def test_a_regression_head_weighs_the_rows_as_the_lesson_does(tiny_backbone):
    """A row of weight 3 counts as three copies of it."""
    models = [build(TASK, tiny_backbone("bert"), Architecture(Full()), seed=1) for _ in range(2)]
    regress_head(models[0], Lesson((*GOLD[:-1], replace(GOLD[-1], weight=3.0))))
    regress_head(models[1], Lesson((*GOLD, GOLD[-1], GOLD[-1])))
    expected = models[1].head.out.weight
    length = (len(GOLD) + 2) / len(GOLD)  # vectors are divided by their mean length: nearly alike
    torch.testing.assert_close(models[0].head.out.weight, expected, rtol=0.02 * length, atol=1e-3)


def test_each_class_counts_the_same_in_a_regression_as_scikit_learn_balances_it(tiny_backbone):
    model = build(TASK, tiny_backbone("bert"), Architecture(Full()), seed=1)
    items = [Labelled(x, TASK.labels[i < 3]) for i, x in enumerate(POOL[:12])]
    features = model.read([item.example for item in items]).features
    features = (features / features.norm(dim=1).mean()).numpy()
    gold = [TASK.labels.index(item.label) for item in items]
    regress_head(model, Lesson(tuple(items)))
    seen = LogisticRegression(max_iter=1000, class_weight="balanced").fit(features, gold)
    expected = torch.from_numpy(seen.predict_log_proba(features)).float()
    ours = model.probabilities([item.example for item in items]).log()
    odds, expected_odds = ours[:, 1] - ours[:, 0], expected[:, 1] - expected[:, 0]
    shift = odds - expected_odds  # uneven labels let a regression lean: a shift takes it out
    torch.testing.assert_close(shift, shift[:1].expand(12), atol=1e-4, rtol=0)


def test_pseudo_labels_keep_their_shares_and_gold_classes_count_the_same():
    items = tuple(Labelled(x, TASK.labels[i < 3]) for i, x in enumerate(POOL[:12]))
    labels = torch.tensor([TASK.labels.index(item.label) for item in items])
    gold_first = Lesson(gold=items[:4], easy=items[4:])
    assert row_weights(gold_first, labels)[:4].tolist() == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2])
    assert row_weights(gold_first, labels)[4:].tolist() == [1.0] * 8
    assert row_weights(Lesson(gold=(), easy=items), labels).tolist() == [1.0] * 12
