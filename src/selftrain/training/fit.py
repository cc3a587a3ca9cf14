"""The only training loop (lines 2 and 10-12): one model, one lesson, one ``Tune``.

Each step makes one forward pass over all the rows it needs; ``steps`` says which.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import torch
from torch import Tensor, nn

from selftrain.data.rows import Labelled, Lesson
from selftrain.errors import TrainingError
from selftrain.method.losses import contrast, smoothness
from selftrain.method.spec import Tune
from selftrain.model.batches import Row, grouped
from selftrain.model.classifier import Classifier
from selftrain.model.heads import Output
from selftrain.seeds import child
from selftrain.training.machine import Machine, randomness
from selftrain.training.reweigh import Answering, Losses, agreement
from selftrain.training.steps import Step, Table, cycle, late, steps_of


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit has to say: losses are means over the last tenth of the steps."""

    steps: int
    loss: float
    contrast: float | None
    anchors: float | None
    """The share of easy rows that had a contrast term; below 1 only where D_h lacks a class."""
    tuned: int
    total: int
    seconds: float


def fit(model: Classifier, lesson: Lesson, how: Tune, *, seed: int, on: Machine) -> Fitted:
    """Train the model in place on the lesson; only what its tuning chose moves."""
    started = time.perf_counter()
    accelerator = on.accelerator()
    model.to(accelerator.device)
    lesson = Lesson(lesson.gold) if how.train_on == "gold" else lesson
    if how.head_start == "regression":
        start_head(model, [*lesson.gold, *lesson.easy])
    table = Table.of(model, lesson)
    here = accelerator.process_index
    plan = steps_of(table, how, Random(child(seed, "batches", here)))  # noqa: S311
    golds = cycle(table.gold, Random(child(seed, "agreement", here)))  # noqa: S311
    total = how.steps or math.ceil(len(table.learn) / (how.batch_size - table.golds(how))) * (
        how.epochs or 0
    )
    optimizer = torch.optim.AdamW(
        groups(model, how), betas=(0.9, 0.98), weight_decay=how.weight_decay, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, slope(total, how.warmup))
    trained, optimizer = accelerator.prepare(model, optimizer)
    trail = Trail()
    try:
        with randomness(seed, "dropout", here):
            trained.train()
            for number in on.track(range(total), "training", total):
                step = next(plan)
                if how.reweigh is not None and number >= how.reweigh.after * total:
                    step = reweighed(step, model, table, golds, how)
                value = step_loss(trained, model.pad, table, step, how, trail)
                require_finite(value, f"at step {number + 1} of {total}", how)
                optimizer.zero_grad()
                accelerator.backward(value)
                accelerator.clip_grad_norm_(model.trainable().values(), how.max_grad_norm)
                optimizer.step()
                schedule.step()
            trained.eval()
            with torch.no_grad():  # no later loss would tell that the last step broke the model
                value = step_loss(trained, model.pad, table, step, how, Trail())
            require_finite(value, f"after step {total}", how)
    finally:
        accelerator.free_memory()
    tuned = sum(p.numel() for p in model.trainable().values())
    return Fitted(
        steps=total,
        loss=late(trail.losses),
        contrast=late(trail.contrasts) if trail.contrasts else None,
        anchors=trail.paired / trail.anchors if trail.anchors else None,
        tuned=tuned,
        total=sum(p.numel() for p in model.parameters()),
        seconds=time.perf_counter() - started,
    )


def require_finite(loss: Tensor, when: str, how: Tune) -> None:
    """Stop a training whose loss is no longer a number."""
    value = float(loss.detach())
    if not math.isfinite(value):
        raise TrainingError(
            f"the loss is {value} {when}", f"try a lower rate than {how.learning_rate}"
        )


# ── one step ─────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Trail:
    """What the steps so far gave."""

    losses: list[float] = field(default_factory=list)
    contrasts: list[float] = field(default_factory=list)
    anchors: int = 0
    paired: int = 0


def forward(model: Answering, rows: Sequence[Row], pad: int, device: torch.device) -> Output:
    """Logits and features of the rows of a step, in their order."""
    batches, back = grouped(rows, pad, device)
    parts = zip(*map(model, batches), strict=True)
    return Output(*(torch.cat(part)[back] for part in parts))


def row_losses(out: Output, table: Table, rows: Sequence[int], how: Tune) -> Tensor:
    """The loss of the first answers, one for each of these rows, [B]."""
    chosen, logits = torch.tensor(rows), out.logits[: len(rows)]
    labels, soft = (part[chosen].to(logits.device) for part in (table.labels, table.soft))
    return how.loss(logits, labels, soft)


def reweighed(step: Step, model: Classifier, table: Table, golds: Iterator[int], how: Tune) -> Step:
    """The step with its rows weighed by how far they agree with some of the labels (LiST)."""
    device = model.device

    def losses(rows: Sequence[int]) -> Losses:
        tokens = [table.rows[i] for i in rows]
        return lambda answering: row_losses(
            forward(answering, tokens, model.pad, device), table, rows, how
        )

    gold = [next(golds) for _ in range(min(how.batch_size, len(table.gold)))]
    weights = agreement(model, losses(step.rows[: step.learn]), losses(gold))
    return replace(step, weights=step.learn * weights)  # the mean of the losses is then their sum


def step_loss(
    model: nn.Module, pad: int, table: Table, step: Step, how: Tune, trail: Trail
) -> Tensor:
    """L = loss(D_r) + lambda · contrast(D_r, D_h) on one batch (Eq. 11)."""
    device = next(model.parameters()).device
    out = forward(model, [table.rows[i] for i in step.rows], pad, device)
    learnt = step.rows[: step.learn]
    weights = table.weights[torch.tensor(learnt)] if step.weights is None else step.weights
    value: Tensor = (row_losses(out, table, learnt, how) * weights.to(device)).mean()
    trail.losses.append(float(value.detach()))
    if how.contrast is not None and table.easy:
        trail.anchors += step.easy
        trail.paired += len(step.anchors)
    if how.contrast is not None and step.anchors:
        anchor, positive, negatives = (
            torch.tensor(part, device=device) for part in zip(*step.anchors, strict=True)
        )
        apart = contrast(
            out.features[anchor],
            out.features[positive],
            out.features[negatives],
            how.contrast.temperature,
        ).mean()
        trail.contrasts.append(float(apart.detach()))
        value = value + how.contrast.weight * apart
    if how.smooth is not None and step.linked:
        places = list(step.linked)
        tied = table.tied([step.rows[place] for place in places]).to(device)
        value = value + how.smooth.weight * smoothness(
            out.features[places], tied, how.smooth.margin
        )
    return value


# ── the optimiser ────────────────────────────────────────────────────────────────────────────


def groups(model: Classifier, how: Tune) -> list[dict[str, object]]:
    """Trainable parameters in two groups: the head may have a rate of its own."""
    named = model.trainable()
    head = [p for name, p in named.items() if name.startswith("head.")]
    body = [p for name, p in named.items() if not name.startswith("head.")]
    both = [(body, how.learning_rate), (head, how.head_learning_rate or how.learning_rate)]
    return [{"params": params, "lr": rate} for params, rate in both if params]


def slope(total: int, warmup: float) -> Callable[[int], float]:
    """The rate's factor at each step: up over the warm-up, then straight down to zero."""
    rise = max(1, math.ceil(total * warmup))

    def factor(step: int) -> float:
        if step < rise:
            return (step + 1) / rise
        return max(0.0, (total - step) / max(1, total - rise))

    return factor


@torch.no_grad()
def start_head(model: Classifier, items: Sequence[Labelled]) -> None:
    """Start a linear head from logistic regression on the features as they now are."""
    assert model.head is not None
    from sklearn.linear_model import LogisticRegression

    features = model.read([item.example for item in items]).features  # [N, D]
    # Encoders differ in the length of their vectors; the regression's penalty should not.
    scale = features.norm(dim=1).mean()
    gold = [model.labels.index(item.label) for item in items]
    seen = LogisticRegression(max_iter=1000).fit((features / scale).numpy(), gold)
    weight, bias = torch.from_numpy(seen.coef_) / scale, torch.from_numpy(seen.intercept_)
    if len(seen.classes_) == 2:  # one row says it all; two that differ by it say the same
        weight, bias = torch.cat([-weight, weight]) / 2, torch.cat([-bias, bias]) / 2
    out = model.head.out
    out.weight[seen.classes_] = weight.to(out.weight)
    out.bias[seen.classes_] = bias.to(out.bias)
