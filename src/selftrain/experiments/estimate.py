"""What a method will cost before it starts: counted in rows read once, forward, without dropout."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from selftrain.data.rows import Example, Labelled
from selftrain.data.task import Task
from selftrain.method.spec import Method, Tune
from selftrain.model.backbone import Backbone
from selftrain.model.pel import Full, Layers, PTuning, layers_of
from selftrain.model.pel.seams import depth, dropout_depth
from selftrain.training.baselines import FrozenLogistic

FULL, MODULE, DROPOUT = 3.0, 2.3, 1.2
"""A row trained with all parameters, with a module alone, and read with dropout, in rows read."""
TOKENS = 40  # of a row, about: 24 in sst2, 53 in agnews


def rows_read(
    method: Method,
    backbone: Backbone,
    *,
    labelled: int,
    pool: int,
    scored: int,
    classes: int,
    taught: bool = False,
    voted: bool = False,
) -> float:
    """A whole run and its closing evaluation, in rows read; an estimate.

    ``taught`` and ``voted``: another method leaves its teacher and what that scores, and the votes
    of the first round.
    """
    drawn = pool if method.pool == "all" else min(pool, method.pool)
    whole = 0.0 if taught else training(method.teacher, labelled, classes)
    if method.tapt is not None and not taught:
        whole += (FULL + 1) * method.tapt.steps * method.tapt.batch_size  # and its many words
    reader = method.teacher
    frozen = 1 - tuned_share(method.student[0], backbone) if method.student else 0.0
    if not (taught and method.rounds):
        whole += scored * longer(reader)
    for number in range(1, method.rounds + 1):
        easy = method.select.size(drawn, number)
        if number > 1 or not voted:
            share = top_share(method.dropout_layers, backbone)
            whole += drawn * (1 + DROPOUT * share * method.passes) * longer(reader)
        whole += sum(
            training(how, labelled if how.train_on else easy, classes) * (1 - frozen)
            for how in method.student
        )
        whole += drawn * frozen  # computed once a text
        reader = method.student[-1]
        whole += scored * longer(reader)
    return whole


def training(how: Tune, rows: int, classes: int) -> float:
    """One fit, in rows read."""
    steps = how.steps or (how.epochs or 0) * math.ceil(rows / how.batch_size)
    batch = float(how.batch_size)
    if how.contrast is not None:
        batch += classes * how.contrast.negatives
    if how.smooth is not None:
        batch *= 2
    start = rows if how.head_start == "regression" else 0
    once = FULL if isinstance(how.tuning, Full) else MODULE
    agreeing = 0.0 if how.reweigh is None else (1 - how.reweigh.after) * (once + 2)
    return start + steps * batch * (once + agreeing) * longer(how)


def longer(how: Tune) -> float:
    """How much longer a row is for a model that was tuned so: P-tuning adds tokens to each."""
    added = how.tuning.length if isinstance(how.tuning, PTuning) else 0
    return 1 + added / TOKENS


def tuned_share(how: Tune, backbone: Backbone) -> float:
    """The share of the layers that a step goes through: below the tuned ones it is remembered."""
    layers = layers_of(how.tuning)
    return 1.0 if layers is None else top_share(layers, backbone)


def top_share(layers: Layers, backbone: Backbone) -> float:
    """The share of the layers in which passes differ."""
    count = depth(backbone.encoder, backbone.family)
    return dropout_depth(layers, backbone.family, count) / count


def seconds_a_row(task: Task, backbone: Backbone, rows: Sequence[Labelled]) -> float:
    """How long one row takes here, measured on some."""
    model = FrozenLogistic(task, backbone, rows)
    examples: list[Example] = [row.example for row in rows]
    started = time.perf_counter()
    model.embed(examples)
    return (time.perf_counter() - started) / len(examples)
