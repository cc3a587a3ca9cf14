"""The method as one would write it down: the yardstick of whole_fit.py, not part of the product.

The same models, lessons, losses, steps and optimiser as our loop. It differs in what
makes that fast:

- batches of a fixed number of rows in the order they come, padded to the longest or to 128;
- torch's own dropout and attention;
- every dropout pass goes through all layers;
- nothing is remembered, and each row is tokenised whenever it is needed;
- anchors, partners and hard rows of the contrast are encoded each in a forward pass of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

import torch
from torch import Tensor

from selftrain.data.rows import Example, Lesson, Split
from selftrain.data.task import Task
from selftrain.method.losses import contrast
from selftrain.method.scores import Tally, Votes, joined
from selftrain.method.selection import RoundDraw
from selftrain.method.spec import Method, Tune
from selftrain.model import fast, tokens
from selftrain.model.backbone import Backbone
from selftrain.model.batches import Batch, Row, collate
from selftrain.model.classifier import Classifier
from selftrain.model.heads import Output
from selftrain.seeds import child
from selftrain.training.draw import pool_of_round
from selftrain.training.fit import groups, regress_head, slope
from selftrain.training.job import Job, new_model
from selftrain.training.steps import Step, Table, steps_of

ROWS = 32  # of a batch when nothing is learnt


@contextmanager
def torchs_own_dropout() -> Iterator[None]:
    """Models are built with ``nn.Dropout`` and fused attention, as transformers has them."""
    cheap, attention = fast.dropout.install, fast.attention.install
    fast.dropout.install, fast.attention.install = (lambda _: None), (lambda _: False)
    try:
        yield
    finally:
        fast.dropout.install, fast.attention.install = cheap, attention


@contextmanager
def tokenising_anew() -> Iterator[None]:
    """No row of token ids is cached."""
    max_rows = tokens.MAX_ROWS
    tokens.MAX_ROWS = 0
    try:
        yield
    finally:
        tokens.MAX_ROWS = max_rows


def self_train(
    task: Task, split: Split, method: Method, backbone: Backbone, *, seed: int, longest: int | None
) -> Classifier:
    """Teacher, votes, lesson, student, and round again; ``longest`` pads every row to that."""
    job = Job(task, split, method, backbone, seed)
    with torchs_own_dropout(), tokenising_anew():
        teacher = new_model(job, method.teacher, child(seed, "teacher"))
        fit(teacher, Lesson(gold=split.labelled), method.teacher, seed, longest)
        for number in range(1, method.rounds + 1):
            pool = pool_of_round(job, number)
            votes = annotate(teacher, pool, method.passes, longest)
            lesson = method.select(
                iter([(pool, votes)]),
                task.labels,
                split.labelled,
                RoundDraw(len(pool), number, seed),
            )
            student = new_model(job, method.student[0], child(seed, "student", number))
            fit(student, lesson, method.student[0], seed, longest)
            teacher = student
        return teacher


def padded(rows: Sequence[Row], pad: int, longest: int | None) -> Batch:
    if longest is None:
        return collate(rows, pad)
    filler = Row((pad,) * longest, (0,) * longest if rows[0].types is not None else None)
    batch = collate([*rows, filler], pad)
    types = None if batch.types is None else batch.types[:-1]
    return Batch(batch.ids[:-1], batch.attention[:-1], types, batch.mask_at[:-1])


@torch.no_grad()
def annotate(
    teacher: Classifier, pool: Sequence[Example], passes: int, longest: int | None
) -> Votes:
    parts = []
    for start in range(0, len(pool), ROWS):
        batch = padded(teacher.encode(pool[start : start + ROWS]), teacher.pad, longest)
        teacher.eval()
        tally = Tally(teacher(batch).logits.softmax(1))
        teacher.train()
        for _ in range(passes):
            tally.add(teacher(batch).logits.softmax(1))
        parts.append(tally.votes())
    teacher.eval()
    return joined(parts)


def fit(model: Classifier, lesson: Lesson, how: Tune, seed: int, longest: int | None) -> None:
    if how.head_start == "regression":
        regress_head(model, lesson)
    table = Table.of(model, lesson)
    examples = [row.example for row in (*lesson.gold, *lesson.easy, *lesson.hard)]
    plan = steps_of(table, how, Random(seed))
    assert how.steps is not None, "plain counts steps, not epochs"
    optimizer = torch.optim.AdamW(
        groups(model, how), betas=(0.9, 0.98), weight_decay=how.weight_decay, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, slope(how.steps, how.warmup))
    torch.manual_seed(seed)
    model.train()
    for _ in range(how.steps):
        loss = step_loss(model, table, examples, next(plan), how, longest)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.trainable().values(), how.max_grad_norm)
        optimizer.step()
        schedule.step()
    model.eval()


def step_loss(
    model: Classifier,
    table: Table,
    examples: Sequence[Example],
    step: Step,
    how: Tune,
    longest: int | None,
) -> Tensor:
    def read(places: Sequence[int]) -> Output:
        rows = model.encode([examples[step.rows[place]] for place in places])
        return model(padded(rows, model.pad, longest))

    learn = step.rows[: step.learn]
    out = read(range(step.learn))
    each = how.loss(out.logits, table.labels[learn], table.soft[learn])
    loss: Tensor = (each * table.weights[learn]).mean()
    if how.contrast is not None and step.anchors:
        anchors, positives, negatives = zip(*step.anchors, strict=True)
        partners = read(positives).features
        order = list(dict.fromkeys(map(tuple, negatives)))
        hard = torch.stack([read(places).features for places in order])
        mine = torch.tensor([order.index(tuple(places)) for places in negatives])
        heads = out.features[list(anchors)]
        apart = contrast(heads, partners, hard[mine], how.contrast.temperature)
        loss = loss + how.contrast.weight * apart.mean()
    return loss
