"""Values between the rooms, made by hand: examples, votes, and a pool a teacher has judged."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from selftrain.data import Example
from selftrain.scores import Tally, Votes

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
