"""The only training loop (lines 2 and 10-12): one model, one lesson, one ``Tune``.

Each step makes one forward pass over all the rows it needs; ``steps`` says which.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from selftrain.data.pool import text_key
from selftrain.data.rows import Lesson
from selftrain.errors import TrainingError
from selftrain.method.losses import contrast, smoothness, supcon
from selftrain.method.spec import Tune
from selftrain.model.batches import Row, grouped
from selftrain.model.classifier import Classifier
from selftrain.model.heads import Output
from selftrain.model.pel import Probe
from selftrain.seeds import child
from selftrain.training.balance import balanced
from selftrain.training.class_names import class_name_rows
from selftrain.training.folds import Rows, lean
from selftrain.training.machine import PLAIN, Machine, randomness
from selftrain.training.ranks import ALONE, Ranks
from selftrain.training.regression import equal_classes, logistic
from selftrain.training.reweigh import Losses, Predict, agreement
from selftrain.training.steps import Step, Table, cycle, final_mean, steps_of


@dataclass(frozen=True, slots=True)
class Fitted:
    """The numbers of a fit; losses are means over the last tenth of the steps."""

    steps: int
    loss: float
    """Without contrast and smoothness; with ``supcon`` the contrast of the labels itself."""
    contrast: float | None
    """None where the fit has no contrast."""
    anchors: float | None
    """The share of easy rows that had a contrast term; below 1 only where D_h lacks a class."""
    tuned: int
    """Parameters that move."""
    total: int
    """Parameters of the model."""
    seconds: float
    name_rows: int | None = None
    """Rows made of class names, 0 where the names say too little; None where not asked for."""


def fit(model: Classifier, lesson: Lesson, tune: Tune, *, seed: int, machine: Machine) -> Fitted:
    """Train the model in place on the lesson; only what its tuning chose moves."""
    started = time.perf_counter()
    model.to(machine.torch_device())
    machine.ranks.require_same("the lesson", [lesson.gold, lesson.easy, lesson.hard])
    lesson, name_rows = learnt_rows(model, lesson, tune, seed)
    regress = partial(regress_head, model, lesson, names=name_rows or 0, seed=seed)
    if isinstance(tune.tuning, Probe):
        regress()
        fitted = replace(fitted_head(model, lesson, started), name_rows=name_rows)
        machine.ranks.copy_first(model.head_state().values())
        return fitted
    if tune.head_start == "regression":
        regress()
    machine.ranks.copy_first(model.state().values())  # another processor rounds differently
    table = Table.of(model, lesson)
    batches = steps_of(table, tune, Random(child(seed, "batches", 0)))  # noqa: S311
    gold_rows = cycle(table.gold, Random(child(seed, "agreement", 0)))  # noqa: S311
    total = step_count(table, tune)
    history = History()

    def loss_of_step(number: int) -> Tensor:
        step = next(batches)
        if tune.reweigh is not None and number >= tune.reweigh.after * total:
            step = reweighed(step, model, table, gold_rows, tune)
        history.last_step = step
        return step_loss(model, table, step, tune, history, machine)

    with (
        interpolated(model, tune.interpolation),
        randomness(seed, "dropout", machine.ranks.index),  # other rows of a step, other noise
        head_fixed(model, tune),
    ):
        optimise(model, course_of(model, tune, total), loss_of_step, machine, machine.ranks)
        assert history.last_step is not None
        with torch.no_grad():  # no later loss would show that the last step broke the model
            loss = step_loss(model, table, history.last_step, tune, History(), machine)
        require_finite([(f"after step {total}", loss)], tune.learning_rate)
    if tune.supcon is not None:
        regress()
        machine.ranks.copy_first(model.head_state().values())
    return Fitted(
        steps=total,
        loss=final_mean(numbers(history.losses)),
        contrast=final_mean(numbers(history.contrasts)) if history.contrasts else None,
        anchors=history.anchors / history.easy_rows if history.easy_rows else None,
        tuned=sum(p.numel() for p in model.trainable().values()),
        total=sum(p.numel() for p in model.parameters()),
        seconds=time.perf_counter() - started,
        name_rows=name_rows,
    )


def learnt_rows(
    model: Classifier, lesson: Lesson, tune: Tune, seed: int
) -> tuple[Lesson, int | None]:
    """The lesson with the gold rows that are learnt; how many of them, the last ones, are names.

    None where the rows of class names are not asked for.
    """
    lesson = Lesson(lesson.gold) if tune.train_on == "gold" else lesson
    gold = balanced(lesson.gold, child(seed, "balance", 0)) if tune.balance_labels else lesson.gold
    names = class_name_rows(model, gold) if tune.class_names else None
    return replace(lesson, gold=(*gold, *(names or ()))), None if names is None else len(names)


def fitted_head(model: Classifier, lesson: Lesson, started: float) -> Fitted:
    """The numbers of a tuning that leaves the encoder as it is: one regression, no steps."""
    items = [*lesson.gold, *lesson.easy]
    p = model.probabilities([item.example for item in items])
    gold = torch.tensor([model.labels.index(item.label) for item in items])
    return Fitted(
        steps=0,
        loss=float(-p.gather(1, gold[:, None]).log().mean()),
        contrast=None,
        anchors=None,
        tuned=sum(tensor.numel() for tensor in model.head_state().values()),
        total=sum(p.numel() for p in model.parameters()),
        seconds=time.perf_counter() - started,
    )


# ── the one loop over optimiser steps ────────────────────────────────────────────────────────

BETAS = (0.9, 0.98)
CHECKED_TOGETHER = 16
"""Steps whose losses are looked at together: a GPU is waited for each time."""
LossOfStep = Callable[[int], Tensor | None]
"""The loss of a step, by its number; None skips the step."""


@dataclass(frozen=True, slots=True)
class Course:
    """An optimiser, its schedule, and for how many steps they run."""

    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler
    steps: int
    max_grad_norm: float
    description: str = "training"


def optimise(
    model: Classifier,
    course: Course,
    loss_of_step: LossOfStep,
    machine: Machine,
    ranks: Ranks = ALONE,
) -> None:
    """Take every step of the course; the model ends in eval mode.

    ``ranks`` says whose gradients add up to that of the loss; alone, those of this process are it.
    """
    rate = course.optimizer.param_groups[0]["initial_lr"]
    chosen = {id(p) for group in course.optimizer.param_groups for p in group["params"]}
    moving = [p for p in model.parameters() if id(p) in chosen]
    unchecked: list[tuple[str, Tensor]] = []
    model.train()
    for number in machine.progress(range(course.steps), course.description, course.steps):
        loss = loss_of_step(number)
        if loss is None:
            continue
        unchecked.append((f"at step {number + 1} of {course.steps}", loss.detach()))
        if len(unchecked) == CHECKED_TOGETHER:
            require_finite(unchecked, rate)
            unchecked.clear()
        course.optimizer.zero_grad()
        torch.autograd.backward(loss)
        ranks.sum_gradients(moving)
        nn.utils.clip_grad_norm_(moving, course.max_grad_norm)
        course.optimizer.step()
        course.schedule.step()
    require_finite(unchecked, rate)
    model.eval()
    if ranks.count > 1:
        ranks.require_same("the weights after a fit", model.digest())


def step_count(table: Table, tune: Tune) -> int:
    """How many steps a fit takes: as many as asked for, or those of its epochs, if more."""
    rows_a_step = tune.batch_size - table.gold_in_batch(tune)
    steps_an_epoch = math.ceil(len(table.learn) / rows_a_step)
    if tune.steps is not None:
        return max(tune.steps, steps_an_epoch * (tune.min_epochs or 0))
    return steps_an_epoch * (tune.epochs or 0)


def require_finite(losses: Sequence[tuple[str, Tensor]], learning_rate: float) -> None:
    """Stop a training where a loss is no longer a number; each comes with when it was."""
    values = numbers([loss for _, loss in losses])
    for (when, _), value in zip(losses, values, strict=True):
        if not math.isfinite(value):
            raise TrainingError(
                f"the loss is {value} {when}", f"try a lower learning_rate than {learning_rate}"
            )


def numbers(values: Sequence[Tensor]) -> list[float]:
    """Single values as numbers, all at once: a GPU is waited for each time."""
    found: list[float] = torch.stack([each.detach() for each in values]).tolist() if values else []
    return found


# ── one step ─────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class History:
    """Losses and counts of the steps so far."""

    losses: list[Tensor] = field(default_factory=list)
    contrasts: list[Tensor] = field(default_factory=list)
    easy_rows: int = 0
    anchors: int = 0
    """Easy rows that had a contrast term."""
    last_step: Step | None = None


def forward(
    model: Predict, rows: Sequence[Row], pad: int, device: torch.device, machine: Machine = PLAIN
) -> Output:
    """Logits and features of the rows of a step, in their order; each process encodes a share.

    The contrast compares rows of all batches, so their losses cannot be added up. To save memory
    each batch is encoded again, with the same dropout, when its gradient is taken.
    """
    ranks = machine.ranks
    places = ranks.dealt([len(row.ids) for row in rows])
    shared = [rows[place] for place in places]
    batches, back = grouped(shared, pad, device, machine.accumulate)
    if machine.encodes_twice:
        model = partial(checkpoint, model, use_reentrant=False)
    parts = zip(*map(model, batches), strict=True)
    encoded = (torch.cat(part)[back] for part in parts)
    return Output(*(ranks.with_others(part, places, len(rows)) for part in encoded))


def row_losses(out: Output, table: Table, rows: Sequence[int], tune: Tune) -> Tensor:
    """The loss of the first answers, one for each of these rows, [B]."""
    chosen, logits = torch.tensor(rows), out.logits[: len(rows)]
    labels, soft = (part[chosen].to(logits.device) for part in (table.labels, table.soft))
    if tune.supcon is not None:
        return supcon(out.features[: len(rows)], labels, tune.supcon.temperature)
    return tune.loss(logits, labels, soft)


def reweighed(
    step: Step, model: Classifier, table: Table, gold_rows: Iterator[int], tune: Tune
) -> Step:
    """The step with its rows weighed by how far they agree with some gold rows (LiST)."""
    device = model.device

    def losses(rows: Sequence[int]) -> Losses:
        tokens = [table.rows[i] for i in rows]
        return lambda predict: row_losses(
            forward(predict, tokens, model.pad, device), table, rows, tune
        )

    gold = [next(gold_rows) for _ in range(min(tune.batch_size, len(table.gold)))]
    weights = agreement(model, losses(step.rows[: step.learn]), losses(gold))
    return replace(step, weights=step.learn * weights)  # the mean of the losses is then their sum


def step_loss(
    model: Classifier,
    table: Table,
    step: Step,
    tune: Tune,
    history: History,
    machine: Machine = PLAIN,
) -> Tensor:
    """L = loss(D_r) + lambda · contrast(D_r, D_h) on one batch (Eq. 11)."""
    device = next(model.parameters()).device
    out = forward(model, [table.rows[i] for i in step.rows], model.pad, device, machine)
    learnt = step.rows[: step.learn]
    weights = table.weights[torch.tensor(learnt)] if step.weights is None else step.weights
    value: Tensor = (row_losses(out, table, learnt, tune) * weights.to(device)).mean()
    history.losses.append(value.detach())
    if tune.contrast is not None and table.easy:
        history.easy_rows += step.easy
        history.anchors += len(step.anchors)
    if tune.contrast is not None and step.anchors:
        anchor, positive, negatives = (
            torch.tensor(part, device=device) for part in zip(*step.anchors, strict=True)
        )
        contrast_loss = contrast(
            out.features[anchor],
            out.features[positive],
            out.features[negatives],
            tune.contrast.temperature,
        ).mean()
        history.contrasts.append(contrast_loss.detach())
        value = value + tune.contrast.weight * contrast_loss
    if tune.smooth is not None and step.neighbours:
        places = list(step.neighbours)
        tied = table.tied([step.rows[place] for place in places]).to(device)
        value = value + tune.smooth.weight * smoothness(
            out.features[places], tied, tune.smooth.margin
        )
    return value


# ── the optimiser ────────────────────────────────────────────────────────────────────────────


def course_of(model: Classifier, tune: Tune, steps: int) -> Course:
    """The optimiser and the schedule of a fit."""
    optimizer = torch.optim.AdamW(
        groups(model, tune), betas=BETAS, weight_decay=tune.weight_decay, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, slope(steps, tune.warmup))
    return Course(optimizer, schedule, steps, tune.max_grad_norm)


def groups(model: Classifier, tune: Tune) -> list[dict[str, object]]:
    """Trainable parameters in two groups: the head may have another learning rate.

    A contrast of features alone trains no head.
    """
    named = model.trainable()
    head = [p for name, p in named.items() if name.startswith("head.") and tune.supcon is None]
    body = [p for name, p in named.items() if not name.startswith("head.")]
    both = [(body, tune.learning_rate), (head, tune.head_learning_rate or tune.learning_rate)]
    return [{"params": params, "lr": rate} for params, rate in both if params]


@contextmanager
def head_fixed(model: Classifier, tune: Tune) -> Iterator[None]:
    """No gradient for a head that the loss does not reach."""
    fixed = list(model.head.parameters()) if tune.supcon is not None and model.head else []
    for parameter in fixed:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in fixed:
            parameter.requires_grad_(True)


@contextmanager
def interpolated(model: Classifier, share: float | None) -> Iterator[None]:
    """After it, the weights keep this share of their way from the start (WiSE-FT); None all of it.

    Few labels teach an encoder what to look at, and make it forget what else it knew.
    """
    if share is None:
        yield
        return
    start = {name: tensor.clone() for name, tensor in model.state().items()}
    yield
    for name, tensor in model.state().items():
        tensor.copy_(start[name].lerp(tensor, share))


def slope(total: int, warmup: float) -> Callable[[int], float]:
    """The rate's factor at each step: up over the warm-up, then straight down to zero."""
    rise = max(1, math.ceil(total * warmup))

    def factor(step: int) -> float:
        if step < rise:
            return (step + 1) / rise
        return max(0.0, (total - step) / max(1, total - rise))

    return factor


STRENGTH = 1.0
"""scikit-learn's C of the regression that sets a head."""


def row_weights(lesson: Lesson, labels: Tensor) -> Tensor:
    """The weights of the gold and the easy rows in a regression, [N]; their classes are given.

    Among the gold rows each class counts the same. Pseudo labels keep the shares of the pool.
    """
    weights = torch.tensor([item.weight for item in (*lesson.gold, *lesson.easy)])
    gold = len(lesson.gold)
    return torch.cat([equal_classes(labels[:gold], weights[:gold]), weights[gold:]])


@torch.no_grad()
def regress_head(model: Classifier, lesson: Lesson, *, names: int = 0, seed: int = 0) -> None:
    """Set a linear head by logistic regression on the features as they now are.

    So many of the last gold rows are made of class ``names``. Without pseudo labels, which have the
    shares of the pool, uneven gold rows would let the head lean: ``lean`` takes that out.
    """
    assert model.head is not None
    items = [*lesson.gold, *lesson.easy]
    features = model.read([item.example for item in items]).features  # [N, D]
    labels = torch.tensor([model.labels.index(item.label) for item in items])
    present = sorted({*labels.tolist()})  # the rows of a class without a text stay as they are
    weights = row_weights(lesson, labels)
    given = None if bool((weights == 1).all()) else weights
    classes = len(model.labels)
    found = logistic(features, labels, classes, strength=STRENGTH, weights=given)
    if not lesson.easy:
        first = len(items) - names
        keys = tuple(text_key(item) for item in items[:first])
        gold = Rows(features[:first], labels[:first], keys)
        of_names = Rows(features[first:], labels[first:]) if names else None
        found = found.shifted(
            lean(gold, classes, strength=STRENGTH, seed=child(seed, "lean", 0), names=of_names)
        )
    model.head.out.weight[present] = found.weight[present].to(model.head.out.weight)
    model.head.out.bias[present] = found.bias[present].to(model.head.out.bias)
