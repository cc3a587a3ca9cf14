"""What can be known before anything is trained or written: errors now rather than in an hour.

Every model of the method is built once, so a template, a label word, a missing MLM head or a
layer that is not there is found here, and so is a teacher without dropout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import chain, islice

from selftrain.data.rows import Example, Split
from selftrain.data.task import Task
from selftrain.errors import ModelError
from selftrain.method.spec import Method
from selftrain.model.backbone import Backbone
from selftrain.model.classifier import Classifier
from selftrain.model.surgery import dropout_rates
from selftrain.training.loop import drawn, encoded, fresh

FIRST = 1_000  # texts of a pool too long to be held that are looked at


def preflight(
    task: Task, split: Split, method: Method, backbone: Backbone, *, seed: int
) -> list[str]:
    """Raise what would end the run later; return, as sentences, what the user should know."""
    models = [fresh(task, how, backbone, seed=0) for how in (method.teacher, *method.student)]
    # Line 13: the student of a round annotates for the next.
    annotators = models if method.rounds > 1 else models[:1]
    if method.rounds and method.passes > 1:
        for model in annotators:
            check_dropout(model, method.passes)
    return [
        *dropout_set(models),
        *texts_cut(models[-1], texts_read(split, method, seed)),
        *(small_pool(split.unlabelled, method) if method.rounds else ()),
    ]


def check_dropout(model: Classifier, passes: int) -> None:
    """Raise for an annotator whose passes would all agree: it could tell no certainty."""
    if not any(dropout_rates(model)):
        raise ModelError(
            f"`{model.backbone.name}` has no dropout as the method asks for it (dropout = 0), "
            f"so its {passes} passes would all agree",
            "leave `dropout` out of the method, or set it to 0.1",
        )


def dropout_set(models: Sequence[Classifier]) -> Iterator[str]:
    """The rate that was set because the backbone has none and none was asked for."""
    for rate in {model.dropout_added for model in models} - {None}:
        name = models[0].backbone.name
        yield f"`{name}` has no dropout of its own, and certainty needs some: {rate} is set"


def texts_read(split: Split, method: Method, seed: int) -> Iterator[Example]:
    """What a run is going to read, each once; of a pool too long to be held only the first."""
    rounds = (drawn(split, method, number, seed) for number in range(1, method.rounds + 1))
    pools = (pool if isinstance(pool, list) else islice(pool, FIRST) for pool in rounds)
    labelled = (row.example for row in (*split.labelled, *split.dev))
    seen = {example.uid: example for example in chain(labelled, *pools)}
    yield from seen.values()


def texts_cut(model: Classifier, texts: Iterable[Example]) -> Iterator[str]:
    """How many of the texts are longer than the model reads."""
    seen, cut, longest = 0, 0, 0
    for row in encoded(model, texts):
        seen, cut = seen + 1, cut + bool(row.cut)
        longest = max(longest, len(row.ids))
    if cut:
        yield f"texts cut to the model's length, {longest} tokens: {cut} of {seen} seen"


def small_pool(pool: Iterable[Example], method: Method) -> Iterator[str]:
    """Where the pool has fewer texts than a round asks for."""
    size = len(pool) if isinstance(pool, Sized) else sum(1 for _ in pool)
    drawn = size if method.pool == "all" else min(method.pool, size)
    if method.pool != "all" and size < method.pool:
        yield f"pool smaller than asked: {size} texts, a round draws {method.pool}; all are taken"
    wanted, picked = method.select.count, method.select.size(drawn, 1)
    if wanted is not None and picked < wanted:
        yield f"pool smaller than asked: N_r is {wanted}, half of the pool is {picked}"
