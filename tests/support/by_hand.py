"""Values between the rooms, made by hand: examples, votes, a table of rows, a small method."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from random import Random

import torch
from torch import Tensor

from selftrain.data.rows import Example, Labelled, Split
from selftrain.data.task import Task
from selftrain.method.losses import PHCE, EasyHard
from selftrain.method.scores import Tally, Votes
from selftrain.method.selection import Selection
from selftrain.method.spec import Method, Tune
from selftrain.model.batches import Row
from selftrain.model.classifier import Classifier
from selftrain.model.pel import Adapter, Full
from selftrain.training.machine import Machine
from selftrain.training.steps import Step, Table, steps_of

# ── votes ────────────────────────────────────────────────────────────────────────────────────

Passes = Sequence[Sequence[Sequence[float]]]


def example(name: object) -> Example:
    return Example(f"uid-{name}", f"text {name}")


def votes(passes: Passes | Tensor, plain: Sequence[Sequence[float]] | None = None) -> Votes:
    """Votes from a stack of passes [T, N, C]; the plain pass is the first unless given."""
    stack = torch.as_tensor(passes, dtype=torch.float64)
    tally = Tally(stack[0] if plain is None else torch.tensor(plain, dtype=torch.float64))
    for p in stack:
        tally.add(p)
    return tally.votes()


def random_votes(n: int, classes: int, passes: int, seed: int, noise: float = 0.5) -> Votes:
    """A teacher's votes on n rows: logits of its own for each row, shaken by dropout noise."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, classes, generator=generator, dtype=torch.float64) * 2
    shaken = torch.randn(passes, n, classes, generator=generator, dtype=torch.float64) * noise
    return votes((logits + shaken).softmax(-1), logits.softmax(-1).tolist())


def rows(votes_: Votes, places: Sequence[int]) -> Votes:
    """The votes of some rows only."""
    at = torch.tensor(places, dtype=torch.long)
    return Votes(
        votes_.plain[at],
        votes_.mean[at],
        votes_.wins[at],
        votes_.variance[at],
        votes_.entropy[at],
        votes_.passes,
    )


# ── a lesson as rows ─────────────────────────────────────────────────────────────────────────


def table(gold: Sequence[int], easy: Sequence[int], hard: Sequence[int], classes: int = 3) -> Table:
    """A table from class indices; row i is the single token i."""
    labels = [*gold, *easy, *hard]
    first, second = len(gold), len(gold) + len(easy)
    by_class: dict[str, dict[int, list[int]]] = {"easy": {}, "hard": {}}
    for kind, span in (("easy", range(first, second)), ("hard", range(second, len(labels)))):
        for i in span:
            by_class[kind].setdefault(labels[i], []).append(i)
    at = torch.tensor(labels, dtype=torch.long)
    return Table(
        [Row((i,)) for i in range(len(labels))],
        at,
        torch.eye(classes)[at],
        torch.ones(len(labels)),
        range(first),
        range(first, second),
        range(second, len(labels)),
        by_class,
    )


def steps(of: Table, how: Tune, count: int, seed: int = 1) -> list[Step]:
    """The first steps of a fit."""
    return list(islice(steps_of(of, how, Random(seed)), count))


FILMS = Task(
    "films",
    ("negative", "positive"),
    template="{text} It was {mask} .",
    words={"negative": ("terrible",), "positive": ("great",)},
    max_length=32,
)


# ── a run of a second ────────────────────────────────────────────────────────────────────────

WORDS = {"bad": "terrible bad dull no", "good": "great good fine yes"}
TASK = Task(
    "moods",
    tuple(WORDS),
    template="{text} It was {mask} .",
    words={"bad": ("terrible",), "good": ("great",)},
)
MACHINE = Machine(device="cpu", threads=1)
TEACHER = Tune(tuning=Full(), steps=6, batch_size=8, learning_rate=3e-3, head_learning_rate=1e-2)
STUDENT = Tune(
    tuning=Adapter(width=4),
    loss=PHCE(),
    contrast=EasyHard(negatives=2),
    steps=5,
    batch_size=8,
    gold_share=0.25,
    learning_rate=1e-2,
)
METHOD = Method(
    "small",
    TEACHER,
    (STUDENT,),
    rounds=2,
    pool=24,
    passes=3,
    select=Selection(count=10),
    converged=0,
)


def film(label: str, number: int) -> Example:
    """A sentence of one to five words of its class, so lengths differ."""
    random = Random(f"{label}/{number}")
    words = random.choices(WORDS[label].split(), k=1 + number % 5)
    return Example(f"{label}-{number}", f"film {number} was {' and '.join(words)}")


GOLD = tuple(Labelled(film(label, n), label) for n in range(4) for label in WORDS)
POOL = [film(label, n) for n in range(4, 24) for label in WORDS]
SPLIT = Split(GOLD, POOL)


def same(one: Classifier, other: Classifier) -> bool:
    """Whether two models agree in every bit of what moves."""
    mine, theirs = one.state(), other.state()
    return mine.keys() == theirs.keys() and all(torch.equal(mine[k], theirs[k]) for k in mine)
