"""The only training loop (lines 2 and 10-12): one model, one lesson, one ``Tune``.

Each step makes one forward pass: rows to learn from, and, for the contrast, partners and hard
rows of the same classes, each encoded once and shared by the anchors.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import torch
from torch import Tensor, nn

from selftrain.batches import Row, grouped
from selftrain.classifier import Classifier, Output
from selftrain.data import Labeled, Lesson
from selftrain.errors import TrainingError
from selftrain.losses import EasyHard, contrast
from selftrain.machine import Machine, randomness
from selftrain.method import Tune
from selftrain.seeds import child


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
    if how.head_start == "regression":
        start_head(model, [*lesson.gold, *lesson.easy])
    table = Table.of(model, lesson)
    plan = steps_of(table, how, Random(child(seed, "batches", accelerator.process_index)))  # noqa: S311
    total = how.steps or math.ceil(len(table.learn) / (how.batch - table.golds(how))) * (
        how.epochs or 0
    )
    optimizer = torch.optim.AdamW(
        groups(model, how), betas=(0.9, 0.98), weight_decay=how.decay, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, slope(total, how.warmup))
    trained, optimizer = accelerator.prepare(model, optimizer)
    trail = Trail()
    try:
        with randomness(seed, "dropout", accelerator.process_index):
            trained.train()
            for number in on.track(range(total), "training", total):
                step = next(plan)
                value = step_loss(trained, model.pad, table, step, how, trail)
                require_finite(value, f"at step {number + 1} of {total}", how)
                optimizer.zero_grad()
                accelerator.backward(value)
                accelerator.clip_grad_norm_(model.trainable().values(), how.clip)
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
        loss=trail.late(trail.losses),
        contrast=trail.late(trail.contrasts) if trail.contrasts else None,
        anchors=trail.paired / trail.anchors if trail.anchors else None,
        tuned=tuned,
        total=sum(p.numel() for p in model.parameters()),
        seconds=time.perf_counter() - started,
    )


def require_finite(loss: Tensor, when: str, how: Tune) -> None:
    """Stop a training whose loss is no longer a number."""
    value = float(loss.detach())
    if not math.isfinite(value):
        raise TrainingError(f"the loss is {value} {when}", f"try a lower rate than {how.rate}")


# ── the lesson as rows ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Table:
    """The lesson tokenised once: gold, then easy, then hard."""

    rows: list[Row]
    labels: Tensor  # [N] class indices
    soft: Tensor  # [N, C] the teacher's probabilities; one-hot for gold
    weights: Tensor  # [N]
    gold: range
    easy: range
    hard: range
    by_class: dict[str, dict[int, list[int]]]  # "easy" and "hard": class → rows

    @property
    def learn(self) -> range:
        """The rows a step is made of: easy ones, or gold where there are none (the teacher)."""
        return self.easy or self.gold

    def golds(self, how: Tune) -> int:
        """How many rows of a batch come from D_l beside easy ones; at least one easy row stays."""
        if not self.easy or not self.gold:
            return 0
        return min(round(how.gold * how.batch), how.batch - 1)

    @staticmethod
    def of(model: Classifier, lesson: Lesson) -> Table:
        """The lesson's rows as this model reads them."""
        every: list[Labeled] = [*lesson.gold, *lesson.easy, *lesson.hard]
        place = {label: c for c, label in enumerate(model.labels)}
        labels = torch.tensor([place[item.label] for item in every])
        onehot = torch.eye(len(place))[labels]
        given = [item.soft for item in every]
        soft = torch.stack(
            [torch.tensor(s) if s is not None else onehot[i] for i, s in enumerate(given)]
        ).float()
        first, second = len(lesson.gold), len(lesson.gold) + len(lesson.easy)
        spans = {"easy": range(first, second), "hard": range(second, len(every))}
        by_class: dict[str, dict[int, list[int]]] = {"easy": {}, "hard": {}}
        for kind, span in spans.items():
            for i in span:
                by_class[kind].setdefault(int(labels[i]), []).append(i)
        return Table(
            model.encode([item.example for item in every]),
            labels,
            soft,
            torch.tensor([item.weight for item in every]),
            range(first),
            spans["easy"],
            spans["hard"],
            by_class,
        )


@dataclass(frozen=True, slots=True)
class Step:
    """The rows of one step: the first ``learn`` are learnt from, all are encoded."""

    rows: list[int]
    learn: int
    anchors: list[tuple[int, int, list[int]]]  # places in rows: anchor, positive, negatives
    easy: int


def cycle(items: Sequence[int], random: Random) -> Iterator[int]:
    """The items in random order, again and again, each time in a new order."""
    while True:
        yield from random.sample(items, len(items))


def steps_of(table: Table, how: Tune, random: Random) -> Iterator[Step]:
    """Batches without end: a share of gold, the rest in epochs over the easy rows."""
    golds = table.golds(how)
    learn, gold = cycle(table.learn, random), cycle(table.gold, random)
    hard = {c: cycle(rows, random) for c, rows in table.by_class["hard"].items()}
    while True:
        easy = [next(learn) for _ in range(how.batch - golds)]
        rows = easy + [next(gold) for _ in range(golds)]
        if how.contrast is None or not table.easy:
            yield Step(rows, len(rows), [], len(easy))
        else:
            yield with_contrast(rows, easy, table, hard, how.contrast, random)


def with_contrast(
    rows: list[int],
    easy: list[int],
    table: Table,
    hard: dict[int, Iterator[int]],
    how: EasyHard,
    random: Random,
) -> Step:
    """Add what the contrast needs: a partner where a class has one easy row, N_n hard of each.

    An anchor goes without a term only when D_h lacks its class, never for an unlucky batch. A
    class with one easy row in all is its own partner: encoded twice, under two dropout masks.
    """
    learn = len(rows)
    places: dict[int, list[int]] = {}
    for place, row in enumerate(easy):
        places.setdefault(int(table.labels[row]), []).append(place)
    anchors: list[tuple[int, int, list[int]]] = []
    rows = list(rows)
    for c, mine in places.items():
        if c not in hard:
            continue
        partners = list(mine)
        # A batch that reaches into the next epoch may hold a row twice: that is no partner.
        if len({easy[place] for place in mine}) == 1:
            others = [row for row in table.by_class["easy"][c] if row != easy[mine[0]]]
            if others or len(mine) == 1:
                partners.append(len(rows))
                rows.append(random.choice(others) if others else easy[mine[0]])
        doubtful = list(range(len(rows), len(rows) + how.negatives))
        rows += [next(hard[c]) for _ in range(how.negatives)]
        for number, anchor in enumerate(mine):
            ring = partners[number + 1 :] + partners[:number]
            other = (place for place in ring if rows[place] != rows[anchor])
            anchors.append((anchor, next(other, ring[0]), doubtful))
    return Step(rows, learn, anchors, len(easy))


# ── one step ─────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Trail:
    """What the steps so far gave."""

    losses: list[float] = field(default_factory=list)
    contrasts: list[float] = field(default_factory=list)
    anchors: int = 0
    paired: int = 0

    @staticmethod
    def late(values: list[float]) -> float:
        """The mean over the last tenth of the steps."""
        last = values[-max(1, len(values) // 10) :]
        return sum(last) / len(last)


def forward(model: nn.Module, rows: Sequence[Row], pad: int, device: torch.device) -> Output:
    """Logits and features of the rows of a step, in their order."""
    batches, back = grouped(rows, pad, device)
    parts = zip(*map(model, batches), strict=True)
    return Output(*(torch.cat(part)[back] for part in parts))


def step_loss(
    model: nn.Module, pad: int, table: Table, step: Step, how: Tune, trail: Trail
) -> Tensor:
    """L = loss(D_r) + lambda · contrast(D_r, D_h) on one batch (Eq. 11)."""
    device = next(model.parameters()).device
    out = forward(model, [table.rows[i] for i in step.rows], pad, device)
    chosen = torch.tensor(step.rows[: step.learn])
    each = how.loss(
        out.logits[: step.learn],
        table.labels[chosen].to(device),
        table.soft[chosen].to(device),
    )  # [B]
    value: Tensor = (each * table.weights[chosen].to(device)).mean()
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
    return value


# ── the optimiser ────────────────────────────────────────────────────────────────────────────


def groups(model: Classifier, how: Tune) -> list[dict[str, object]]:
    """Trainable parameters in two groups: the head may have a rate of its own."""
    named = model.trainable()
    head = [p for name, p in named.items() if name.startswith("head.")]
    body = [p for name, p in named.items() if not name.startswith("head.")]
    both = [(body, how.rate), (head, how.head_rate or how.rate)]
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
def start_head(model: Classifier, items: Sequence[Labeled]) -> None:
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
