"""Checks before anything is trained or written: an error now rather than in an hour.

Every model of the method is built once. That finds a wrong template or label word, a missing MLM
head, a layer that does not exist, and a teacher without dropout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import chain, islice
from typing import Any

from selftrain.data.rows import Example
from selftrain.data.split import fewest_labels
from selftrain.errors import ConfigError, ModelError
from selftrain.method.spec import Method
from selftrain.model.backbone import Backbone
from selftrain.model.classifier import Classifier
from selftrain.model.legible import legibility
from selftrain.model.surgery import dropout_rates
from selftrain.training.balance import most_of_a_class
from selftrain.training.draw import MAX_VECTORS, different_draws, pool_of_round
from selftrain.training.job import Job, new_model
from selftrain.training.memory import encoded

FIRST_TEXTS = 1_000  # checked of a pool that is too long for memory
MOST_COMPARED = 1_000_000  # rows of a round that are compared with each other, all in memory


def preflight(job: Job) -> list[str]:
    """Raise for what would stop the run later; return warnings as sentences."""
    method = job.method
    check_compared(job)
    students = method.student if method.rounds else ()
    models = [new_model(job, tune, seed=0) for tune in (method.teacher, *students)]
    # Line 13: the student of a round annotates for the next.
    annotators = models if method.total_rounds > 1 else models[:1]
    if method.total_rounds and method.passes > 1:
        for model in annotators:
            check_dropout(model, method.passes)
    return [
        *dropout_set(models),
        *texts_cut(models[-1], texts_read(job)),
        *hard_to_read(job.backbone, texts_read(job)),
        *(small_pool(job) if method.total_rounds else ()),
        *(few_rows(job) if method.guard == "folds" else ()),
        *uneven_labels(job),
    ]


def check_compared(job: Job) -> None:
    """Raise where each row is compared with all others of a round and these are too many."""
    method = job.method
    for number in different_draws(method):
        select = method.selection(number)
        compared = select.align or select.score.scale == "rank"
        if compared and (rows := rows_drawn(job)) > MOST_COMPARED:
            entry = "align = true" if select.align else 'scale = "rank"'
            raise ConfigError(
                f"{entry} compares each row with all others of its round, and a round has "
                f"{rows:,} rows; at most {MOST_COMPARED:,} fit",
                "draw fewer, pool = 100000 in the method, or leave that entry out",
            )


def prompt_unused(given: Mapping[str, Any], method: Method) -> Iterator[str]:
    """A warning where a template or label words were given and no model of the method reads them.

    ``given`` is what a user gave of the task, and not what a known task has by itself.
    """
    names = [name for name in ("template", "words") if given.get(name)]
    if names and not method.prompts:
        verb = "is" if names == ["template"] else "are"
        yield (
            f"{' and '.join(names)} {verb} not used: method `{method.name}` has a head, no prompt; "
            "upet-prompt-adapter is one that has"
        )


def check_dropout(model: Classifier, passes: int) -> None:
    """Raise for an annotator without dropout: its passes would all agree."""
    if not any(dropout_rates(model)):
        raise ModelError(
            f"`{model.backbone.name}` has no dropout as the method asks for it (dropout = 0), "
            f"so its {passes} passes would all agree",
            "leave `dropout` out of the method, or set it to 0.1",
        )


def dropout_set(models: Sequence[Classifier]) -> Iterator[str]:
    """A warning where a dropout rate was set because the backbone has none."""
    for rate in {model.dropout_added for model in models} - {None}:
        name = models[0].backbone.name
        yield f"`{name}` has no dropout of its own, and certainty needs some: {rate} is set"


def texts_read(job: Job) -> Iterator[Example]:
    """The texts a run will read, each once; of a pool too long for memory only the first."""
    rounds = (pool_of_round(job, number) for number in different_draws(job.method))
    pools = (pool if isinstance(pool, list) else islice(pool, FIRST_TEXTS) for pool in rounds)
    labelled = (row.example for row in (*job.split.labelled, *job.split.dev))
    distinct = {example.uid: example for example in chain(labelled, *pools)}
    yield from distinct.values()


def texts_cut(model: Classifier, texts: Iterable[Example]) -> Iterator[str]:
    """A warning where texts are longer than the model reads, with their number."""
    rows, cut, longest = 0, 0, 0
    for row in encoded(model, texts):
        rows, cut = rows + 1, cut + bool(row.cut)
        longest = max(longest, len(row.ids))
    if cut:
        yield f"texts cut to the model's length, {longest} tokens: {cut} of {rows} seen"


HARD_SHARE = 0.1  # of the texts: fewer are no reason to take another encoder
BROKEN_SHARE = 0.5  # of the longer words; English texts of eleven sets have 4% to 15% in `minilm`
MANY_WORDS = 50
MULTILINGUAL = 100_000  # tokens: an encoder of many languages breaks words of all of them
OTHER_BACKBONE = "a multilingual encoder may read them: --backbone xlm-roberta-base"


def hard_to_read(backbone: Backbone, texts: Iterable[Example]) -> Iterator[str]:
    """A warning where the encoder has no pieces for the texts: another script, or language."""
    sides = (side for example in texts for side in (example.text, example.pair) if side)
    found = legibility([*islice(sides, FIRST_TEXTS)], backbone.tokenizer)
    if found.texts and found.hard / found.texts >= HARD_SHARE:
        yield (
            f"`{backbone.name}` can hardly read {found.hard / found.texts:.0%} of {found.texts} "
            f"texts seen: it has no pieces for most of their letters; {OTHER_BACKBONE}"
        )
    elif (
        len(backbone.tokenizer) < MULTILINGUAL
        and found.words >= MANY_WORDS
        and found.broken / found.words >= BROKEN_SHARE
    ):
        yield (
            f"`{backbone.name}` breaks {found.broken / found.words:.0%} of the longer words: "
            f"perhaps they are of a language that it does not know; {OTHER_BACKBONE}"
        )


FEW_LABELS = 8  # of a class
FEW_TEXTS = 200  # of a pool
UNEVEN = 2  # times as many labels of one class as of another


def few_rows(job: Job) -> Iterator[str]:
    """Warnings where there are too few labels to hold some out, or too few texts to learn from."""
    label, fewest = fewest_labels(job.split.labelled)
    if fewest < FEW_LABELS:
        yield (
            f"few labels: `{label}` has {fewest}; with fewer than {FEW_LABELS} of a class results "
            "vary a lot, and the guard has little to go by"
        )
    texts = size_of(job.split.unlabelled)
    if texts < FEW_TEXTS:
        yield f"small pool: {texts} texts; below {FEW_TEXTS} there is little to learn from"


def uneven_labels(job: Job) -> Iterator[str]:
    """A warning where one class has far more labels than another."""
    counts = Counter(row.label for row in job.split.labelled)
    (most, largest), (fewest, smallest) = counts.most_common()[0], counts.most_common()[-1]
    if largest < UNEVEN * smallest:
        return
    effect = "a class with few labels is answered worse"
    learnt = most_of_a_class(smallest, len(counts))
    if job.method.teacher.balance_labels and learnt < largest:
        effect = f"the encoder learns from at most {learnt} of each class"
    yield (
        f"uneven labels: `{most}` has {largest}, `{fewest}` {smallest}; {effect}: "
        f"label more of `{fewest}`"
    )


def size_of(pool: Iterable[Example]) -> int:
    """The number of texts of a pool; one of unknown length is read through."""
    return len(pool) if isinstance(pool, Sized) else sum(1 for _ in pool)


def rows_drawn(job: Job) -> int:
    """How many rows of the pool a round draws, where it draws as many as the method asks for."""
    size = size_of(job.split.unlabelled)
    return size if job.method.pool == "all" else min(job.method.pool, size)


def small_pool(job: Job) -> Iterator[str]:
    """A warning where the pool has fewer texts than a round asks for."""
    method, size = job.method, size_of(job.split.unlabelled)
    drawn = rows_drawn(job)
    # A guard of folds has a warning of its own, for a pool that is too small to learn from.
    if method.pool != "all" and size < method.pool and method.guard != "folds":
        yield f"pool smaller than asked: {size} texts, a round draws {method.pool}; all are taken"
    if method.probe is not None and drawn > MAX_VECTORS:
        yield f"probe rounds read {MAX_VECTORS:,} texts of the pool at most; it has {size:,}"
    select = method.selection(1)
    wanted, picked = select.count, select.size(drawn, 1)
    if wanted is not None and picked < wanted:
        yield f"pool smaller than asked: N_r is {wanted}, half of the pool is {picked}"
